// Command terraform measures how long Terraform takes with a thousand users of qod, against the same graph of resources
// that do nothing, and against qod apply of the same users. It prints a table and judges nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const users = 1000

// providerTF is a tenant with its users through the provider, nothingTF the same graph of Terraform's own resource, which
// keeps what it is given, and configQod the same objects as qod's configuration.
const (
	providerTF = `
terraform {
  required_providers {
    qod = {
      source = "qod-io/qod"
    }
  }
}
provider "qod" {
  stack = "terraform"
}
resource "qod_tenant" "acme" {
  name = "acme"
}
resource "qod_user" "u" {
  count  = %d
  tenant = qod_tenant.acme.name
  name   = "u${count.index}"
  email  = "u${count.index}@acme.example"
  roles  = ["qod:reader"]
}
`
	nothingTF = `
resource "terraform_data" "acme" {
  input = { name = "acme" }
}
resource "terraform_data" "u" {
  count = %d
  input = {
    tenant = terraform_data.acme.output.name
    name   = "u${count.index}"
    email  = "u${count.index}@acme.example"
    roles  = ["qod:reader"]
  }
}
`
	configQod = `
qod {
  stack = "own"
}
tenant "acme" {}
user "u" {
  for_each = toset([for n in range(%d) : "u${n}"])
  tenant   = tenant.acme
  email    = "${each.key}@acme.example"
  roles    = ["qod:reader"]
}
`
)

func main() {
	qod := flag.String("qod", "", "the binary, as an absolute path")
	root := flag.String("root", "", "directory with work, an installation that is served, and provider, the provider's")
	rounds := flag.Int("rounds", 3, "how often each is timed, in turns; the median counts")
	flag.Parse()
	if err := run(*qod, *root, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "terraform:", err)
		os.Exit(1)
	}
}

// side is one of those that are compared.
type side struct {
	name           string
	program, dir   string
	file, text     string
	apply, destroy []string
	again          []string // a plan without changes
	env            []string

	applied, planned []time.Duration
}

func sides(qod, root string) []*side {
	rc := filepath.Join(root, "terraform.rc")
	terraform := side{
		program: "terraform", file: "main.tf", apply: []string{"apply", "-auto-approve", "-input=false", "-no-color"},
		destroy: []string{"apply", "-destroy", "-auto-approve", "-input=false", "-no-color"},
		again:   []string{"plan", "-detailed-exitcode", "-input=false", "-no-color"},
		env:     []string{"TF_CLI_CONFIG_FILE=" + rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1"},
	}
	provider, nothing := terraform, terraform
	provider.name, provider.dir, provider.text = "terraform apply of qod_user", filepath.Join(root, "users"), providerTF
	nothing.name, nothing.dir, nothing.text = "terraform apply of terraform_data", filepath.Join(root, "nothing"), nothingTF
	return []*side{&nothing, &provider, {
		name: "qod apply", program: qod, dir: filepath.Join(root, "work"), file: "main.qod.hcl", text: configQod,
		apply: []string{"apply", "--auto-approve"}, destroy: []string{"destroy", "--auto-approve"}, again: []string{"plan", "--detailed-exitcode"},
	}}
}

func run(qod, root string, rounds int) error {
	rc := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  dev_overrides {\n    \"registry.terraform.io/qod-io/qod\" = %q\n  }\n"+
		"  direct {}\n}\n", filepath.Join(root, "provider"))
	if err := os.WriteFile(filepath.Join(root, "terraform.rc"), []byte(rc), 0o600); err != nil {
		return err
	}
	all := sides(qod, root)
	for range rounds {
		for _, s := range all {
			if err := s.round(); err != nil {
				return err
			}
		}
	}
	nothing, provider, own := all[0], all[1], all[2]
	fmt.Printf("%-38s %14s %14s\n", fmt.Sprintf("1 tenant, %d users", users), "apply", "plan after it")
	for _, s := range all {
		fmt.Printf("%-38s %14s %14s\n", s.name, median(s.applied).Round(time.Millisecond), median(s.planned).Round(time.Millisecond))
	}
	for _, r := range []struct {
		what string
		a, b *side
	}{{"the provider against terraform_data", provider, nothing}, {"the provider against qod apply", provider, own}} {
		fmt.Printf("%-38s %13.1fx %13.1fx\n", r.what, ratio(r.a.applied, r.b.applied), ratio(r.a.planned, r.b.planned))
	}
	return nil
}

func median(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

func ratio(a, b []time.Duration) float64 { return float64(median(a)) / float64(median(b)) }

// round makes all, plans once more, and takes all away.
func (s *side) round() error {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, s.file), fmt.Appendf(nil, s.text, users), 0o600); err != nil {
		return err
	}
	applied, err := s.time(s.apply)
	if err != nil {
		return err
	}
	planned, err := s.time(s.again)
	if err != nil {
		return err
	}
	s.applied, s.planned = append(s.applied, applied), append(s.planned, planned)
	_, err = s.time(s.destroy)
	return err
}

func (s *side) time(args []string) (time.Duration, error) {
	cmd := exec.Command(s.program, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s %s: %w\n%s", filepath.Base(s.program), strings.Join(args, " "), err, out[max(0, len(out)-2000):])
	}
	return time.Since(start), nil
}

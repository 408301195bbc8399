package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// afar is a working directory on another host than that of the state, so to say: it has no state, and a server.
type afar struct {
	*installation
	dir string
	env []string
}

const remoteFiles = `qod {
  stack = "core"
}
variable "loader_password" {
  sensitive = true
}
variable "name" {
  default = "Acme"
}
variable "hush" {
  default   = "hush-S3cret-one"
  sensitive = true
}
tenant "acme" {
  display_name = var.name
}
tenant "globex" {
  display_name = var.hush
}
user "ana" {
  tenant           = tenant.acme
  password         = var.loader_password
  password_version = 1
  admin            = true
}
role "analyst" {
  tenant = tenant.acme
  permission {
    catalog    = "*"
    privileges = ["select"]
  }
}
output "who" {
  value = user.ana.name
}
output "hush" {
  value     = var.hush
  sensitive = true
}
`

// away makes a directory with the same files, from which the server is reached with a token.
func (i *installation) away(t testing.TB, server, token string) *afar {
	t.Helper()
	a := &afar{installation: i, dir: filepath.Join(i.root, fmt.Sprintf("away%d", time.Now().UnixNano()))}
	if err := os.CopyFS(a.dir, os.DirFS(i.dir)); err != nil {
		t.Fatal(err)
	}
	for _, v := range i.env {
		if !strings.HasPrefix(v, "QOD_STATE_DIR=") && !strings.HasPrefix(v, "HOME=") {
			a.env = append(a.env, v)
		}
	}
	a.env = append(a.env, "HOME="+a.dir, "QOD_STATE_DIR="+filepath.Join(a.dir, "none"), "QOD_SERVER="+server, "QOD_SERVER_CA="+i.certificate())
	if token != "" {
		a.env = append(a.env, "QOD_TOKEN="+token)
	}
	return a
}

func (a *afar) run(t testing.TB, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return a.installation.streams(t, a.dir, a.env, input, args...)
}

// must runs a command that has to succeed, and returns its standard output.
func (a *afar) must(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, code := a.run(t, "", args...)
	if code != 0 {
		t.Fatalf("away: qod %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// refuses wants an exit code of 1, and words.
func (a *afar) refuses(t testing.TB, words string, args ...string) {
	t.Helper()
	out, errs, code := a.run(t, "", args...)
	if code != 1 || !strings.Contains(out+errs, words) {
		t.Errorf("away: qod %s: exit code %d, want 1 and %q\n%s%s", strings.Join(args, " "), code, words, out, errs)
	}
}

// streams runs a command, and keeps standard output and standard error apart.
func (i *installation) streams(t testing.TB, dir string, env []string, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, i.bin, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatalf("run qod %v: %v", args, err)
	}
	i.mu.Lock()
	fmt.Fprintf(&i.out, "$ qod %s\n%s%s", args[0], out.Bytes(), errs.Bytes())
	i.mu.Unlock()
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// passing is what differs between two runs of one command: times.
var passing = regexp.MustCompile(`"(created|timestamp)":\s*"[^"]*"|"elapsed_seconds":\s*[0-9.e-]+|\[[0-9.]+m?s\]`)

// once is what differs between objects that are made anew.
var once = regexp.MustCompile(`"id":"[^"]*"`)

// alike wants a command to print the same here and away.
func (a *afar) alike(t testing.TB, args ...string) {
	t.Helper()
	here, hereErr, code := a.streams(t, a.installation.dir, a.installation.env, "", args...)
	there, thereErr, codeThere := a.run(t, "", args...)
	thereErr = strings.ReplaceAll(thereErr, a.server(), "")
	if code != codeThere || passing.ReplaceAllString(here, "") != passing.ReplaceAllString(there, "") || hereErr != thereErr {
		t.Errorf("qod %s\n--- here (%d)\n%s%s\n--- away (%d)\n%s%s", strings.Join(args, " "), code, here, hereErr, codeThere, there, thereErr)
	}
}

// server is the line that says where a plan is made.
func (a *afar) server() string {
	for _, v := range a.env {
		if address, ok := strings.CutPrefix(v, "QOD_SERVER="); ok {
			return "Server: " + address + "\n"
		}
	}
	return ""
}

// token makes one by the command line of the host.
func (i *installation) token(t testing.TB, args ...string) string {
	t.Helper()
	out, _, code := i.streams(t, i.dir, i.env, "", append([]string{"token", "create"}, args...)...)
	if code != 0 || !strings.HasPrefix(out, "qodp_") {
		t.Fatalf("token create %v: exit code %d: %s", args, code, out)
	}
	return strings.TrimSpace(out)
}

// A command prints the same on the host of the state and elsewhere, and does the same.
func TestRemoteIsAsLocal(t *testing.T) {
	i := install(t, "")
	i.write(t, remoteFiles)
	s := i.serve(t)
	token := i.token(t, "admin")
	a := i.away(t, "https://"+s.HTTP, token)
	a.must(t, "plan")
	first := a.must(t, "apply", "--auto-approve")
	lock, err := os.ReadFile(filepath.Join(a.dir, ".qod.lock.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	i.writeFile(t, ".qod.lock.hcl", string(lock))
	for _, args := range [][]string{
		{"plan"}, {"plan", "--detailed-exitcode"}, {"plan", "--json"}, {"plan", "--destroy"}, {"plan", "--var", "name=Other"},
		{"plan", "--var", "name=Other", "--json"}, {"plan", "--var", "hush=hush-S3cret-two"}, {"plan", "--replace", "role.analyst"},
		{"plan", "--target", "role.analyst", "--var", "name=Other"}, {"plan", "--refresh-only"}, {"drift"}, {"drift", "--json"},
		{"show"}, {"show", "--json"}, {"export"}, {"export", "--json"}, {"export", "--format", "terraform"}, {"export", "role.analyst"},
		{"state", "list"}, {"state", "list", "--id"}, {"state", "show", "user.ana"}, {"state", "show", "tenant.globex"},
		{"state", "mv", "role.analyst", "role.other", "--dry-run"}, {"output"}, {"output", "who", "--raw"}, {"output", "nothing"},
		{"history"}, {"history", "--json"}, {"history", "--all"}, {"diff", "1"}, {"diff", "1", "--json"}, {"status"}, {"status", "--json"},
		{"wait", "--timeout", "10s"}, {"graph"}, {"token", "list"}, {"apply", "--auto-approve"}, {"apply", "--auto-approve", "--json"},
	} {
		a.alike(t, args...)
	}
	a.planned(t)
	a.refuses(t, "does not leave the server", "output", "hush")
	a.back(t)
	a.twice(t, first)
	a.hidesAll(t, token)
}

// planned sees that saved plans are the same files, and problems have the same places.
func (a *afar) planned(t *testing.T) {
	t.Helper()
	saved := filepath.Join(a.root, "saved.qodplan")
	a.must(t, "plan", "--var", "name=Saved away", "--out", saved)
	a.alike(t, "show", saved)
	a.alike(t, "show", "--json", saved)
	a.installation.must(t, "apply", saved)
	a.refuses(t, "single-use", "apply", saved)
	a.installation.must(t, "plan", "--var", "name=Saved here", "--out", saved)
	a.must(t, "apply", saved)
	if out := a.must(t, "show"); !strings.Contains(out, "Saved here") {
		t.Errorf("show: %s", out)
	}
	a.must(t, "plan", "--var", "name=Late", "--out", saved)
	a.installation.must(t, "apply", "--auto-approve", "--var", "name=Before")
	a.refuses(t, "nothing was changed, since the world moved on", "apply", saved)
	for _, dir := range []string{a.dir, a.installation.dir} {
		wrong := "user \"bo\" {\n  tenant   = \"nowhere\"\n  password = var.loader_password\n}\n"
		if err := os.WriteFile(filepath.Join(dir, "wrong.qod.hcl"), []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a.alike(t, "plan")
	a.alike(t, "plan", "--json")
	a.alike(t, "apply", "--auto-approve")
	for _, dir := range []string{a.dir, a.installation.dir} {
		if err := os.Remove(filepath.Join(dir, "wrong.qod.hcl")); err != nil {
			t.Fatal(err)
		}
	}
}

// back goes back, and moves what is stored.
func (a *afar) back(t *testing.T) {
	t.Helper()
	revision := strings.Fields(strings.Split(a.must(t, "history"), "\n")[2])[0]
	a.alike(t, "history", revision)
	a.alike(t, "history", revision, "--json")
	a.alike(t, "rollback", revision, "--out", filepath.Join(a.root, "back.qodplan"))
	a.must(t, "rollback", revision, "--auto-approve")
	a.must(t, "state", "mv", "role.analyst", "role.reader")
	a.alike(t, "state", "list")
	a.must(t, "state", "mv", "role.reader", "role.analyst")
	a.must(t, "state", "rm", "role.analyst", "--auto-approve")
	if list := a.installation.must(t, "state", "list"); strings.Contains(list, "role.analyst") {
		t.Errorf("state rm left it: %s", list)
	}
	taken := filepath.Join(a.dir, "import.qod.hcl")
	if err := os.WriteFile(taken, []byte("import {\n  to = role.analyst\n  id = \"acme/analyst\"\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a.must(t, "apply", "--auto-approve")
	if err := os.Remove(taken); err != nil {
		t.Fatal(err)
	}
	a.refuses(t, "QOD_SERVER names a server", "serve")
	a.refuses(t, "QOD_SERVER names a server", "down")
}

// twice applies and destroys here and away, and wants the same words.
func (a *afar) twice(t *testing.T, first string) {
	t.Helper()
	here := func(args ...string) string {
		out, errs, code := a.streams(t, a.installation.dir, a.installation.env, "", args...)
		if code != 0 {
			t.Fatalf("qod %v: %d %s%s", args, code, out, errs)
		}
		return once.ReplaceAllString(passing.ReplaceAllString(out, ""), "")
	}
	away := func(args ...string) string {
		return once.ReplaceAllString(passing.ReplaceAllString(a.must(t, args...), ""), "")
	}
	here("destroy", "--auto-approve")
	if out := here("apply", "--auto-approve"); out != passing.ReplaceAllString(first, "") {
		t.Errorf("apply\n--- here\n%s\n--- away\n%s", out, first)
	}
	for _, args := range [][]string{{"destroy", "--auto-approve"}, {"apply", "--auto-approve", "--json"}, {"destroy", "--auto-approve", "--json"}} {
		there := away(args...)
		undo := []string{"destroy", "--auto-approve"}
		if args[0] == "destroy" {
			undo[0] = "apply"
		}
		here(undo...)
		if out := here(args...); out != there {
			t.Errorf("%v\n--- here\n%s\n--- away\n%s", args, out, there)
		}
	}
}

// hidesAll wants no secret in anything that was printed, and no token beyond the one line that made it.
func (a *afar) hidesAll(t *testing.T, tokens ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, secret := range []string{secrets["admin"], secrets["loader_password"], "hush-S3cret-one", "hush-S3cret-two"} {
		if bytes.Contains(a.out.Bytes(), []byte(secret)) {
			t.Errorf("some output shows %s", secret)
		}
	}
	for _, token := range tokens {
		if n := bytes.Count(a.out.Bytes(), []byte(token)); n > 1 {
			t.Errorf("a token was shown %d times", n)
		}
	}
	if log := readFile(t, a.state("serve.log")); strings.Contains(log, "S3cret") {
		t.Error("the log of serve shows a secret")
	}
}

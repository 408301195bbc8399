package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const estate = `qod {
  stack = "s"
}
variable "secret" {
  type      = string
  sensitive = true
  default   = "hunter22"
}
tenant "acme" {}
user "all" {
  for_each = { ana = "a@acme.com", bob = "b@acme.com" }
  tenant   = tenant.acme
  email    = each.value
  password = var.secret
}
module "m" {
  source = "./m"
}
`

const inner = `output "word" {
  value = "out"
}
tenant "inner" {}
`

// Commands that look at the configuration alone.
func TestLook(t *testing.T) {
	tests := map[string]struct {
		args  []string
		stdin string
		code  int
		want  []string
	}{
		"render":          {[]string{"render"}, "", 0, []string{"stack = \"s\"", "# password: (sensitive value)", "email  = each.value.email"}},
		"render one":      {[]string{"render", "tenant.acme"}, "", 0, []string{"tenant \"acme\" {\n}\n"}},
		"render key":      {[]string{"render", "--json", `user.all["bob"]`}, "", 0, []string{`"email": "b@acme.com"`}},
		"render nothing":  {[]string{"render", "tenant.acmee"}, "", 1, []string{`Did you mean "tenant.acme"?`}},
		"render no kind":  {[]string{"render", "x"}, "", 1, []string{"is no address"}},
		"graph":           {[]string{"graph"}, "", 0, []string{`"user.all[\"ana\"]" -> "tenant.acme"`}},
		"graph of plan":   {[]string{"graph", "--type", "plan"}, "", 0, []string{`"tenant.acme" [style = "filled", fillcolor = "palegreen"]`}},
		"graph of what":   {[]string{"graph", "--type", "x"}, "", 1, []string{"want config or plan"}},
		"console":         {[]string{"console"}, "user.all[\"ana\"].email\n{\n  a = 1\n}\n[var.secret]\nexit\nnonsense", 0, []string{"\"a@acme.com\"\n{\n  a = 1\n}\n[\n  (sensitive value),\n]\n"}},
		"console module":  {[]string{"console"}, "module.m.word", 0, []string{`"out"`}},
		"render module":   {[]string{"render", "module.m"}, "", 0, []string{"# module.m.tenant.inner\ntenant \"m_inner\" {\n  name = \"inner\"\n}\n"}},
		"console at end":  {[]string{"console"}, "upper(\"x\")", 0, []string{`"X"`}},
		"console error":   {[]string{"console"}, "1 +\nupper(\"x\")\n", 1, []string{"Error:"}},
		"console nothing": {[]string{"console"}, "user.al[\"x\"]\n1\n", 1, []string{"Did you mean user.all?"}},
		"console secret":  {[]string{"console"}, "tonumber(var.secret)\n", 1, []string{"not shown"}},
		"verify afresh":   {[]string{"verify"}, "", 1, []string{"ok    configuration\n", "FAIL  extension ducklake", "FAIL  state: there is none yet", `ok    user.all["ana"]`}},
		"verify as JSON":  {[]string{"verify", "--json"}, "", 1, []string{`"format_version": "1.1"`, `"check": "state",`, `"diagnostics": []`}},
		"verify in vain":  {[]string{"verify", "--json", "--var", "nothing=1"}, "", 1, []string{`"reason": "it is not valid, see diagnostics"`, `"summary": `}},
		"wait once":       {[]string{"wait", "--timeout", "0"}, "", 1, []string{"there is no state yet"}},
		"wait for gone":   {[]string{"wait", "--for", "gone"}, "", 0, nil},
		"wait for what":   {[]string{"wait", "--for", "x"}, "", 1, []string{"want converged or gone"}},
		"wait for nobody": {[]string{"wait", "pol.bi"}, "", 1, []string{"is no address"}},
		"export nothing":  {[]string{"export"}, "", 1, []string{"nothing to export"}},
		"sql twice":       {[]string{"sql", "-f", "x", "SELECT 1"}, "", 1, []string{"not both"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "m"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{"main.qod.hcl": estate, "m/main.qod.hcl": inner} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
			code, out := command(t, tt.stdin, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("does not say %q", want)
				}
			}
			if strings.Contains(out, "hunter22") {
				t.Error("shows the secret")
			}
			if slices.Contains(tt.args, "--json") && !json.Valid([]byte(out)) {
				t.Error("says something else than JSON")
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
			if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
				t.Error("state was made")
			}
		})
	}
}

// Ctrl-C gives the line up and does not end the editor.
func TestInterrupts(t *testing.T) {
	i := &interrupts{from: strings.NewReader("ab" + ctrlC)}
	p := make([]byte, 256)
	n, err := i.Read(p)
	if err != nil || string(p[:n]) != "ab"+giveUp || !i.pressed {
		t.Errorf("read %q, pressed %t: %v", p[:n], i.pressed, err)
	}
	i = &interrupts{from: strings.NewReader(ctrlC)}
	if n, err := i.Read(p[:1]); err != nil || string(p[:n]) != "\r" {
		t.Errorf("read %q into one byte: %v", p[:n], err)
	}
}

package test

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/embedded"
	"github.com/qod-io/qod/engine/store/postgres"
)

// changes plans and applies other values, by a saved plan, and finds drift.
func (s *secrecy) changes(t *testing.T) {
	t.Helper()
	s.set("token", sensitive["token2"])
	s.set("result", sensitive["token2"])
	s.run(t, `plan
		plan --json
		plan --out p.qodplan
		show p.qodplan
		show --json p.qodplan`)
	s.saved(t, "p.qodplan")
	s.run(t, `apply p.qodplan
		apply --json p.qodplan
		history
		show p.qodplan`)
	s.execute(t, "qod", `UPDATE qodstate_object SET spec = jsonb_set(spec, '{description}', '"`+sensitive["drift"]+`"')
		WHERE kind IN ('group', 'role') AND spec ? 'description'`)
	s.run(t, `plan --json
		drift
		drift --json
		plan --refresh-only --json
		plan --out p.qodplan
		show --json p.qodplan
		verify
		apply --auto-approve`)
}

// saved looks at a plan file, which only its owner may read.
func (s *secrecy) saved(t *testing.T, name string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	s.look(t, name, raw)
	if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v %v", name, info, err)
	}
}

// conflicts has a plan meet the changes of another one.
func (s *secrecy) conflicts(t *testing.T) {
	t.Helper()
	s.set("token", sensitive["token"])
	s.run(t, "plan --out late.qodplan")
	s.set("token", sensitive["drift"])
	s.apply(t)
	out := s.run(t, "apply late.qodplan\napply --json late.qodplan")
	if !strings.Contains(out, "was changed (by stack vault") {
		t.Errorf("there is no conflict:\n%s", out)
	}
}

// hideCatalog looks for the passwords that qod has made itself from here on.
func (s *secrecy) hideCatalog(t *testing.T) {
	t.Helper()
	key, err := os.ReadFile(s.state("master.key"))
	if err != nil {
		t.Fatal(err)
	}
	master, err := hex.DecodeString(strings.TrimSpace(string(key)))
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := store.NewSealer(master)
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := embedded.Find(embedded.Config{StateDir: s.state(), RunDir: filepath.Join(s.root, "run")})
	if err != nil {
		t.Fatal(err)
	}
	url, err := server.URL("qod")
	if err != nil {
		t.Fatal(err)
	}
	state, err := postgres.OpenReadOnly(t.Context(), postgres.Config{URL: url, Sealer: sealer})
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	snap, err := state.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key, sealed := range snap.Secrets {
		secret, err := sealer.Open(key, sealed)
		if err != nil {
			t.Fatal(err)
		}
		s.hide(key.Attr+" of "+key.Object, string(secret))
	}
	if len(snap.Secrets) < 4 {
		t.Errorf("only %d secrets are stored", len(snap.Secrets))
	}
}

// endings takes blocks out of the configuration, forgets and imports objects, and rolls back.
func (s *secrecy) endings(t *testing.T, first int) {
	t.Helper()
	s.run(t, "state rm module.inner.group.all[\"one\"] --auto-approve\nexport --unowned\nexport --unowned --json")
	s.put(t, "more.qod.json", `{"import": {"to": "group.found", "id": "acme/one"}}`)
	s.run(t, "plan\nplan --json")
	s.put(t, "more.qod.json", `{"import": {"to": "group.found", "id": "acme/one"}, "group": {"found": {"tenant": "acme", "name": "one"}}}`)
	s.put(t, "main.qod.hcl", `qod {
  stack = "vault"
}
tenant "acme" {}
moved {
  from = group.later
  to   = group.moved
}
group "moved" {
  tenant = tenant.acme
  name   = "later"
}
tenant_db "lake" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}
`)
	s.run(t, reading)
	s.apply(t)
	back := fmt.Sprint(first)
	s.run(t, "rollback "+back+"\nrollback "+back+" --out back.qodplan\nshow back.qodplan\nshow --json back.qodplan")
	s.saved(t, "back.qodplan")
	s.run(t, "diff "+back+"\ndiff "+back+" --json\nrollback "+back+" --auto-approve --json")
	if out := s.must(t, "state", "show", "role.r"); !strings.Contains(out, "description = (sensitive value)") {
		t.Errorf("the rollback did not bring it back, or shows it:\n%s", out)
	}
}

func (s *secrecy) everyRevision(t *testing.T) {
	t.Helper()
	for n := s.newest(t); n > 0; n-- {
		s.run(t, fmt.Sprintf("history %d\nhistory %d --json", n, n))
	}
}

// console asks for the value of everything that is sensitive, and lets each function say what is wrong
// with it.
func (s *secrecy) console(t *testing.T) {
	t.Helper()
	s.put(t, "main.qod.hcl", vault)
	s.put(t, "more.qod.json", vaultJSON)
	for _, expr := range []string{
		"[var.token, local.all, tenant.acme, user.ana, user.json.email, module.inner, var.pass, var.verifier]",
		"{ (var.token) = 1 }", "{ for k in [var.token] : k => k }", "toset([var.token])", "base64encode(var.token)", "upper(var.pass)",
		"file(var.token)", "templatefile(var.token, {})", "jsondecode(var.token)", "tonumber(var.token)", "regex(\"(\", var.token)",
		"{ a = 1 }[var.token]", "format(\"%d\", var.token)", "var.token ? 1 : 2", "one([var.token, var.token])", "var.token + 1",
		"sensitive(\"" + sensitive["pass"] + "\") + 1",
	} {
		cmd := s.command(t.Context(), "console")
		cmd.Stdin = strings.NewReader(expr)
		out, _ := cmd.CombinedOutput() // many are errors
		s.look(t, expr, out)
		s.seen++
	}
}

// mistakes are configurations that are wrong about what is sensitive.
func (s *secrecy) mistakes(t *testing.T) {
	t.Helper()
	literal := sensitive["pass"]
	for _, wrong := range []string{
		`user "x" {
  for_each = toset([var.token])
  tenant   = tenant.acme
}`, `user "x" {
  tenant = var.token
}`, `user "x" {
  tenant = tenant.acme
  name   = var.token
}`, `user "x" {
  tenant   = tenant.acme
  roles    = [var.token]
  password = "` + literal + `
}`, `pool "x" {
  tenant_db         = tenant_db.lake
  memory            = var.token
  statement_timeout = var.result
}`, `output "x" {
  value = [var.token]
}`, `output "x" {
  value     = "` + literal + `" + 1
  sensitive = true
}`, `user "x" {
  tenant = tenant.acme
  email  = var.pass
}`, `module "x" {
  source = "./inner"
  tokn   = "` + literal + `"
  token  = [var.token]
}`, `import {
  to = tenant.acme
  id = var.token
}`, `variable "x" {
  type      = map(number)
  sensitive = true
  default   = { ` + literal + ` = "` + literal + `" }
}`, `role "x" {
  tenant = tenant.acme
  dynamic "permission" {
    for_each = toset([var.token])
    content {
      catalog    = permission.value
      privileges = ["read", var.token]
    }
  }
}`,
	} {
		s.put(t, "wrong.qod.hcl", wrong)
		if out := s.run(t, "plan\nvalidate --json\nfmt --diff --check"); strings.Contains(out, "stack vault is valid") {
			t.Errorf("this is right:\n%s", wrong)
		}
	}
	s.put(t, "wrong.qod.hcl", "")
	s.put(t, "v.auto.qodvars.hcl", "  token = [\""+literal+"\"]\n")
	s.run(t, "plan --json\nfmt --diff --check\nplan --var token:"+literal+"\nplan -password="+literal+"\nplan --var token=a "+literal)
}

// files looks at everything that is left on disk, at the processes, and at what Postgres holds. Attributes
// that are computed from sensitive values are in the rows of objects; secrets are nowhere.
func (s *secrecy) files(t *testing.T) {
	t.Helper()
	for name := range s.hidden {
		for _, attr := range []string{"token ", "token2 ", "drift ", "later "} {
			if strings.HasPrefix(name, attr) {
				delete(s.hidden, name)
			}
		}
	}
	for place, content := range s.places(t) {
		s.look(t, place, content)
	}
	err := filepath.WalkDir(filepath.Join(s.root, "tmp"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if out, err := exec.CommandContext(t.Context(), "grep", "-r", "-l", core(sensitive["pass"]), s.state()).Output(); err == nil {
		t.Errorf("the ephemeral value is in %s", out)
	}
	lock, err := os.ReadFile(filepath.Join(s.dir, ".qod.lock.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	s.look(t, "the lock file", lock)
}

package test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The sensitive values of the declarative tests. No command may show them in any form: what is special in
// them is written in many ways, so the plain part in the middle is what is looked for.
var sensitive = map[string]string{
	"token":    `k"<&é tokenXq7Zr1 $`,
	"pass":     "passXw4Tb9kk",
	"result":   "{\"resultXm2Lc8\":\"%\"}",
	"later":    "laterXf6Hd3vv",
	"token2":   "token2Xp5Js8 \\ /",
	"drift":    "driftXn3Vg7hh",
	"verifier": "$argon2id$v=19$m=19456,t=2,p=1$dmVyaWZpZXJYYTE$ZGlnZXN0WHM4UWUyZGlnZXN0WHM4UWUyZGlnZXN0WHM",
}

// core is the part of a sensitive value that no escaping changes.
func core(value string) string {
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return !strings.ContainsRune(alphanumeric, r) }) {
		if strings.Contains(word, "X") {
			return word
		}
	}
	return value
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const vault = `qod {
  stack = "vault"
}
variable "token" {
  type      = string
  sensitive = true
}
variable "pass" {
  type      = string
  ephemeral = true
}
variable "result" {
  type      = string
  sensitive = true
}
variable "verifier" {
  type      = string
  sensitive = true
}
variable "later" {
  type = string
}
locals {
  all = { a = var.token, b = [var.token] }
}
tenant "acme" {
  display_name = "Acme ${var.token}"
}
tenant_db "lake" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}
role "r" {
  tenant      = tenant.acme
  description = var.token

  permission {
    catalog    = "d ${var.token}"
    privileges = ["all"]
  }
}
group "later" {
  tenant      = tenant.acme
  description = var.later
}
user "ana" {
  tenant   = tenant.acme
  roles    = [role.r]
  password = var.pass
  email    = "${var.token}@x"
}
user "bob" {
  tenant            = tenant.acme
  password_verifier = var.verifier
}
module "inner" {
  source = "./inner"
  token  = var.token
  tenant = tenant.acme.name
}
output "result" {
  value     = var.result
  sensitive = true
}
output "deep" {
  value     = { a = local.all, b = [module.inner.token] }
  sensitive = true
}
output "later" {
  value = var.later
}
check "token" {
  assert {
    condition     = length(var.token) > 1000
    error_message = "The token is ${var.token}."
  }
  assert {
    condition     = tonumber(var.token) > 1
    error_message = "It is no number."
  }
}
`

const vaultInner = `variable "token" {
  type = string
}
variable "tenant" {
  type = string
}
group "all" {
  for_each    = { one = var.token }
  tenant      = var.tenant
  description = "inner ${each.value}"
}
output "token" {
  value = var.token
}
`

const vaultJSON = `{"user": {"json": {"tenant": "${tenant.acme}", "email": "${var.token}@json", "password": "${var.pass}"}}}`

// secrecy runs commands whose output must show nothing of what is sensitive.
type secrecy struct {
	*installation
	hidden map[string]string // what is looked for, by what it is
	seen   int               // commands
}

func newSecrecy(t *testing.T) *secrecy {
	s := &secrecy{installation: install(t, ""), hidden: map[string]string{}}
	for name, value := range sensitive {
		if name != "later" {
			s.hide(name, core(value))
		}
		s.env = append(s.env, "QOD_VAR_"+name+"="+value)
	}
	s.env = append(s.env, "TMPDIR="+filepath.Join(s.root, "tmp"))
	for name, content := range map[string]string{"main.qod.hcl": vault, "inner/inner.qod.hcl": vaultInner, "more.qod.json": vaultJSON} {
		s.put(t, name, content)
	}
	if err := os.MkdirAll(filepath.Join(s.root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// everyForm is a text as bytes are written: base64 has three, by where the text begins in what is encoded.
func everyForm(text string) map[string]string {
	out := forms([]byte(text))
	delete(out, "base64")
	delete(out, "base64url")
	for before := range 3 {
		padded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		out[fmt.Sprintf("base64 after %d", before)] = padded[(before*8+5)/6 : len(padded)-2]
	}
	return out
}

func (s *secrecy) hide(name, text string) {
	for form, text := range everyForm(text) {
		s.hidden[name+" as "+form] = text
	}
}

func (s *secrecy) put(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// set gives a variable another value from here on.
func (s *secrecy) set(name, value string) { s.env = append(s.env, "QOD_VAR_"+name+"="+value) }

// run runs commands, a line each, and looks at what they say. It returns the last output.
func (s *secrecy) run(t *testing.T, lines string) string {
	t.Helper()
	out := ""
	for line := range strings.Lines(lines) {
		if args := strings.Fields(line); len(args) > 0 {
			for i, arg := range args {
				if strings.HasSuffix(arg, ".qodplan") {
					args[i] = filepath.Join(s.dir, arg)
				}
			}
			s.seen++
			out, _ = s.qod(t, args...)
			s.look(t, "qod "+line, []byte(out))
		}
	}
	return out
}

func (s *secrecy) look(t *testing.T, what string, content []byte) {
	t.Helper()
	for name, text := range s.hidden {
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s shows %s:\n%s", strings.TrimSpace(what), name, content[:min(len(content), 3000)])
		}
	}
}

// apply has to succeed, in JSON.
func (s *secrecy) apply(t *testing.T, args ...string) {
	t.Helper()
	s.look(t, "apply", []byte(s.must(t, append([]string{"apply", "--auto-approve", "--json"}, args...)...)))
}

const (
	reading = `validate
		validate --json
		render
		render --json
		graph
		graph --type plan
		verify
		verify --json
		plan
		plan --json
		plan --destroy --json
		plan --refresh-only
		drift
		drift --json
		fmt --diff --check --recursive`
	looking = `show
		show --json
		output
		state list --id
		state show user.ana
		state show role.r
		state show module.inner.group.all["one"]
		status
		wait --timeout 0s
		export
		export --json
		export --unowned
		history
		history --json
		diff 0
		diff 0 --json
		config
		__complete state show u`
)

// Whatever is sensitive, of whatever kind, is in no output of any command, in no log, file or argument, from
// the first plan to after its block is gone.
func TestDeclarativeSecrets(t *testing.T) {
	s := newSecrecy(t)
	s.run(t, reading)
	s.apply(t)
	s.run(t, reading+"\n"+looking)
	first := s.newest(t)
	s.hideLater(t)
	s.changes(t)
	s.conflicts(t)
	s.hideCatalog(t)
	s.endings(t, first)
	s.run(t, looking)
	s.everyRevision(t)
	s.console(t)
	s.mistakes(t)
	s.files(t)
	if s.seen < 150 {
		t.Errorf("only %d commands were looked at", s.seen)
	}
}

// newest returns the number of the last revision.
func (s *secrecy) newest(t *testing.T) int {
	t.Helper()
	var history struct{ Commits []struct{ Revision int } }
	if err := json.Unmarshal([]byte(s.must(t, "history", "--json", "--all", "--limit", "1")), &history); err != nil {
		t.Fatal(err)
	}
	return history.Commits[0].Revision
}

// hideLater declares a value sensitive that was none and was shown; from here on it is not.
func (s *secrecy) hideLater(t *testing.T) {
	t.Helper()
	if out, _ := s.qod(t, "show"); !strings.Contains(out, core(sensitive["later"])) {
		t.Fatal("what is not sensitive is not shown either")
	}
	s.edit(t, "variable \"later\" {\n  type = string", "variable \"later\" {\n  type      = string\n  sensitive = true")
	s.edit(t, "value = var.later", "value     = var.later\n  sensitive = true")
	s.apply(t)
	s.hide("later", core(sensitive["later"]))
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// site is a directory with a configuration, and a store in Postgres.
type site struct {
	*testing.T
	dir string
}

func newSite(t *testing.T) *site {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
	t.Setenv("QOD_DATABASE_URL", pgtest.Database(t))
	t.Setenv("QOD_ADMIN_PASSWORD", "correct horse battery staple")
	return &site{t, dir}
}

// applied writes the file and applies it.
func (p *site) applied(blocks string) {
	p.Helper()
	src := "qod {\n  stack = \"s\"\n}\n" + blocks
	if err := os.WriteFile(filepath.Join(p.dir, "main.qod.hcl"), []byte(src), 0o644); err != nil {
		p.Fatal(err)
	}
	p.run(0, "apply", "--auto-approve")
}

// run runs a command line, which must end with the code, and returns all that it said.
func (p *site) run(code int, args ...string) string {
	p.Helper()
	got, out := command(p.T, "", args...)
	if got != code {
		p.Fatalf("qod %s ended with %d, want %d:\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

// says runs a command line whose output has to match each pattern.
func (p *site) says(code int, args string, patterns ...string) {
	p.Helper()
	out := p.run(code, strings.Fields(args)...)
	for _, pattern := range patterns {
		if !regexp.MustCompile(`(?m)` + pattern).MatchString(out) {
			p.Errorf("qod %s does not say %s:\n%s", args, pattern, out)
		}
	}
}

const (
	firstBlocks  = "tenant \"acme\" {\n  display_name = \"One\"\n}\nrole \"owner\" {\n  tenant = tenant.acme\n}\n"
	secondBlocks = "tenant \"acme\" {\n  display_name = \"Two\"\n}\nrole \"guest\" {\n  tenant = tenant.acme\n}\n"
)

// The cluster's key and the administrator are the first two revisions; the stack's start at 3.
func TestHistoryDiffRollback(t *testing.T) {
	p := newSite(t)
	p.applied(firstBlocks)
	p.applied(secondBlocks)
	p.says(0, "history", `^4 .* s +\+1 ~1 -1$`, `^3 .* s +\+2 ~0 -0$`)
	if out := p.run(0, "history"); strings.Contains(out, "system") {
		t.Errorf("the history of one stack has another:\n%s", out)
	}
	p.says(0, "history --all --limit 1", `^4 `)
	p.says(0, "history --all", `^2 .* system +\+1 ~0 -0$`)
	p.says(0, "history --json", `"revision": 4`, `"destroy": 1`)
	p.says(0, "history 4", `^Revision 4, .* by `, `\| Plan: 1 to add`, `~ display_name = "One" -> "Two"`, `role\.acme/owner was destroyed`)
	p.says(1, "history 9", `there is no revision 9 yet: the newest is 4`)
	p.says(1, "history x", `is no revision`)
	p.says(0, "diff 3", `From revision 3 to revision 4`, `role\.acme/guest was created`, `^\+1 ~1 -1\.$`)
	p.says(2, "diff 4 3 --detailed-exitcode", `~ display_name = "Two" -> "One"`)
	p.says(0, "diff 4 --detailed-exitcode", `Nothing differs`)
	p.says(0, "diff 3 4 --json", `"object": "role.acme/guest"`, `"before": "One"`)

	p.says(1, "rollback 0", `qod destroy`)
	p.says(1, "rollback 3", `Back to revision 3`, `\+ role "owner"`, `it was not there at revision 3`, `there is no terminal`)
	p.says(0, "rollback 3 --auto-approve", `Rollback complete`, `^Your files still say otherwise`)
	p.says(0, "diff 3 --json", `"changes": \[\n +\{\n +"action": "destroyed",\n +"object": "role.acme/owner"`, `"action": "created",\n +"object": "role.acme/owner"`)
	p.says(0, "state show tenant.acme", `display_name = "One"`, `^# revision +5$`, `^# written .* by `)
	p.says(0, "rollback 5 --auto-approve", `No changes`)
	// The files still say otherwise.
	p.says(2, "plan --detailed-exitcode", `"One" -> "Two"`)
	p.says(0, "rollback 4 --out back.qodplan", `Saved to back.qodplan`)
	p.says(0, "apply back.qodplan", `Apply complete`)
	p.says(0, "plan --detailed-exitcode", `No changes`)
}

func TestState(t *testing.T) {
	p := newSite(t)
	p.applied(firstBlocks + "user \"all\" {\n  for_each = toset([\"ana\", \"bob\"])\n  tenant = tenant.acme\n  password = \"correct horse battery\"\n}\n")
	p.says(0, "state list", `^tenant\.acme$`, `^user\.all\["ana"\]$`)
	p.says(0, "state list user.all --id", `^user\.all\["bob"\]  [0-9a-f-]{36}  user\.acme/bob$`)
	p.says(1, "state list user.al", `Did you mean`)
	p.says(0, "state show user.acme/ana", `^# stack +s, at user\.all\["ana"\]$`, `^user\.all\["ana"\] \{$`, `password = \(sensitive value\)`)
	p.says(1, "state show user.all", `holds 2 objects`)
	p.says(1, "state show user.acme/nobody", `there is no object`)
	p.says(0, `__complete state mv u`, `^user\.all\["ana"\]$`)

	p.says(0, "state mv user.all user.people --dry-run", `^Would move user\.all\["ana"\] to user\.people\["ana"\]$`)
	p.says(0, "state list", `^user\.all`)
	p.says(0, "state mv user.all user.people", `^Moves user\.all\["bob"\] to user\.people\["bob"\]$`, `Committed as revision 4`)
	p.says(0, "state list", `^user\.people\["ana"\]$`)
	p.says(1, "state mv role.owner tenant.owner", `not of one kind`)
	p.says(1, `state mv user.people user.one["x"]`, `several would be one`)
	p.says(1, `state mv user.people["ana"] user.people["bob"]`, `is the address of user\.acme/bob already`)
	p.says(1, "state mv user.peple user.x", `Did you mean`)
	p.says(0, "history", `^4 .* ~2 -0  state mv user\.all user\.people$`)

	p.says(0, "state rm user.people role.owner --dry-run", `^Would forget role\.owner \(role\.acme/owner\)$`)
	p.says(1, "state rm role.owner", `there is no terminal to ask at`)
	p.says(0, "state rm user.people role.owner --auto-approve", `Committed as revision 5`)
	p.says(0, "state list", `^tenant\.acme$`)
	p.says(0, "state show user.acme/bob", `no configuration owns it`, `password = \(sensitive value\)`)
	p.says(0, "history 5", `role\.acme/owner was forgotten by stack "s"`)
}

func TestOutput(t *testing.T) {
	p := newSite(t)
	p.applied(firstBlocks)
	p.says(0, "output", `Stack "s" has no outputs`)
	p.says(1, "output x", `there is no output "x"`)
	p.commitOutputs([]schema.Output{
		{Name: "endpoint", Value: cty.StringVal("grpc://x\n")}, {Name: "token", Value: cty.StringVal("clear text"), Sensitive: true},
		{Name: "big", Value: cty.MustParseNumberVal("12345678901234567890")}, {Name: "list", Value: cty.ListVal([]cty.Value{cty.True})},
		{Name: "none", Value: cty.NullVal(cty.String)},
	})
	if out := p.run(0, "output"); strings.Contains(out, "clear") || !strings.Contains(out, "token = (sensitive value)\n") {
		t.Errorf("output says:\n%s", out)
	}
	p.says(0, "output --json", `"value": "clear text"`, `"type": "string"`, `"value": 12345678901234567890,`)
	for args, want := range map[string]string{
		"endpoint": "\"grpc://x\\n\"\n", "endpoint --raw": "grpc://x\n", "token": "\"clear text\"\n", "token --raw": "clear text",
		"big --raw": "12345678901234567890", "list": "[true]\n", "list --json": "[true]\n", "none": "null\n",
	} {
		if got := p.run(0, append([]string{"output"}, strings.Fields(args)...)...); got != want {
			t.Errorf("qod output %s says %q, want %q", args, got, want)
		}
	}
	p.says(1, "output list --raw", `output list is list of bool`)
	p.says(1, "output none --raw", `output none is null`)
	p.says(1, "output tokn", `Did you mean "token"\?`)
	if out := p.run(0, "history", "4") + p.run(0, "diff", "3", "--json"); strings.Contains(out, "clear") || !strings.Contains(out, "endpoint") {
		t.Errorf("the history of outputs says:\n%s", out)
	}
}

// commitOutputs keeps outputs for the stack, as an apply does.
func (p *site) commitOutputs(outputs []schema.Output) {
	p.Helper()
	key, err := masterKey(filepath.Join(p.dir, "state", "master.key"), false)
	if err != nil {
		p.Fatal(err)
	}
	sealer, err := store.NewSealer(key)
	if err != nil {
		p.Fatal(err)
	}
	s, err := postgres.Open(p.Context(), postgres.Config{URL: os.Getenv("QOD_DATABASE_URL"), Sealer: sealer})
	if err != nil {
		p.Fatal(err)
	}
	defer s.Close()
	lineage, err := readLineage(p.dir, "s")
	if err != nil {
		p.Fatal(err)
	}
	change := store.Change{Stack: store.Stack{Name: "s", Lineage: lineage}, Outputs: outputs}
	if _, err := s.Commit(p.Context(), change); err != nil {
		p.Fatal(err)
	}
}

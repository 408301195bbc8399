package test

import (
	"os"
	"testing"
)

const beforeRows = `qod {
  stack = "codes"
}
tenant "acme" {
  display_name = "Acme"
}
`

// A plan ends with 2 when there is something to do, and what looks for drift only when something drifted.
func TestExitCodes(t *testing.T) {
	const drift = `UPDATE qodstate_object SET spec = jsonb_set(spec, '{display_name}', '"Changed"') WHERE kind = 'tenant' AND key = 'acme'`
	const deletion = `DELETE FROM qodstate_object WHERE kind = 'tenant' AND key = 'acme'`
	changed := `qod {
  stack = "codes"
}
tenant "acme" {
  display_name = "Acme One"
}
`
	rows := []struct {
		name                       string
		file                       string
		drift                      string
		plan, refreshOnly, drifted int
	}{
		{"no change", beforeRows, "", 0, 0, 0},
		{"config change", changed, "", 2, 0, 0},
		{"drift", beforeRows, drift, 2, 2, 2},
		{"both", changed, drift, 2, 2, 2},
		{"deleted by somebody else", beforeRows, deletion, 2, 2, 2},
		{"deleted, and no longer wanted", "qod {\n  stack = \"codes\"\n}\n", deletion, 0, 0, 0},
		{"outputs only", beforeRows + "output \"name\" {\n  value = tenant.acme.name\n}\n", "", 2, 0, 0},
		{"moved only", `qod {
  stack = "codes"
}
tenant "one" {
  name         = "acme"
  display_name = "Acme"
}
moved {
  from = tenant.acme
  to   = tenant.one
}
`, "", 2, 0, 0},
		{"import only", beforeRows + "tenant \"beta\" {}\nimport {\n  to = tenant.beta\n  id = \"beta\"\n}\n", "", 2, 0, 0},
	}
	i := install(t, "quickstart")
	i.write(t, "qod {\n  stack = \"elsewhere\"\n}\ntenant \"beta\" {}\n")
	i.must(t, "apply", "--auto-approve")
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			i.write(t, beforeRows)
			i.must(t, "apply", "--auto-approve")
			if row.drift != "" {
				i.execute(t, "qod", row.drift)
			}
			i.write(t, row.file)
			i.expect(t, row.plan, nil, "plan", "--detailed-exitcode")
			i.expect(t, row.refreshOnly, nil, "plan", "--refresh-only", "--detailed-exitcode")
			i.expect(t, row.drifted, nil, "drift")
		})
	}
	i.expect(t, 1, []string{"--target"}, "plan", "--target", "nonsense")
	i.withoutMasterKey(t)
}

// write replaces the configuration.
func (i *installation) write(t testing.TB, src string) {
	t.Helper()
	i.writeFile(t, "main.qod.hcl", src)
}

// withoutMasterKey sees that a store whose master key is missing is not taken for one that is not made yet.
func (i *installation) withoutMasterKey(t *testing.T) {
	key := i.state("master.key")
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"plan", "drift", "show", "output", "wait"} {
		i.expect(t, 1, []string{"put the copy there that you keep apart"}, command)
	}
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	i.must(t, "plan")
}

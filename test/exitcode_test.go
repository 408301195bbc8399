package test

import (
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
}

// write replaces the configuration.
func (i *installation) write(t testing.TB, src string) {
	t.Helper()
	i.writeFile(t, "main.qod.hcl", src)
}

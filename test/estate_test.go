package test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/samples"
	"github.com/qod-io/qod/test/terraform"
)

// thing is an object of the estate, of which both languages are written: <kind.label> refers to another one, by its name.
type thing struct {
	kind, label string
	body        map[string]string
	protected   bool
}

// estateVerifier is of a password that nobody needs.
const estateVerifier = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zm9ydHktdHdvIGJ5dGVzIG9mIGEgaGFzaCBoZXI"

// estate returns three tenants with what they have. Labels are names, which is what an export calls an object that has
// no place in a configuration.
func estate() []thing {
	var all []thing
	for n, tenant := range []string{"acme", "globex", "initech"} {
		add := func(kind, name string, body map[string]string) {
			if kind != "tenant" {
				body["tenant"] = "<tenant." + tenant + ">"
			}
			if kind != "pool_grant" {
				body["name"] = fmt.Sprintf("%q", name)
			}
			all = append(all, thing{kind: kind, label: name, body: body, protected: kind == "role" && strings.HasSuffix(name, "auditor")})
		}
		of := func(kind, name string) string { return fmt.Sprintf("<%s.%s-%s>", kind, tenant, name) }
		name := func(part string, more ...any) string { return tenant + "-" + fmt.Sprintf(part, more...) }

		body := map[string]string{"display_name": fmt.Sprintf("%q", strings.ToUpper(tenant)+" \"Data\" $${x} – é")}
		if n == 1 {
			body["auth"] = "issuer = \"https://login.globex.example\"\n    audience = [\"qod\", \"data\"]\n    groups_claim = \"groups\""
		}
		add("tenant", tenant, body)
		add("tenant_db", name("lake"), map[string]string{"kind": `"ducklake"`, "allow_destroy": "true"})
		add("pool", name("bi"), map[string]string{"tenant_db": of("tenant_db", "lake"), "nodes": "dual = 0"})
		add("pool", name("etl"), map[string]string{
			"tenant_db": of("tenant_db", "lake"), "nodes": "read = 0\n    write = 0", "memory": `"512MiB"`, "threads": "3",
			"statement_timeout": `"5m"`, "suspended": "true", "max_concurrent_per_node": "16", // a default, written all the same
		})
		estateAccess(n, add, of, name)
	}
	return all
}

// estateAccess adds who may do what in a tenant.
func estateAccess(n int, add func(kind, name string, body map[string]string), of func(kind, name string) string, name func(string, ...any) string) {
	add("role", name("reader"), map[string]string{"permission": "privileges = [\"select\"]\n    schema = \"main\"\n    table = \"orders\"\n\n" +
		"privileges = [\"select\", \"insert\", \"update\"]\n    catalog = \"*\"\n    table = \"notes\""})
	add("role", name("europe"), map[string]string{
		"description": `"Reads what is Europe's."`, "permission": `privileges = ["all"]`,
		"row_policy": "table = \"orders\"\n    predicate = \"region = 'EU' AND note <> '$${x}'\"\n\n" +
			"schema = \"main\"\n    table = \"customers\"\n    predicate = \"owner = current_user\"",
		"column_policy": "table = \"orders\"\n    column = \"price\"\n    action = \"mask\"\n    expression = \"round(price, -2)\"\n\n" +
			"table = \"orders\"\n    column = \"card\"\n    action = \"deny\"",
	})
	add("role", name("auditor"), map[string]string{"description": `""`})
	add("role", name("owner"), map[string]string{})
	add("group", name("staff"), map[string]string{"roles": "[" + of("role", "reader") + ", " + of("role", "europe") + "]"})
	add("group", name("guests"), map[string]string{"description": `"Come and go."`, "roles": "[]"})
	users := 13
	if n == 0 {
		users++
	}
	for u := range users {
		body := map[string]string{"groups": "[" + of("group", "staff") + "]", "email": fmt.Sprintf(`"u%d@example.com"`, u)}
		switch u % 4 {
		case 0:
			body["password"], body["password_version"] = "var.password", fmt.Sprint(u)
		case 1:
			body["password_verifier"] = "var.verifier"
		case 2:
			body["groups"] = "[" + of("group", "staff") + ", " + of("group", "guests") + "]"
			body["roles"] = "[" + of("role", "owner") + ", \"qod:writer\", \"qod:reader\"]"
		case 3:
			body["disabled"], body["admin"] = "true", "false"
		}
		add("user", name("u%d", u), body)
	}
	for _, g := range [][3]string{{"bi", "group", "staff"}, {"etl", "role", "owner"}, {"etl", "user", "u3"}} {
		label := strings.Join([]string{name(g[0]), g[1], name(g[2])}, "_")
		add("pool_grant", label, map[string]string{"pool": of("pool", g[0]), g[1]: of(g[1], g[2])})
	}
}

var estateRef = regexp.MustCompile(`<(\w+)\.([\w-]+)>`)

// estateText writes the things with a function of package samples. What they refer to is written as in ref.
func estateText(t *testing.T, write func(*schema.Kind, string, map[string]string) string, ref, protection string) string {
	t.Helper()
	out := &strings.Builder{}
	for _, o := range estate() {
		k, ok := schema.Lookup(o.kind)
		if !ok {
			t.Fatalf("there is no kind %s", o.kind)
		}
		text := estateRef.ReplaceAllString(write(k, o.label, o.body), ref)
		if o.protected {
			text = strings.TrimSuffix(text, "}\n\n") + protection + "}\n\n"
		}
		out.WriteString(text)
	}
	return string(hclwrite.Format([]byte(out.String())))
}

// printed returns what a command writes to its standard output.
func (i *installation) printed(t *testing.T, args ...string) string {
	t.Helper()
	out, err := i.command(t.Context(), args...).Output()
	if err != nil {
		t.Fatalf("qod %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// One estate is the same whoever wrote it: qod's own configuration on one installation, Terraform on another. Both export
// the same bytes, of which nothing is left to do on either.
func TestOneEstateInTwoLanguages(t *testing.T) {
	count := map[string]int{}
	for _, o := range estate() {
		count[o.kind]++
	}
	want := map[string]int{"tenant": 3, "tenant_db": 3, "pool": 6, "user": 40, "role": 12, "group": 6, "pool_grant": 9}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Fatalf("the estate (-want +got):\n%s", diff)
	}

	terraformed, place := terraformed(t)
	written := install(t, "")
	for _, i := range []*installation{written, terraformed} {
		i.env = append(i.env, "QOD_VAR_password="+secrets["analyst_password"], "QOD_VAR_verifier="+estateVerifier)
	}
	w := terraform.New(t, place.Server, place.Token)
	w.Env = append(w.Env, "TF_VAR_password="+secrets["analyst_password"], "TF_VAR_verifier="+estateVerifier)

	variables := "variable \"password\" {\n  %[1]s = true\n}\n\nvariable \"verifier\" {\n  %[1]s = true\n}\n\n"
	config := "qod {\n  stack = \"core\"\n}\n\n" + fmt.Sprintf(variables, "sensitive") +
		estateText(t, samples.Block, "$1.$2", "  lifecycle {\n    prevent_destroy = true\n  }\n")
	written.writeFile(t, "main.qod.hcl", config)
	written.must(t, "apply", "--auto-approve")
	w.Write(t, "main.tf", fmt.Sprintf(variables, "ephemeral")+estateText(t, samples.Resource, "qod_$1.$2.name", "  protected = true\n"))
	w.Apply(t)
	w.Unchanged(t)
	w.KeepsNoSecret(t, []string{place.Token, secrets["analyst_password"], estateVerifier})

	exports := map[string]string{}
	for _, format := range []string{"hcl", "json", "terraform"} {
		exports[format] = written.printed(t, "export", "--format", format)
		if got := terraformed.printed(t, "export", "--stack", "core", "--format", format); got != exports[format] {
			t.Errorf("the export as %s (-of qod +of Terraform):\n%s", format, cmp.Diff(exports[format], got))
		}
	}
	// The configuration of one is that of the other.
	terraformed.writeFile(t, "main.qod.hcl", config)
	terraformed.must(t, "apply", "--adopt-stack", "--auto-approve")
	if got := terraformed.printed(t, "export"); got != exports["hcl"] {
		t.Errorf("the export after qod took it over:\n%s", cmp.Diff(exports["hcl"], got))
	}
	terraformed.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	w.Unchanged(t)
}

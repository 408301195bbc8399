package test

import (
	"strings"
	"testing"

	"github.com/qod-io/qod/test/terraform"
)

// terraformed starts a server without objects, and makes a token of its administrator.
func terraformed(t *testing.T) (*installation, *terraform.Place) {
	t.Helper()
	i := install(t, "")
	s := i.serve(t)
	token := strings.TrimSpace(lastLine(i.must(t, "token", "create", "admin")))
	return i, &terraform.Place{
		Server: "http://" + s.HTTP, Token: token, Secrets: func() []string { return []string{token, secrets["admin"], "matrix-S3cret"} },
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// The real Terraform and a real serve: what the provider's own tests show against a double.
func TestTerraform(t *testing.T) {
	for name, suite := range map[string]func(*testing.T, *terraform.Place){
		"every attribute": terraform.EveryAttribute, "imports": terraform.Imports, "drift": terraform.Drift,
		"deleted by others and destroyed": terraform.DeletedByOthersAndDestroyed,
	} {
		t.Run(name, func(t *testing.T) {
			_, place := terraformed(t)
			suite(t, place)
		})
	}
}

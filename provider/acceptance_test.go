package provider

import (
	"testing"

	"github.com/qod-io/qod/test/terraform"
)

// The same suite runs against a real server in ./test.
func TestAcceptance(t *testing.T) {
	for name, suite := range terraform.Suites() {
		t.Run(name, func(t *testing.T) {
			d := newDouble(t)
			suite(t, &terraform.Place{Server: d.URL, Token: doubleToken, Secrets: func() (sent []string) {
				d.with(func() { sent = append([]string{doubleToken}, d.secrets...) })
				return sent
			}})
			d.with(func() {
				if len(d.moved) > 0 {
					t.Errorf("nobody else changed anything, and these had moved on: %v", d.moved)
				}
			})
		})
	}
}

func TestBuildsWithoutCGO(t *testing.T) { terraform.Provider(t) }

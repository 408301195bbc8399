package provider

import (
	"math/rand/v2"
	"testing"

	"github.com/qod-io/qod/test/terraform"
)

// The suites run twice, so that neither what Terraform does at once nor the order in which a server answers makes a
// difference. They run against a real server in ./test.
func TestAcceptance(t *testing.T) {
	for _, world := range []struct {
		name        string
		parallelism int
		seed        uint64
	}{{"1 in order", 1, 0}, {"16 shuffled", 16, 20261130}} {
		for name, suite := range terraform.Suites() {
			t.Run(world.name+" "+name, func(t *testing.T) {
				d := newDouble(t)
				if world.seed != 0 {
					d.order = rand.New(rand.NewPCG(world.seed, 0))
				}
				suite(t, &terraform.Place{Server: d.URL, Token: doubleToken, Parallelism: world.parallelism, Secrets: func() (sent []string) {
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
}

func TestBuildsWithoutCGO(t *testing.T) { terraform.Provider(t) }

package schema_test

import (
	"testing"

	"github.com/qod-io/qod/schema"
)

func TestNearest(t *testing.T) {
	known := []string{"tenant", "tenant_db", "pool", "user"}
	tests := map[string]struct{ given, want string }{
		"one letter off":          {"tenent", "tenant"},
		"two letters off":         {"pooll_", "pool"},
		"closest first":           {"tenant_d", "tenant_db"},
		"start of a name":         {"ten", "tenant"},
		"name with an end":        {"user_name", "user"},
		"known":                   {"pool", ""},
		"far":                     {"database", ""},
		"short is not everything": {"x", ""},
		"empty":                   {"", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := schema.Nearest(tt.given, known); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

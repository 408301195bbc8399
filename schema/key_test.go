package schema_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

func TestParseKey(t *testing.T) {
	tests := []struct{ kind, path, want string }{
		{"tenant", "acme", "tenant.acme"},
		{"tenant", "Acme", "tenant.acme"},
		{"tenant", "acme/bi", `want NAME`},
		{"pool", "acme/bi", "pool.acme/bi"},
		{"pool", "bi", `"bi" does not name a pool: want TENANT/NAME`},
		{"pool", "acme/", `want TENANT/NAME`},
		{"pool", "acme/b/i", `want TENANT/NAME`},
		{"pool", "", `want TENANT/NAME`},
		{"user", "acme/ana", "user.acme/ana"},
		{"user", "root", "user.root"},
		{"user", "a/b/c", "want TENANT/NAME or NAME"},
		{"pool_grant", "acme/bi/user:ana", "pool_grant.acme/bi/user:ana"},
		{"pool_grant", "acme/*/role:r", "pool_grant.acme/*/role:r"},
		{"pool_grant", "acme/bi/ana", "want TENANT/POOL/user:NAME (or group:NAME, role:NAME)"},
		{"pool_grant", "acme/bi/pool:ana", "want TENANT/POOL/user:NAME (or group:NAME, role:NAME)"},
		{"pool_grant", "acme/bi/user:", "want TENANT/POOL/user:NAME"},
		{"user", "acme/a%2Fb%25%3A", "user.acme/a%2Fb%25%3A"},
		{"user", "acme/a%2fb", "/ is written %2F"},
		{"user", "acme/a:b", ": is written %3A"},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.path, func(t *testing.T) {
			kind, _ := schema.Lookup(tt.kind)
			addr, err := kind.ParseKey(tt.path)
			got := addr.String()
			if err != nil {
				got = err.Error()
			}
			if err == nil {
				if back := kind.Addr(keyed(kind, kind.KeyValues(addr))); back != addr {
					t.Errorf("KeyValues gives %s", back)
				}
			}
			if err == nil && got != tt.want || !strings.Contains(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func keyed(k *schema.Kind, values map[string]string) cty.Value {
	attrs := k.Empty().AsValueMap()
	for name, text := range values {
		attrs[name] = cty.StringVal(text)
	}
	return cty.ObjectVal(attrs)
}

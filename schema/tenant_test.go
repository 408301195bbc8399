package schema_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

func TestTenantAuth(t *testing.T) {
	const issuer = "https://login.acme.example"
	many := make([]cty.Value, 17)
	for i := range many {
		many[i] = cty.StringVal(strconv.Itoa(i))
	}
	tests := map[string]struct {
		issuer, claim string
		audience      []cty.Value
		want          string // "" passes
	}{
		"good":               {issuer: issuer},
		"path, port, slash":  {issuer: issuer + ":8443/realms/data/"},
		"http on loopback":   {issuer: "http://127.0.0.1:5556/dex"},
		"http on ::1":        {issuer: "http://[::1]:5556"},
		"http on localhost":  {issuer: "http://localhost:5556"},
		"nested claim":       {issuer: issuer, claim: "realm_access.name"},
		"http":               {issuer: "http://login.acme.example", want: "want https, or http on a loopback address"},
		"http, looks local":  {issuer: "http://localhost.acme.example", want: "want https, or http on a loopback address"},
		"http, wildcard":     {issuer: "http://0.0.0.0:80", want: "want https, or http on a loopback address"},
		"other scheme":       {issuer: "file:///etc", want: "want https, or http on a loopback address"},
		"no host":            {issuer: "https:///realms", want: "it names no host"},
		"no host, but port":  {issuer: "https://:443", want: "it names no host"},
		"not a URL":          {issuer: "https://a b", want: "is not the URL of an issuer"},
		"password":           {issuer: "https://u:secret@login.acme.example", want: "it must have no user, query or fragment"},
		"query":              {issuer: issuer + "?a=b", want: "it must have no user, query or fragment"},
		"fragment":           {issuer: issuer + "#", want: "it must have no user, query or fragment"},
		"long":               {issuer: issuer + "/" + strings.Repeat("a", 600), want: "it has more than 512 bytes"},
		"no audience":        {issuer: issuer, audience: []cty.Value{}, want: "name at least one audience"},
		"empty audience":     {issuer: issuer, audience: []cty.Value{cty.StringVal("")}, want: "want 1 to 255 printable bytes"},
		"too many audiences": {issuer: issuer, audience: many, want: "at most 16"},
		"odd claim":          {issuer: issuer, claim: "a\x00", want: "want 1 to 255 printable bytes"},
	}
	tenant, _ := schema.Lookup("tenant")
	block, _ := tenant.Block("auth")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			audience := cty.SetVal([]cty.Value{cty.StringVal("qod")})
			switch {
			case tt.audience != nil && len(tt.audience) == 0:
				audience = cty.SetValEmpty(cty.String)
			case tt.audience != nil:
				audience = cty.SetVal(tt.audience)
			}
			claim := cty.NullVal(cty.String)
			if tt.claim != "" {
				claim = cty.StringVal(tt.claim)
			}
			v := tenant.Empty().AsValueMap()
			v["name"] = cty.StringVal("acme")
			v[block.Name] = cty.ObjectVal(map[string]cty.Value{
				"issuer": cty.StringVal(tt.issuer), "audience": audience, "username_claim": claim,
				"roles_claim": cty.NullVal(cty.String), "groups_claim": claim,
			})
			_, problems := tenant.Complete(cty.ObjectVal(v))
			got := ""
			if len(problems) > 0 {
				got = problems[0].Message
			}
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if strings.Contains(got, "secret") {
				t.Errorf("a password is shown: %q", got)
			}
		})
	}
}

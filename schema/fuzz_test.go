package schema_test

import (
	"testing"
	"unicode/utf8"

	"github.com/qod-io/qod/schema"
)

// FuzzAddress reads any text as an address of either form: what is read prints, and reads back as the same.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{
		"pool.bi", `user.all["a\"na"]`, `module.eu.pool.bi`, `module.r["e${u}"].module.x.user.all["%{y}"]`, "pool.acme/bi", "acme/bi",
		"pool_grant.acme/*/user:ana", "user.a%2Fb/c%3Ad%25", "ana@corp.com", `user.all["\u65e5\n"]`, `user.naïve["e\u0301"]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := schema.ParseAddress(text); err == nil {
			again, err := schema.ParseAddress(a.String())
			if err != nil || again.String() != a.String() || !a.Contains(again) || !again.Contains(a) {
				t.Errorf("%q is read as %#v, which prints as %q and is read as %#v: %v", text, a, a, again, err)
			}
		}
		if a, err := schema.ParseAddr(text); err == nil {
			again, err := schema.ParseAddr(a.String())
			if err != nil || again != a {
				t.Errorf("%q is read as %#v, and that as %#v: %v", text, a, again, err)
			}
		}
		for _, k := range schema.Kinds() {
			a, err := k.ParseKey(text)
			if err != nil || !utf8.ValidString(text) {
				continue
			}
			if again, err := k.ParseKey(a.Path); err != nil || again != a {
				t.Errorf("the key %q of a %s is read as %#v, and that as %#v: %v", text, k.Name, a, again, err)
			}
		}
	})
}

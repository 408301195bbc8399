package schema_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/qod-io/qod/schema"
)

var update = flag.Bool("update", false, "write the derived files")

// Every kind has an example that decodes, encodes and reads back as it was.
func TestExamplesRoundTrip(t *testing.T) {
	for _, k := range schema.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			v := example(t, k)
			raw, err := k.Encode(v)
			if err != nil {
				t.Fatal(err)
			}
			back, err := k.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			if !back.RawEquals(v) {
				t.Errorf("decoded %#v, want %#v", back, v)
			}
			again, err := k.Encode(back)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(raw), string(again)); diff != "" {
				t.Errorf("encoding is not stable (-first +second):\n%s", diff)
			}
			if _, problems := k.Complete(v); len(problems) > 0 {
				t.Errorf("example has problems: %v", problems)
			}
			for _, a := range k.Attrs {
				if v.GetAttr(a.Name).IsNull() && a.Name != "system" && a.Name != "group" && a.Name != "role" && a.Name != "password_verifier" {
					t.Errorf("example does not show %s", a.Name)
				}
			}
		})
	}
}

func example(t *testing.T, k *schema.Kind) cty.Value {
	t.Helper()
	path := filepath.Join("..", "examples", "kinds", k.Name+".hcl")
	f, diags := hclparse.NewParser().ParseHCLFile(path)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	body, diags := f.Body.Content(hcldec.ImpliedSchema(hcldec.ObjectSpec{
		"x": &hcldec.BlockSpec{TypeName: k.Name, Nested: k.Spec()},
	}))
	if diags.HasErrors() || len(body.Blocks) != 1 {
		t.Fatalf("%s: want one block %s: %v", path, k.Name, diags)
	}
	v, diags := hcldec.Decode(body.Blocks[0].Body, k.Spec(), nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, err := convert.Convert(v, k.Type())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestReferencePagesAreCurrent(t *testing.T) {
	for _, k := range schema.Kinds() {
		path := filepath.Join("..", "docs", "reference", k.Name+".md")
		if *update {
			if err := os.WriteFile(path, []byte(k.Markdown()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), k.Markdown()); diff != "" {
			t.Errorf("%s differs (-file +kind); run: go test ./schema -update\n%s", path, diff)
		}
	}
}

func TestReferencesNameKinds(t *testing.T) {
	for _, k := range schema.Kinds() {
		if k.Version < 1 || k.Doc == "" {
			t.Errorf("%s has no version or no documentation", k.Name)
		}
		for _, a := range k.Attrs {
			if _, ok := schema.Lookup(a.Ref); a.Ref != "" && !ok {
				t.Errorf("%s.%s refers to unknown kind %q", k.Name, a.Name, a.Ref)
			}
			if a.Doc == "" || a.Effect == "" {
				t.Errorf("%s.%s has no documentation or no effect", k.Name, a.Name)
			}
		}
	}
}

func TestAddrParsesBack(t *testing.T) {
	tests := map[string]schema.Addr{
		"pool.acme/bi":                   schema.NewAddr("pool", "acme", "bi"),
		"user.acme/ann@corp.com":         schema.NewAddr("user", "acme", "Ann@Corp.com"),
		"user.acme/o%2Fneil%25@corp.com": schema.NewAddr("user", "acme", "o/neil%@corp.com"),
	}
	for text, addr := range tests {
		if addr.String() != text {
			t.Errorf("printed %q, want %q", addr, text)
		}
		back, err := schema.ParseAddr(text)
		if err != nil || back != addr {
			t.Errorf("parsed %v, %v; want %v", back, err, addr)
		}
	}
	for _, bad := range []string{"", "pool", "pool.", "cow.acme/bi"} {
		if _, err := schema.ParseAddr(bad); err == nil {
			t.Errorf("%q parsed", bad)
		}
	}
}

func TestRefs(t *testing.T) {
	pool, _ := schema.Lookup("pool")
	v := pool.Empty().AsValueMap()
	v["tenant"], v["name"], v["tenant_db"] = cty.StringVal("acme"), cty.StringVal("bi"), cty.StringVal("sales")
	want := []schema.Ref{{Attr: "tenant", To: schema.NewAddr("tenant", "acme")}, {Attr: "tenant_db", To: schema.NewAddr("tenant_db", "acme", "sales")}}
	if diff := cmp.Diff(want, pool.Refs(cty.ObjectVal(v))); diff != "" {
		t.Error(diff)
	}
}

func TestChecks(t *testing.T) {
	tests := map[string]struct {
		kind string
		set  map[string]cty.Value
		want string // "" passes
	}{
		"good":              {"tenant", map[string]cty.Value{"name": cty.StringVal("acme")}, ""},
		"upper case":        {"tenant", map[string]cty.Value{"name": cty.StringVal("Acme")}, `"Acme" is not a name: want a letter a-z first, then at most 62 of a-z, 0-9, _ and -; "acme" would do`},
		"no name":           {"tenant", nil, "name is required"},
		"e-mail with space": {"user", map[string]cty.Value{"tenant": cty.StringVal("acme"), "name": cty.StringVal("Ann O'Neil@corp.com")}, ""},
		"outer space":       {"user", map[string]cty.Value{"tenant": cty.StringVal("acme"), "name": cty.StringVal(" ann@corp.com")}, `" ann@corp.com" is not a name: want a letter a-z first, then at most 62 of a-z, 0-9, _ and -`},
		"reserved":          {"tenant_db", map[string]cty.Value{"tenant": cty.StringVal("acme"), "kind": cty.StringVal("ducklake"), "name": cty.StringVal("main")}, `"main" is reserved by DuckDB and cannot be the name of a database`},
		"memory":            {"pool", pool("memory", cty.StringVal("1 cow")), `"1 cow" is not a size: write it as 512MiB or 2GiB`},
		"little memory":     {"pool", pool("memory", cty.StringVal("1MiB")), "1MiB is too little for a node: want at least 64MiB"},
		"threads":           {"pool", pool("threads", cty.NumberFloatVal(1.5)), "1.5 is out of range: want a whole number from 1 to 256"},
		"timeout":           {"pool", pool("statement_timeout", cty.StringVal("soon")), `"soon" is not a duration: write it as 90s, 5m or 1h`},
		"runtime":           {"pool", pool("runtime", cty.StringVal("fleet")), `"fleet" is not known: want local`},
		"email":             {"user", map[string]cty.Value{"tenant": cty.StringVal("acme"), "name": cty.StringVal("Ann@corp.com")}, ""},
		"verifier":          {"user", verifier("m=65536,t=8,p=4"), ""},
		"costly verifier":   {"user", verifier("m=65537,t=2,p=1"), "this argon2id verifier costs too much to check: at most m=65536,t=8,p=4 is allowed"},
		"no cost":           {"user", verifier("x=1"), "this argon2id verifier does not name its cost as m=…,t=…,p=…"},
		"user without":      {"user", map[string]cty.Value{"name": cty.StringVal("ann")}, "tenant is required, unless system = true"},
		"system and tenant": {"user", map[string]cty.Value{"name": cty.StringVal("ann"), "tenant": cty.StringVal("acme"), "system": cty.True}, "a system administrator belongs to no tenant: leave tenant out"},
		"two grantees": {"pool_grant", map[string]cty.Value{
			"tenant": cty.StringVal("acme"), "pool": cty.StringVal("bi"), "user": cty.StringVal("a"), "role": cty.StringVal("b"),
		}, "a pool_grant names exactly one of user, group and role"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k, _ := schema.Lookup(tt.kind)
			v := k.Empty().AsValueMap()
			for name, value := range tt.set {
				v[name] = value
			}
			_, problems := k.Complete(cty.ObjectVal(v))
			got := ""
			if len(problems) > 0 {
				got = problems[0].Message
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func verifier(cost string) map[string]cty.Value {
	return map[string]cty.Value{
		"tenant": cty.StringVal("acme"), "name": cty.StringVal("ann"),
		"password_verifier": cty.StringVal("$argon2id$v=19$" + cost + "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"),
	}
}

func pool(name string, v cty.Value) map[string]cty.Value {
	return map[string]cty.Value{"tenant": cty.StringVal("acme"), "name": cty.StringVal("bi"), "tenant_db": cty.StringVal("sales"), name: v}
}

// block is what an author writes in a nested block; what is not in set is left out.
func block(of *schema.Block, set map[string]cty.Value) cty.Value {
	values := map[string]cty.Value{}
	for i := range of.Attrs {
		a := &of.Attrs[i]
		values[a.Name] = cty.NullVal(a.Type)
		if v, ok := set[a.Name]; ok {
			values[a.Name] = v
		}
	}
	return cty.ObjectVal(values)
}

func words(list ...string) cty.Value {
	if len(list) == 0 {
		return cty.SetValEmpty(cty.String)
	}
	values := make([]cty.Value, len(list))
	for i, w := range list {
		values[i] = cty.StringVal(w)
	}
	return cty.SetVal(values)
}

func TestBlocksOfRoles(t *testing.T) {
	type set = map[string]cty.Value
	s := cty.StringVal
	tests := map[string]struct {
		block string
		set   set
		want  string // "" passes
	}{
		"all on everything":    {"permission", set{"privileges": words("all")}, ""},
		"some on a table":      {"permission", set{"schema": s("main"), "table": s("Orders"), "privileges": words("select", "insert")}, ""},
		"nothing":              {"permission", set{"privileges": words()}, "name at least one of all, select, insert, update, delete, create, alter or drop"},
		"no privileges":        {"permission", nil, "privileges is required"},
		"unknown privilege":    {"permission", set{"privileges": words("selct")}, `"selct" is not known: want all, select, insert, update, delete, create, alter or drop; did you mean "select"?`},
		"empty name":           {"permission", set{"table": s(" "), "privileges": words("all")}, "a name in SQL is not empty"},
		"longest name":         {"permission", set{"table": s(strings.Repeat("é", 127)), "privileges": words("all")}, ""},
		"long name":            {"permission", set{"table": s(strings.Repeat("é", 128)), "privileges": words("all")}, "a name in SQL has at most 255 bytes, and this has 256"},
		"NUL in a name":        {"permission", set{"schema": s("a\x00"), "privileges": words("all")}, "a name in SQL has no NUL character"},
		"rows":                 {"row_policy", set{"table": s("*"), "predicate": s("region = current_user")}, ""},
		"rows of no table":     {"row_policy", set{"predicate": s("true")}, "table is required"},
		"no predicate":         {"row_policy", set{"table": s("orders")}, "predicate is required"},
		"empty predicate":      {"row_policy", set{"table": s("orders"), "predicate": s("\t\n ")}, "this is SQL, and not empty"},
		"longest predicate":    {"row_policy", set{"table": s("orders"), "predicate": s(strings.Repeat("x", 1024))}, ""},
		"long predicate":       {"row_policy", set{"table": s("orders"), "predicate": s(strings.Repeat("x", 1025))}, "this has at most 1024 bytes, and not 1025"},
		"a denial":             {"column_policy", set{"table": s("orders"), "column": s("price"), "action": s("deny")}, ""},
		"a mask":               {"column_policy", set{"table": s("orders"), "column": s("price"), "action": s("mask"), "expression": s("NULL")}, ""},
		"a mask of nothing":    {"column_policy", set{"table": s("orders"), "column": s("price"), "action": s("mask")}, `action "mask" needs an expression, whose value is in place of the column's`},
		"a denial with a mask": {"column_policy", set{"table": s("orders"), "column": s("price"), "action": s("deny"), "expression": s("1")}, `action "deny" takes no expression: leave it out, or write action = "mask"`},
		"an empty mask":        {"column_policy", set{"table": s("orders"), "column": s("price"), "action": s("mask"), "expression": s("")}, "this is SQL, and not empty"},
		"unknown action":       {"column_policy", set{"table": s("orders"), "column": s("price"), "action": s("hide")}, `"hide" is not known: want deny or mask`},
		"every table":          {"column_policy", set{"table": s("*"), "column": s("price"), "action": s("deny")}, "a column policy names its table: with * it would be on tables without the column too, and those could not be used"},
		"every column":         {"column_policy", set{"table": s("orders"), "column": s("*"), "action": s("deny")}, "a column policy names one column: to keep a whole table from somebody, give no permission on it"},
		"no column":            {"column_policy", set{"table": s("orders"), "action": s("deny")}, "column is required"},
		"no action":            {"column_policy", set{"table": s("orders"), "column": s("price")}, "action is required"},
	}
	role, _ := schema.Lookup("role")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			of, ok := role.Block(tt.block)
			if !ok {
				t.Fatalf("a role has no block %s", tt.block)
			}
			v := role.Empty().AsValueMap()
			v["tenant"], v["name"] = s("acme"), s("r")
			v[of.Name] = cty.SetVal([]cty.Value{block(of, tt.set)})
			_, problems := role.Complete(cty.ObjectVal(v))
			got := ""
			if len(problems) > 0 {
				got = problems[0].Message
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A virtual role is held by name in every tenant, whatever its case, and refers to nothing; it cannot be made.
func TestVirtualRoles(t *testing.T) {
	user, _ := schema.Lookup("user")
	roles, _ := user.Attr("roles")
	v := user.Empty().AsValueMap()
	v["tenant"], v["name"] = cty.StringVal("acme"), cty.StringVal("ann")
	v["roles"] = words("qod:admin", "QOD:Reader", "owner", "qod:owner")
	want := []schema.Ref{
		{Attr: "tenant", To: schema.NewAddr("tenant", "acme")},
		{Attr: "roles", To: schema.NewAddr("role", "acme", "owner")},
		{Attr: "roles", To: schema.NewAddr("role", "acme", "qod:owner")},
	}
	if diff := cmp.Diff(want, user.Refs(cty.ObjectVal(v))); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"qod:admin", "qod:reader"}, roles.Literals(v["roles"])); diff != "" {
		t.Errorf("literals (-want +got):\n%s", diff)
	}
	for _, r := range schema.VirtualRoles() {
		if schema.CheckName(r.Name) == nil {
			t.Errorf("a role named %s could be made", r.Name)
		}
	}
}

func TestNumbersStayExact(t *testing.T) {
	user, _ := schema.Lookup("user")
	v := user.Empty().AsValueMap()
	v["password_version"] = cty.MustParseNumberVal("9007199254740993")
	raw, err := user.Encode(cty.ObjectVal(v))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"password_version":9007199254740993}`; string(raw) != want {
		t.Errorf("encoded %s, want %s", raw, want)
	}
}

// No attribute takes a number that is infinite or too large to be written down, and what is said of it is short.
func TestNumbersAreFinite(t *testing.T) {
	for _, text := range []string{"inf", "-inf", "1e600000000", "-1e600000000", "1e-600000000"} {
		v := cty.MustParseNumberVal(text)
		for _, k := range schema.Kinds() {
			for _, a := range k.Attrs {
				if a.Type == cty.Number {
					refuseNumber(t, k, a.Name, v)
				}
			}
			for _, b := range k.Blocks {
				item := map[string]cty.Value{}
				for _, a := range b.Attrs {
					item[a.Name] = cty.NullVal(a.Type)
				}
				for _, a := range b.Attrs {
					if a.Type != cty.Number {
						continue
					}
					with := maps.Clone(item)
					with[a.Name] = v
					if b.Single {
						refuseNumber(t, k, b.Name, cty.ObjectVal(with))
					} else {
						refuseNumber(t, k, b.Name, cty.SetVal([]cty.Value{cty.ObjectVal(with)}))
					}
				}
			}
		}
	}
}

func refuseNumber(t *testing.T, k *schema.Kind, name string, v cty.Value) {
	t.Helper()
	attrs := k.Empty().AsValueMap()
	attrs[name] = v
	_, problems := k.Complete(cty.ObjectVal(attrs))
	if !slices.ContainsFunc(problems, func(p schema.Problem) bool {
		return len(p.Path) > 0 && p.Path[0] == cty.GetAttrStep{Name: name} && strings.Contains(p.Message, "out of range") && len(p.Message) < 100
	}) {
		t.Errorf("%s.%s takes %#v: %v", k.Name, name, v, problems)
	}
}

// What is not known yet is no mistake, and what is known beside it is still judged.
func TestUnknownValuesAreNotJudged(t *testing.T) {
	for _, k := range schema.Kinds() {
		v := example(t, k)
		for _, name := range k.Names() {
			attrs := v.AsValueMap()
			attrs[name] = cty.UnknownVal(attrs[name].Type())
			out, problems := k.Complete(cty.ObjectVal(attrs))
			if len(problems) > 0 || out.GetAttr(name).IsKnown() {
				t.Errorf("%s without %s: %v", k.Name, name, problems)
			}
			if name == "name" || !slices.Contains(k.Names(), "name") {
				continue
			}
			attrs["name"] = cty.StringVal("No/Name")
			if _, problems := k.Complete(cty.ObjectVal(attrs)); len(problems) != 1 {
				t.Errorf("%s without %s and with a bad name: %v", k.Name, name, problems)
			}
		}
		for _, b := range k.Blocks {
			if b.Single {
				continue
			}
			attrs := v.AsValueMap()
			items := append(attrs[b.Name].AsValueSlice(), cty.UnknownVal(attrs[b.Name].Type().ElementType()))
			attrs[b.Name] = cty.SetVal(items)
			if _, problems := k.Complete(cty.ObjectVal(attrs)); len(problems) > 0 {
				t.Errorf("%s with an unknown %s: %v", k.Name, b.Name, problems)
			}
		}
	}
}

package schema_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

func TestReadIsStrict(t *testing.T) {
	for name, test := range map[string]struct {
		kind, json string
		want       []string
	}{
		"nothing":            {"pool", `{}`, nil},
		"nulls":              {"pool", `{"threads":null,"nodes":null}`, nil},
		"all of its types":   {"pool", `{"tenant":"a","threads":4,"disabled":true,"nodes":{"dual":1}}`, nil},
		"a number in quotes": {"pool", `{"threads":"4"}`, []string{"threads: want a number"}},
		"a bool as number":   {"pool", `{"disabled":1}`, []string{"disabled: want a bool"}},
		"no text":            {"pool", `{"name":{}}`, []string{"name: want a string"}},
		"a NUL":              {"pool", `{"name":"a\u0000"}`, []string{"name: a text with a NUL cannot be kept"}},
		"too long a number":  {"pool", `{"threads":1` + strings.Repeat("0", 80) + `}`, []string{"threads: want a number"}},
		"an unknown one":     {"pool", `{"thread":4}`, []string{`thread: there is no "thread" here. Did you mean "threads"?`}},
		"in a block":         {"pool", `{"nodes":{"dul":1,"read":"x"}}`, []string{"nodes.read: want a number", `nodes.dul: there is no "dul" here. Did you mean "dual"?`}},
		"no block":           {"pool", `{"nodes":[]}`, []string{"nodes: want an object"}},
		"no list":            {"user", `{"roles":"a"}`, []string{"roles: want a list"}},
		"elements of a set":  {"user", `{"roles":["a",null,1]}`, []string{"roles[1]: a null is not allowed here", "roles[2]: want a string"}},
		"one of its blocks":  {"role", `{"permission":[{},1,{"table":1}]}`, []string{"permission[1]: want an object", "permission[2].table: want a string"}},
	} {
		t.Run(name, func(t *testing.T) {
			k, _ := schema.Lookup(test.kind)
			var object map[string]any
			dec := json.NewDecoder(strings.NewReader(test.json))
			dec.UseNumber()
			if err := dec.Decode(&object); err != nil {
				t.Fatal(err)
			}
			written, problems := k.Read(object)
			var got []string
			for _, p := range problems {
				got = append(got, pathText(p.Path)+": "+p.Message)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if !written.Value.Type().Equals(k.Type()) {
				t.Errorf("got a %s", written.Value.Type().FriendlyName())
			}
		})
	}
}

func pathText(path cty.Path) string {
	out := ""
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			out += "." + step.Name
		case cty.IndexStep:
			out += "[" + step.Key.AsBigFloat().String() + "]"
		}
	}
	return strings.TrimPrefix(out, ".")
}

func TestTenantOf(t *testing.T) {
	for kind, test := range map[string]struct{ json, want string }{
		"tenant":     {`{"name":"Acme"}`, "acme"},
		"pool":       {`{"tenant":"Acme","name":"bi"}`, "acme"},
		"user":       {`{"name":"root"}`, ""},
		"pool_grant": {`{"tenant":"acme"}`, "acme"},
	} {
		k, _ := schema.Lookup(kind)
		v, err := k.Decode([]byte(test.json))
		if err != nil {
			t.Fatal(err)
		}
		if kind != "pool_grant" && k.TenantOfKey(k.Addr(v)) != test.want { // a grant of nothing has no key
			t.Errorf("the key of %s %s is in %q, want %q", kind, test.json, k.TenantOfKey(k.Addr(v)), test.want)
		}
		if got := k.TenantOf(v); got != test.want {
			t.Errorf("%s %s is in %q, want %q", kind, test.json, got, test.want)
		}
	}
}

// What a kind's reference says of an attribute, its schemas say too.
func TestSpecSchemas(t *testing.T) {
	for _, k := range schema.Kinds() {
		for _, complete := range []bool{false, true} {
			raw, err := json.Marshal(k.SpecSchema(complete))
			if err != nil {
				t.Fatal(err)
			}
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			c := jsonschema.NewCompiler()
			if err := c.AddResource("spec.json", document); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compile("spec.json"); err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
			properties := document.(map[string]any)["properties"].(map[string]any)
			for _, name := range k.Names() {
				if _, described := properties[name]; described == (complete && k.Secret(name)) {
					t.Errorf("%s.%s: described %t in a schema with complete %t", k.Name, name, described, complete)
				}
			}
		}
	}
}

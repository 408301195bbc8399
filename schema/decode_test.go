package schema

import (
	"encoding/json"
	"testing"

	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// TestDecodeStored compares the short way of decoding with the one that cty has.
func TestDecodeStored(t *testing.T) {
	tests := map[string]struct {
		kind, json string
		declined   bool
	}{
		"empty":             {kind: "pool", json: `{}`},
		"pool":              {kind: "pool", json: `{"tenant":"a","name":"b","tenant_db":"c","threads":3,"suspended":true,"nodes":{"dual":2}}`},
		"nulls":             {kind: "pool", json: `{"tenant":null,"nodes":null,"threads":null}`},
		"null in a block":   {kind: "pool", json: `{"nodes":{"dual":null}}`},
		"sets":              {kind: "user", json: `{"name":"a","roles":["x","y"],"groups":[],"password_version":12345678901234567890}`},
		"repeated element":  {kind: "user", json: `{"roles":["x","x"]}`},
		"null in a set":     {kind: "user", json: `{"roles":[null]}`},
		"set of blocks":     {kind: "role", json: `{"permission":[{"privileges":["all"]},{"catalog":"c","privileges":[]}]}`},
		"no blocks":         {kind: "role", json: `{"permission":[]}`},
		"normal form":       {kind: "tenant", json: `{"display_name":"e\u0301"}`},
		"number as string":  {kind: "pool", json: `{"threads":"3"}`, declined: true},
		"string as number":  {kind: "tenant", json: `{"name":3}`, declined: true},
		"string for a set":  {kind: "user", json: `{"roles":"x"}`, declined: true},
		"object for string": {kind: "user", json: `{"name":{}}`, declined: true},
		"unknown attribute": {kind: "tenant", json: `{"nam":"a"}`, declined: true},
		"unknown in block":  {kind: "pool", json: `{"nodes":{"many":1}}`, declined: true},
		"list for a block":  {kind: "pool", json: `{"nodes":[]}`, declined: true},
		"no object":         {kind: "pool", json: `[]`, declined: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind, _ := Lookup(test.kind)
			var tree any
			if err := unmarshalExact([]byte(test.json), &tree); err != nil {
				t.Fatal(err)
			}
			got, ok := decodeStored(tree, kind.Attrs, kind.Blocks)
			if ok == test.declined {
				t.Fatalf("declined is %v, want %v", !ok, test.declined)
			}
			if !ok {
				return
			}
			filled, err := json.Marshal(withNulls(tree, kind.Type()))
			if err != nil {
				t.Fatal(err)
			}
			want, err := ctyjson.Unmarshal(filled, kind.Type())
			if err != nil {
				t.Fatal(err)
			}
			if !got.RawEquals(want) {
				t.Errorf("got %#v, want %#v", got, want)
			}
		})
	}
}

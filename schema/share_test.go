package schema_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

func TestSharedIsTheSameValue(t *testing.T) {
	kind, _ := schema.Lookup("user")
	attrs := kind.Empty().AsValueMap()
	attrs["name"] = cty.StringVal("ana").Mark("m")
	attrs["roles"] = cty.SetVal([]cty.Value{cty.StringVal("r")})
	for _, v := range []cty.Value{
		kind.Empty(), cty.ObjectVal(attrs), cty.ObjectVal(attrs).Mark("whole"),
		cty.EmptyObjectVal, cty.DynamicVal, cty.NullVal(kind.Type()), cty.UnknownVal(kind.Type()),
	} {
		if got := kind.Shared(v); !got.RawEquals(v) {
			t.Errorf("%#v became %#v", v, got)
		}
	}
}

package access

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/schema"
)

// attr returns the attribute with its default in place. Completing whole objects would cost more than
// everything else that is done with them here.
func attr(kind *schema.Kind, v cty.Value, name string) cty.Value {
	if !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	av := v.GetAttr(name)
	if !av.IsNull() {
		return av
	}
	if a, ok := kind.Attr(name); ok {
		return a.Default
	}
	return cty.NilVal
}

// text returns a name, folded, or "" where there is none.
func text(kind *schema.Kind, v cty.Value, name string) string {
	return schema.Fold(verbatim(kind, v, name))
}

// identifier returns a name in SQL, folded as DuckDB compares them.
func identifier(kind *schema.Kind, v cty.Value, name string) string {
	return sqltext.Fold(verbatim(kind, v, name))
}

// verbatim returns a text as it is written, or "" where there is none.
func verbatim(kind *schema.Kind, v cty.Value, name string) string {
	av := attr(kind, v, name)
	if av == cty.NilVal || av.IsNull() {
		return ""
	}
	return av.AsString()
}

func truth(kind *schema.Kind, v cty.Value, name string) bool {
	av := attr(kind, v, name)
	return av != cty.NilVal && !av.IsNull() && av.True()
}

func number(kind *schema.Kind, v cty.Value, name string) int {
	av := attr(kind, v, name)
	if av == cty.NilVal || av.IsNull() {
		return 0
	}
	n, _ := av.AsBigFloat().Int64()
	return int(n)
}

// set returns the elements, folded and sorted.
func set(v cty.Value) []string {
	if v.IsNull() {
		return nil
	}
	var out []string
	for it := v.ElementIterator(); it.Next(); {
		_, ev := it.Element()
		out = append(out, schema.Fold(ev.AsString()))
	}
	slices.Sort(out)
	return out
}

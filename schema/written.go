package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// tenantName is the kind whose objects are the borders of all others.
const tenantName = "tenant"

// Bounds reports whether objects of the kind are tenants, which others are in.
func (k *Kind) Bounds() bool { return k.Name == tenantName }

// TenantOf returns the name, folded, of the tenant that an object is in or is; "" for one that is in none.
func (k *Kind) TenantOf(v cty.Value) string {
	name := tenantName
	if k.Bounds() {
		name = k.Key[0]
	}
	if _, ok := k.Attr(name); !ok || v.GetAttr(name).IsNull() {
		return ""
	}
	return Fold(v.GetAttr(name).AsString())
}

// TenantOfKey is TenantOf of the object that an address names.
func (k *Kind) TenantOfKey(a Addr) string {
	parts := a.Parts()
	if k.Bounds() || k.Key[0] == tenantName && len(parts) == len(k.Key) {
		return Fold(parts[0])
	}
	return ""
}

// Written is an object as JSON writes it.
type Written struct {
	Value cty.Value // of the kind's type; what is not written is null
	// Items are the elements of each block that may stand several times, in the order of the JSON.
	Items map[string][]cty.Value
}

// Read reads a decoded JSON object (with numbers as json.Number) that a program wrote, and says all that is
// wrong with its form. It is strict: nothing is converted, and nothing that the kind does not have is
// passed over.
func (k *Kind) Read(object map[string]any) (Written, []Problem) {
	r := reader{items: map[string][]cty.Value{}}
	v := r.object(object, k.Attrs, k.Blocks, nil)
	return Written{v, r.items}, r.problems
}

type reader struct {
	items    map[string][]cty.Value
	problems []Problem
}

func (r *reader) problem(path cty.Path, format string, args ...any) {
	r.problems = append(r.problems, Problem{path.Copy(), fmt.Sprintf(format, args...)})
}

func (r *reader) object(object map[string]any, attrs []Attr, blocks []Block, path cty.Path) cty.Value {
	values := make(map[string]cty.Value, len(attrs)+len(blocks))
	for i := range attrs {
		a := &attrs[i]
		values[a.Name] = r.attr(object[a.Name], a.Type, path.GetAttr(a.Name))
	}
	for i := range blocks {
		b := &blocks[i]
		values[b.Name] = r.block(object[b.Name], b, path.GetAttr(b.Name))
	}
	known := slices.Sorted(maps.Keys(values))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if _, ok := values[name]; !ok {
			r.problem(path.GetAttr(name), "there is no %q here.%s", shortName(name), DidYouMean(name, known))
		}
	}
	return cty.ObjectVal(values)
}

func shortName(name string) string {
	const most = 64
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

func (r *reader) block(item any, b *Block, path cty.Path) cty.Value {
	if b.Single {
		object, ok := item.(map[string]any)
		switch {
		case item == nil:
		case !ok:
			r.problem(path, "want an object")
		default:
			return r.object(object, b.Attrs, nil, path)
		}
		return cty.NullVal(b.object())
	}
	list, ok := r.list(item, path)
	if !ok {
		return cty.NullVal(cty.Set(b.object()))
	}
	items := make([]cty.Value, 0, len(list))
	for i, item := range list {
		at := path.IndexInt(i)
		object, ok := item.(map[string]any)
		if !ok {
			r.problem(at, "want an object")
			continue
		}
		items = append(items, r.object(object, b.Attrs, nil, at))
	}
	r.items[b.Name] = items
	return setOf(b.object(), items)
}

// list reports false for what is none, and for a null.
func (r *reader) list(item any, path cty.Path) ([]any, bool) {
	list, ok := item.([]any)
	if !ok && item != nil {
		r.problem(path, "want a list")
	}
	return list, ok
}

func setOf(element cty.Type, items []cty.Value) cty.Value {
	if len(items) == 0 {
		return cty.SetValEmpty(element)
	}
	return cty.SetVal(items)
}

func (r *reader) attr(item any, t cty.Type, path cty.Path) cty.Value {
	if !t.IsSetType() {
		return r.single(item, t, path)
	}
	list, ok := r.list(item, path)
	if !ok {
		return cty.NullVal(t)
	}
	items := make([]cty.Value, 0, len(list))
	for i, item := range list {
		if item == nil {
			r.problem(path.IndexInt(i), "a null is not allowed here")
			continue
		}
		if v := r.single(item, t.ElementType(), path.IndexInt(i)); !v.IsNull() {
			items = append(items, v)
		}
	}
	return setOf(t.ElementType(), items)
}

// longestNumber bounds, in bytes, how a number is written.
const longestNumber = 64

func (r *reader) single(item any, t cty.Type, path cty.Path) cty.Value {
	switch v := item.(type) {
	case nil:
		return cty.NullVal(t)
	case string:
		if t == cty.String && strings.ContainsRune(v, 0) {
			r.problem(path, "a text with a NUL cannot be kept")
			return cty.NullVal(t)
		}
		if t == cty.String {
			return cty.StringVal(v)
		}
	case bool:
		if t == cty.Bool {
			return cty.BoolVal(v)
		}
	case json.Number:
		if t != cty.Number {
			break
		}
		if n, err := cty.ParseNumberVal(v.String()); err == nil && len(v) <= longestNumber {
			return n
		}
	}
	r.problem(path, "want a %s", t.FriendlyName())
	return cty.NullVal(t)
}

package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Addr names an object by kind and key: pool.acme/bi. It is comparable, and independent of the block
// or the resource that wrote the object.
type Addr struct {
	Kind string
	Path string // the key's parts, folded, escaped and joined by "/"
}

var (
	escaper   = strings.NewReplacer("%", "%25", "/", "%2F", ":", "%3A")
	unescaper = strings.NewReplacer("%25", "%", "%2F", "/", "%3A", ":")
)

// NewAddr returns the address of the object of that kind with those key parts.
func NewAddr(kind string, parts ...string) Addr {
	escaped := make([]string, len(parts))
	for i, p := range parts {
		escaped[i] = escape(p)
	}
	return Addr{Kind: kind, Path: strings.Join(escaped, "/")}
}

// escape returns a part of a key as it is in a path. Hardly any has something to escape.
func escape(part string) string {
	part = Fold(part)
	if !strings.ContainsAny(part, "%/:") {
		return part
	}
	return escaper.Replace(part)
}

// ParseAddr reads what String printed.
func ParseAddr(s string) (Addr, error) {
	kind, path, ok := strings.Cut(s, ".")
	if !ok || path == "" {
		return Addr{}, fmt.Errorf("parse address %q: want KIND.KEY, as in pool.acme/bi", s)
	}
	if _, known := Lookup(kind); !known {
		return Addr{}, fmt.Errorf("parse address %q: there is no kind %q", s, kind)
	}
	return Addr{Kind: kind, Path: path}, nil
}

// String prints the address as users write it: pool.acme/bi.
func (a Addr) String() string { return a.Kind + "." + a.Path }

// Parts returns the unescaped parts of the key. Parts of the form "user:ana" stay joined.
func (a Addr) Parts() []string {
	parts := strings.Split(a.Path, "/")
	for i, p := range parts {
		parts[i] = unescaper.Replace(p)
	}
	return parts
}

// Name returns the innermost part of the key.
func (a Addr) Name() string {
	parts := a.Parts()
	return parts[len(parts)-1]
}

// Fold returns the form in which names are compared.
func Fold(name string) string { return strings.ToLower(name) }

// Addr returns the address of the object with value v. Key attributes that are null are left out, as
// the tenant of a system user is.
func (k *Kind) Addr(v cty.Value) Addr {
	parts := make([]string, 0, 4)
	for _, part := range k.Key {
		if !strings.Contains(part, "|") {
			if av := v.GetAttr(part); !av.IsNull() {
				parts = append(parts, escape(av.AsString()))
			}
			continue
		}
		for name := range strings.SplitSeq(part, "|") {
			if av := v.GetAttr(name); !av.IsNull() {
				parts = append(parts, name+":"+escape(av.AsString()))
				break
			}
		}
	}
	return Addr{Kind: k.Name, Path: strings.Join(parts, "/")}
}

// Ref is a reference that an object holds: the attribute, and the address it names.
type Ref struct {
	Attr string
	To   Addr
}

// Refs lists the references of an object in the order of its attributes.
func (k *Kind) Refs(v cty.Value) []Ref {
	var refs []Ref
	for i := range k.Attrs {
		a := &k.Attrs[i]
		if a.Ref == "" {
			continue
		}
		av := v.GetAttr(a.Name)
		if av.IsNull() {
			continue
		}
		if !a.Set() {
			refs = appendRef(refs, a, k.outer(a, v), av)
			continue
		}
		if av.LengthInt() == 0 {
			continue
		}
		outer := k.outer(a, v)
		for it := av.ElementIterator(); it.Next(); {
			_, ev := it.Element()
			refs = appendRef(refs, a, outer, ev)
		}
	}
	return refs
}

// appendRef adds a reference to the object of that name, in what outer says is around it.
func appendRef(refs []Ref, a *Attr, outer string, name cty.Value) []Ref {
	text := name.AsString()
	if a.literal(text) {
		return refs
	}
	return append(refs, Ref{Attr: a.Name, To: Addr{Kind: a.Ref, Path: outer + escape(text)}})
}

func (a *Attr) literal(text string) bool {
	return len(a.Literal) > 0 && slices.Contains(a.Literal, Fold(text))
}

// Literals lists, folded and sorted, what a value of the attribute says without referring to an object.
func (a *Attr) Literals(v cty.Value) []string {
	if len(a.Literal) == 0 || v == cty.NilVal || v.IsNull() {
		return nil
	}
	items := []cty.Value{v}
	if a.Set() {
		items = v.AsValueSlice()
	}
	var out []string
	for _, item := range items {
		if text := item.AsString(); a.literal(text) {
			out = append(out, Fold(text))
		}
	}
	slices.Sort(out)
	return out
}

// outer is the path of what is around the objects that the attribute a of object names: all but its last part.
func (k *Kind) outer(a *Attr, object cty.Value) string {
	target, _ := Lookup(a.Ref)
	path := ""
	for _, part := range target.Key[:len(target.Key)-1] {
		if _, has := k.Attr(part); !has {
			continue
		}
		if v := object.GetAttr(part); !v.IsNull() {
			path += escape(v.AsString()) + "/"
		}
	}
	return path
}

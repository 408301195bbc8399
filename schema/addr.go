package schema

import (
	"fmt"
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
		escaped[i] = escaper.Replace(Fold(p))
	}
	return Addr{Kind: kind, Path: strings.Join(escaped, "/")}
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
	var parts []string
	for _, part := range k.Key {
		names := strings.Split(part, "|")
		for _, name := range names {
			av := v.GetAttr(name)
			if av.IsNull() {
				continue
			}
			p := escaper.Replace(Fold(av.AsString()))
			if len(names) > 1 {
				p = name + ":" + p
			}
			parts = append(parts, p)
			break
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
			refs = appendRef(refs, a, v, av)
			continue
		}
		for it := av.ElementIterator(); it.Next(); {
			_, ev := it.Element()
			refs = appendRef(refs, a, v, ev)
		}
	}
	return refs
}

func appendRef(refs []Ref, a *Attr, object, name cty.Value) []Ref {
	for _, lit := range a.Literal {
		if name.AsString() == lit {
			return refs
		}
	}
	return append(refs, Ref{Attr: a.Name, To: a.target(object, name.AsString())})
}

// target returns the address that name stands for in the attribute a of object.
func (a *Attr) target(object cty.Value, name string) Addr {
	kind, _ := Lookup(a.Ref)
	var parts []string
	for _, part := range kind.Key[:len(kind.Key)-1] {
		if !object.Type().HasAttribute(part) {
			continue
		}
		if v := object.GetAttr(part); !v.IsNull() {
			parts = append(parts, v.AsString())
		}
	}
	return NewAddr(kind.Name, append(parts, name)...)
}

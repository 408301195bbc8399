package schema

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/gocty"
)

// Mode says who gives an attribute its value.
type Mode int

const (
	// Optional may be left out by the author.
	Optional Mode = iota
	// Required must have a value once a reference had its chance to imply it.
	Required
)

// Effect says what a change of an attribute does to the live world. Plans and reference pages print it.
type Effect string

const (
	// Replace: the object is destroyed and made anew.
	Replace Effect = "replace"
	// Roll: new nodes take over from the old ones, one at a time.
	Roll Effect = "roll"
	// Live: the next statement sees it.
	Live Effect = "live"
	// Row: only the stored row changes.
	Row Effect = "row"
)

// Attr is one argument of a kind, and the attribute of the object that it sets.
type Attr struct {
	Name    string
	Type    cty.Type // string, number, bool or a set of strings
	Mode    Mode
	Default cty.Value // cty.NilVal: none
	// Ref is the kind this value names. The target's outer key parts are those of the same name in
	// the referring object: a pool's tenant_db is looked up in the pool's tenant.
	Ref string
	// OneOf lists what a value, or each element of a set, may be; empty: anything.
	OneOf []string
	// Literal lists values that are not references although Ref is set.
	Literal []string
	Effect  Effect
	// Secret values are accepted and never given back; specs hold a keyed fingerprint.
	Secret bool
	// Version names the attribute whose rise makes a Secret be read again; without it every
	// change of the secret is a change of the object.
	Version string
	// StoredAs names the secret attribute that keeps what is derived from this secret; the secret
	// itself is not kept at all.
	StoredAs string
	// Host attributes are code or reach the host: only system administrators set them.
	Host bool
	Doc  string
	// Written is what Doc does not say to those who write the attribute in qod's own language: other surfaces have
	// no blocks and no references.
	Written string
	Check   func(cty.Value) error // called with known, non-null values
}

// Set reports whether the attribute holds a set of strings.
func (a *Attr) Set() bool { return a.Type.IsSetType() }

// Block is a nested block of a kind: at most one when Single, otherwise a set without order.
type Block struct {
	Name   string
	Single bool
	Attrs  []Attr
	Effect Effect
	Doc    string
	Check  func(cty.Value) error // called with one complete block

	typ cty.Type // of one block; set by Define
}

func (b *Block) object() cty.Type {
	if b.typ != cty.NilType {
		return b.typ
	}
	return objectType(b.Attrs, nil)
}

// Kind is the one definition of what a tenant, pool or role is. All other forms are functions of it.
type Kind struct {
	Name string
	Doc  string
	// Key lists the attributes that identify an object among its kind, outermost first. A part
	// "user|group|role" stands for whichever of those attributes is set.
	Key []string
	// Holds names the boolean attribute that allows destroying the data an object owns. Kinds with
	// such data are never replaced, and destroyed only where the attribute was applied as true before.
	Holds   string
	Attrs   []Attr // the order of documentation and of plans
	Blocks  []Block
	Version int // of the stored form; starts at 1
	// Check looks at a whole object with its defaults in place.
	Check func(cty.Value) []Problem

	typ cty.Type // set by Define
}

// Attr returns the attribute of that name.
func (k *Kind) Attr(name string) (*Attr, bool) {
	for i := range k.Attrs {
		if k.Attrs[i].Name == name {
			return &k.Attrs[i], true
		}
	}
	return nil, false
}

// Block returns the nested block of that name.
func (k *Kind) Block(name string) (*Block, bool) {
	for i := range k.Blocks {
		if k.Blocks[i].Name == name {
			return &k.Blocks[i], true
		}
	}
	return nil, false
}

// Secret reports whether the attribute of that name, or something in the block, is secret.
func (k *Kind) Secret(name string) bool {
	if a, ok := k.Attr(name); ok {
		return a.Secret
	}
	b, ok := k.Block(name)
	return ok && slices.ContainsFunc(b.Attrs, func(a Attr) bool { return a.Secret })
}

// Names lists the attributes and then the blocks, in the order of documentation.
func (k *Kind) Names() []string {
	names := make([]string, 0, len(k.Attrs)+len(k.Blocks))
	for i := range k.Attrs {
		names = append(names, k.Attrs[i].Name)
	}
	for i := range k.Blocks {
		names = append(names, k.Blocks[i].Name)
	}
	return names
}

// EffectOf returns the effect of changing the attribute or block of that name.
func (k *Kind) EffectOf(name string) Effect {
	if a, ok := k.Attr(name); ok {
		return a.Effect
	}
	if b, ok := k.Block(name); ok {
		return b.Effect
	}
	return Row
}

// Type is the cty type of the kind's objects: every attribute, and every block as an object or a set.
func (k *Kind) Type() cty.Type {
	if k.typ != cty.NilType {
		return k.typ
	}
	return objectType(k.Attrs, k.Blocks)
}

func objectType(attrs []Attr, blocks []Block) cty.Type {
	types := make(map[string]cty.Type, len(attrs)+len(blocks))
	for i := range attrs {
		types[attrs[i].Name] = attrs[i].Type
	}
	for i := range blocks {
		b := &blocks[i]
		types[b.Name] = b.object()
		if !b.Single {
			types[b.Name] = cty.Set(b.object())
		}
	}
	return cty.Object(types)
}

// Define checks a kind against the Go struct that code reads it through and returns it. It panics
// when the two differ: that is a fault of this package, and every program that links it shows it.
func Define[T any](k Kind) *Kind {
	k.Blocks = slices.Clone(k.Blocks)
	for i := range k.Blocks {
		k.Blocks[i].typ = k.Blocks[i].object()
	}
	k.typ = k.Type()
	var zero T
	implied, err := gocty.ImpliedType(zero)
	if err != nil {
		panic(fmt.Sprintf("schema: kind %s: %v", k.Name, err))
	}
	if want := setsAsLists(k.typ); !implied.Equals(want) {
		panic(fmt.Sprintf("schema: kind %s is %s but %T is %s", k.Name, want.GoString(), zero, implied.GoString()))
	}
	return &k
}

// As reads a complete value of a kind into the kind's struct.
func As[T any](v cty.Value) (T, error) {
	var out T
	v, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.Type().IsSetType() {
			return v, nil
		}
		if v.IsNull() {
			return cty.NullVal(setsAsLists(v.Type())), nil
		}
		if v.LengthInt() == 0 {
			return cty.ListValEmpty(setsAsLists(v.Type().ElementType())), nil
		}
		return cty.ListVal(v.AsValueSlice()), nil
	})
	if err != nil {
		return out, fmt.Errorf("read %T: %w", out, err)
	}
	if err := gocty.FromCtyValue(v, &out); err != nil {
		return out, fmt.Errorf("read %T: %w", out, err)
	}
	return out, nil
}

func setsAsLists(t cty.Type) cty.Type {
	switch {
	case t.IsObjectType():
		attrs := map[string]cty.Type{}
		for name, at := range t.AttributeTypes() {
			attrs[name] = setsAsLists(at)
		}
		return cty.Object(attrs)
	case t.IsSetType(), t.IsListType():
		return cty.List(setsAsLists(t.ElementType()))
	}
	return t
}

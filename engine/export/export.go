package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Object is an object to write.
type Object struct {
	Kind *schema.Kind
	// Address is where a configuration has it; empty where none does. Then the object gets a label
	// from its key.
	Address string
	// Value is the object as written: what was not written is null. Its secrets, in clear or as
	// fingerprints, are written nowhere.
	Value cty.Value
	// Sensitive lists further attributes and blocks whose values must not be shown.
	Sensitive []string
	Lifecycle schema.Lifecycle
}

// Options say what a Document is for. The zero value is an export.
type Options struct {
	// Stack is the name of the stack; empty for a fragment without a qod block.
	Stack string
	// Import adds an import block for each object, which takes it over.
	Import bool
	// Shown is for people who look at what was evaluated: no moved block, and no lifecycle but what
	// the objects have themselves.
	Shown bool
	// Outputs are written with the values they have.
	Outputs []schema.Output
}

// Document is a configuration to be written.
type Document struct {
	// Warnings say, in sentences, what the configuration cannot express.
	Warnings []string

	blocks []block
}

// HCL returns the configuration of a stack with those objects. Applying it changes none of them.
func HCL(stack string, objects []Object) ([]byte, error) {
	d, err := New(Options{Stack: stack}, objects)
	if err != nil {
		return nil, err
	}
	return d.HCL(), nil
}

// New decides how objects are written. It fails for an object of an unknown form: a value without its
// kind's type, or with unknowns in it.
func New(o Options, objects []Object) (*Document, error) {
	for _, object := range objects {
		if !object.Value.Type().Equals(object.Kind.Type()) || !object.Value.IsWhollyKnown() {
			return nil, fmt.Errorf("export %s %s: its value is not one of the kind", object.Kind.Name, object.Address)
		}
	}
	w := &writer{Options: o, targets: map[schema.Addr]target{}, addresses: map[string]schema.Address{}}
	w.group(objects)
	w.name()
	for _, g := range w.groups {
		w.resolve(g)
	}
	if o.Stack != "" {
		w.add(block{kind: "qod", body: body{attrs: []attr{{"stack", literal{cty.StringVal(o.Stack)}}}}})
	}
	for _, g := range w.groups {
		w.write(g)
	}
	if !o.Shown {
		w.writeMoves()
	}
	for _, out := range o.Outputs {
		w.writeOutput(out)
	}
	return &w.document, nil
}

// writer makes one Document.
type writer struct {
	Options
	groups    []*group
	targets   map[schema.Addr]target    // what a reference may become
	addresses map[string]schema.Address // where each address of an object went
	document  Document
}

// target is an object of the document, as references see it.
type target struct {
	address schema.Address
	name    string
}

// group is the objects of one block.
type group struct {
	kind    *schema.Kind
	from    schema.Address // of the block before, without a key; no Kind where there was none
	label   string
	keyed   bool // for_each
	members []member
}

// member is one object of a group, and its key in for_each.
type member struct {
	Object
	key string
}

func (w *writer) add(b block) { w.document.blocks = append(w.document.blocks, b) }

func (w *writer) warn(format string, args ...any) {
	w.document.Warnings = append(w.document.Warnings, fmt.Sprintf(format, args...))
}

// group sorts objects into blocks.
func (w *writer) group(objects []Object) {
	byBlock := map[string]*group{}
	for _, o := range objects {
		m := member{Object: o}
		g := &group{kind: o.Kind}
		if a, err := schema.ParseAddress(o.Address); err == nil && a.Kind == o.Kind.Name {
			g.from, g.keyed, m.key = a, a.Keyed, a.Key
			g.from.Step = schema.Step{Name: a.Name}
		} else if o.Address != "" && !o.Kind.Addr(o.Value).Names(o.Address) { // one by REST has its name for an address
			w.warn("%s is at %q, which is no address of a configuration: it gets one.", o.Kind.Addr(o.Value), o.Address)
		}
		id := fmt.Sprint(g.from, g.keyed)
		if g.from.Kind == "" { // one of its own
			id = o.Kind.Addr(o.Value).String()
		}
		if byBlock[id] == nil {
			byBlock[id] = g
			w.groups = append(w.groups, g)
		}
		byBlock[id].members = append(byBlock[id].members, m)
	}
	for _, g := range w.groups {
		slices.SortFunc(g.members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	}
}

// name gives each group its label, and sorts groups by kind and label. Blocks at the root keep theirs.
func (w *writer) name() {
	rank := func(g *group) int {
		switch {
		case g.from.Kind == "":
			return 2
		case len(g.from.Modules) > 0:
			return 1
		}
		return 0
	}
	slices.SortFunc(w.groups, func(a, b *group) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.from.String(), b.from.String()), boolCompare(a.keyed, b.keyed),
			cmp.Compare(a.key(), b.key()))
	})
	taken := map[string]bool{}
	for _, g := range w.groups {
		g.label = freeLabel(g.wish(), func(label string) bool { return taken[g.kind.Name+"."+label] })
		taken[g.kind.Name+"."+g.label] = true
	}
	order := map[string]int{}
	for i, k := range schema.Kinds() {
		order[k.Name] = i
	}
	slices.SortFunc(w.groups, func(a, b *group) int {
		return cmp.Or(order[a.kind.Name]-order[b.kind.Name], cmp.Compare(a.label, b.label))
	})
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// key is that of the group's first object.
func (g *group) key() string { return g.kind.Addr(g.members[0].Value).Path }

// address is where the document has a member.
func (g *group) address(m member) schema.Address {
	return schema.Address{Kind: g.kind.Name, Step: schema.Step{Name: g.label, Key: m.key, Keyed: g.keyed}}
}

// resolve notes what others can refer to.
func (w *writer) resolve(g *group) {
	for _, m := range g.members {
		t := target{address: g.address(m)}
		if a, ok := nameAttr(g.kind); ok {
			t.name = m.Value.GetAttr(a).AsString()
		}
		w.targets[g.kind.Addr(m.Value)] = t
		w.addresses[m.Address] = t.address
	}
	w.addresses[g.from.String()] = schema.Address{Kind: g.kind.Name, Step: schema.Step{Name: g.label}}
}

// nameAttr returns the attribute that a label is the default of, for kinds that have one.
func nameAttr(k *schema.Kind) (string, bool) {
	a, ok := k.Attr(k.Key[len(k.Key)-1])
	if !ok || a.Ref != "" {
		return "", false
	}
	return a.Name, true
}

// moved reports whether the group's objects are at other addresses than before.
func (g *group) moved() bool {
	return g.from.Kind != "" && (len(g.from.Modules) > 0 || g.from.Name != g.label)
}

// writeMoves says what becomes of the addresses of objects in modules.
func (w *writer) writeMoves() {
	comment := "These objects were in modules, which are not exported: they are moved to the blocks above.\n" +
		"The section can go once it has been applied."
	for _, g := range w.groups {
		if !g.moved() {
			continue
		}
		to := schema.Address{Kind: g.kind.Name, Step: schema.Step{Name: g.label}}
		if len(g.from.Modules) == 0 {
			w.warn("%s has objects with and without keys: those with keys move to %s.", g.from, to)
		}
		w.add(block{comment: comment, kind: "moved", body: body{attrs: []attr{{"from", address(g.from)}, {"to", address(to)}}}})
		comment = ""
	}
}

func (w *writer) writeOutput(out schema.Output) {
	b := block{kind: "output", labels: []string{out.Name}}
	if out.Description != "" {
		b.attrs = append(b.attrs, attr{"description", literal{cty.StringVal(out.Description)}})
	}
	if out.Sensitive {
		b.attrs = append(b.attrs, attr{"sensitive", literal{cty.True}})
		b.notes = append(b.notes, "value: "+hidden)
	} else {
		b.attrs = append(b.attrs, attr{"value", literal{out.Value}})
	}
	w.add(b)
}

// freeLabel returns the wish, with a number behind it where it is taken.
func freeLabel(wish string, taken func(string) bool) string {
	label := wish
	for n := 2; taken(label); n++ {
		label = fmt.Sprintf("%s_%d", wish, n)
	}
	return label
}

// wish is the label the group would like to have.
func (g *group) wish() string {
	var parts []string
	for _, m := range g.from.Modules {
		parts = append(parts, m.Name)
		if m.Keyed {
			parts = append(parts, m.Key)
		}
	}
	switch {
	case g.from.Kind != "":
		parts = append(parts, g.from.Name)
	case len(g.kind.Key) > 2: // the tenant is left out, as in names
		parts = g.kind.Addr(g.members[0].Value).Parts()[1:]
	default:
		parts = []string{g.kind.Addr(g.members[0].Value).Name()}
	}
	return identifier(strings.Join(parts, "_"))
}

package history

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Past is what a rollback is made from.
type Past struct {
	Stack    string
	Revision store.Revision
	// Now are all objects as they are, Then as they were at the revision.
	Now, Then []store.Object
	// Outputs of the stack: Shown and ThenShown as snapshots have them, Open with their values.
	Shown, ThenShown, Open []schema.Output
	Ever                   Concealed // what must not be shown of the past
	// AllowEmpty lets what held data come back without it.
	AllowEmpty bool
}

// Desired returns what a stack has to ask for to be as it was, and what stands in the way or does not come
// back. A plan made of it refuses on the errors among the problems.
//
// An object is the same as long as its id is, whatever its name is now. It keeps its present address in the
// configuration, which is where the next plan looks for it, and a protection that it has now. Only what the
// stack owns now, or nobody, is asked for. Past secrets are not kept: present ones stay.
func (p Past) Desired() (schema.Desired, []plan.Problem) {
	b := newRollback(p)
	for i := range b.then {
		b.place(&b.then[i])
	}
	for _, t := range b.gone {
		b.recreate(t)
	}
	schema.Depend(b.objects)
	outputs := b.outputs()
	return schema.Desired{Objects: b.objects, Imports: b.imports, Outputs: outputs}, b.problems
}

type rollback struct {
	Past
	then     []store.Object                // live ones
	now      map[string]*store.Object      // live ones by id
	nowAddr  map[schema.Addr]*store.Object // live ones
	thenAddr map[schema.Addr]*store.Object // live ones
	names    map[string]string             // the name that each object has after the rollback, by id
	gone     []*store.Object               // of then, to be made anew
	here     map[string]*store.Object      // those of the stack now, by their address in the configuration
	lived    map[string]bool               // ids of those that there were

	objects  []schema.Object
	imports  []schema.Import
	problems []plan.Problem
}

func newRollback(p Past) *rollback {
	b := &rollback{
		Past: p, now: map[string]*store.Object{}, nowAddr: map[schema.Addr]*store.Object{},
		thenAddr: map[schema.Addr]*store.Object{}, names: map[string]string{}, here: map[string]*store.Object{}, lived: map[string]bool{},
	}
	for i := range p.Now {
		o := &p.Now[i]
		if o.Tombstone {
			continue
		}
		b.now[o.ID], b.nowAddr[o.Addr()], b.names[o.ID] = o, o, o.Kind.NameOf(o.Spec)
		if o.Stack == p.Stack && o.Address != "" {
			b.here[o.Address] = o
		}
	}
	for _, o := range p.Then {
		if !o.Tombstone {
			b.then = append(b.then, *p.Ever.concealed(&o))
		}
	}
	for i := range b.then {
		t := &b.then[i]
		b.thenAddr[t.Addr()], b.lived[t.ID] = t, true
		if n := b.now[t.ID]; t.Stack == p.Stack && (n == nil || n.Stack == p.Stack || n.Stack == "") {
			b.names[t.ID] = t.Kind.NameOf(t.Spec)
		}
	}
	return b
}

// place decides what becomes of an object that there was. Those that are gone wait until all others have
// their addresses.
func (b *rollback) place(t *store.Object) {
	n := b.now[t.ID]
	switch {
	case t.Stack != b.Stack && (n == nil || n.Stack != b.Stack):
	case t.Stack != b.Stack:
		b.keep(n)
	case n == nil:
		b.gone = append(b.gone, t)
	case n.Stack == b.Stack:
		b.restore(t, n, n.Address)
	case n.Stack == "":
		b.takeBack(t, n)
	default:
		b.warn(n.Address, nil, n.Addr().String()+" is left alone",
			fmt.Sprintf("It belongs to stack %q now, and a rollback changes only what its own stack owns.", n.Stack))
	}
}

// keep asks for an object that has come to the stack since to stay as it is.
func (b *rollback) keep(n *store.Object) {
	value := b.renamed(n, b.nowAddr).AsValueMap()
	for _, a := range n.Kind.Attrs {
		if a.Secret {
			value[a.Name] = cty.NullVal(a.Type)
		}
	}
	b.objects = append(b.objects, schema.Object{
		Kind: n.Kind, Address: n.Address, Value: cty.ObjectVal(value), Sensitive: n.Sensitive,
		Lifecycle: schema.Lifecycle{PreventDestroy: n.Protected, IgnoreAll: true},
	})
	b.warn(n.Address, nil, n.Addr().String()+" is left alone",
		fmt.Sprintf("It was not of stack %q at revision %d. It stays with it, as it is now.", b.Stack, b.Revision))
}

// restore gives an object that is there the value it had.
func (b *rollback) restore(t, n *store.Object, address string) {
	value := b.renamed(t, b.thenAddr).AsValueMap()
	lifecycle := schema.Lifecycle{PreventDestroy: t.Protected || n.Protected}
	for _, a := range t.Kind.Attrs {
		if !a.Secret {
			continue
		}
		value[a.Name] = cty.NullVal(a.Type)
		lifecycle.IgnoreChanges = append(lifecycle.IgnoreChanges, cty.GetAttrPath(a.Name))
		if t.Spec.GetAttr(a.Name).RawEquals(n.Spec.GetAttr(a.Name)) && t.ID == n.ID {
			continue
		}
		if a.Version != "" {
			value[a.Version] = n.Spec.GetAttr(a.Version)
		}
		if absent(t.Spec.GetAttr(a.Name)) && absent(n.Spec.GetAttr(a.Name)) {
			continue
		}
		b.warn(address, cty.GetAttrPath(a.Name), fmt.Sprintf("the %s of %s is not rolled back: past secrets are not kept", a.Name, t.Addr()),
			"It stays as it is now.")
	}
	b.objects = append(b.objects, schema.Object{
		Kind: t.Kind, Address: address, Value: cty.ObjectVal(value), Lifecycle: lifecycle,
		Sensitive: slices.Compact(slices.Sorted(slices.Values(slices.Concat(t.Sensitive, n.Sensitive)))),
	})
}

// takeBack restores an object that was forgotten since.
func (b *rollback) takeBack(t, n *store.Object) {
	to, err := t.Addr().Own(), error(nil)
	if t.Address != to.String() {
		to, err = schema.ParseAddress(t.Address)
	}
	if err != nil {
		b.refuse(t.Address, t.Addr().String()+" cannot be taken back", err.Error())
		return
	}
	if b.occupied(t, b.here[t.Address]) {
		return
	}
	b.imports = append(b.imports, schema.Import{To: to, ID: n.Addr()})
	b.restore(t, n, t.Address)
}

// recreate asks for an object that is gone. One of its block or name, made since, takes its part.
func (b *rollback) recreate(t *store.Object) {
	if by := b.here[t.Address]; by != nil && b.lived[by.ID] && b.occupied(t, by) {
		return
	}
	successor := b.successor(t)
	if t.Kind.Holds != "" {
		b.judgeEmpty(t, successor)
	}
	if successor != nil {
		b.restore(t, successor, t.Address)
		return
	}
	value := b.renamed(t, b.thenAddr).AsValueMap()
	for _, a := range t.Kind.Attrs {
		if !a.Secret || absent(value[a.Name]) {
			continue
		}
		value[a.Name] = cty.NullVal(a.Type)
		b.warn(t.Address, cty.GetAttrPath(a.Name), fmt.Sprintf("the %s of %s is not rolled back: past secrets are not kept", a.Name, t.Addr()),
			t.Addr().String()+" comes back without it: write a new one in its block.")
	}
	b.objects = append(b.objects, schema.Object{
		Kind: t.Kind, Address: t.Address, Value: cty.ObjectVal(value), Sensitive: t.Sensitive,
		Lifecycle: schema.Lifecycle{PreventDestroy: t.Protected},
	})
}

// successor returns the object made since that a plan would take for t: by its block, else by its name.
func (b *rollback) successor(t *store.Object) *store.Object {
	if n := b.here[t.Address]; n != nil {
		return n
	}
	if n := b.nowAddr[t.Addr()]; n != nil && n.Stack == b.Stack && !b.lived[n.ID] {
		return n
	}
	return nil
}

// judgeEmpty says what it means that what held data comes back without it.
func (b *rollback) judgeEmpty(t, successor *store.Object) {
	addr := t.Addr().String()
	switch {
	case successor != nil:
		b.warn(t.Address, nil, addr+" is not the one that it was",
			fmt.Sprintf("The one of revision %d was destroyed with its data, and another was made since. It takes the old values and keeps its own data.", b.Revision))
	case b.AllowEmpty:
		b.warn(t.Address, nil, addr+" COMES BACK EMPTY",
			fmt.Sprintf("The one of revision %d was destroyed with its data. A new and empty one of that name is made.", b.Revision))
	default:
		b.refuse(t.Address, addr+" would come back empty",
			fmt.Sprintf("The one of revision %d was destroyed with its data, which a rollback cannot bring back. "+
				"If a new and empty one is wanted, run the rollback with --allow-empty-databases.", b.Revision))
	}
}

// occupied refuses to give an object an address of the configuration at which another one is now.
func (b *rollback) occupied(t, by *store.Object) bool {
	if by == nil {
		return false
	}
	b.refuse(t.Address, fmt.Sprintf("%s cannot come back to %s", t.Addr(), t.Address),
		fmt.Sprintf("%s is there now. Move it to another address first: qod state mv %s NEW.", by.Addr(), t.Address))
	return true
}

func (b *rollback) warn(address string, path cty.Path, summary, detail string) {
	b.problems = append(b.problems, plan.Problem{Warning: true, Address: address, Path: path, Summary: summary, Detail: detail})
}

func (b *rollback) refuse(address, summary, detail string) {
	b.problems = append(b.problems, plan.Problem{Address: address, Summary: summary, Detail: detail})
}

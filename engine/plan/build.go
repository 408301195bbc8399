package plan

import (
	"fmt"
	"sort"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/graph"
	"github.com/qod-io/qod/schema"
)

// Input is what a plan is made from.
type Input struct {
	Stack     string
	Mode      Mode
	Selection Selection
	Desired   schema.Desired
	Actual    []Actual
	// Outputs are those of the last apply.
	Outputs []schema.Output
	// Sensitive names, by address, attributes that must not be shown although their block is not
	// desired: a destroy still knows the configuration.
	Sensitive map[string][]string
	// NewID makes the id of a new object.
	NewID func() string
	// Fingerprint stands for a secret in a spec.
	Fingerprint func(id, attr, secret string) string
}

// Build compares desired and actual. Its result has no ID, times or live half; the engine adds them.
func Build(in Input) *Plan {
	if in.Mode == Destroy {
		in.Desired.Objects = nil
	}
	b := newBuilder(in)
	for i := range in.Desired.Objects {
		b.desire(&in.Desired.Objects[i])
	}
	b.deleteRest()
	b.checkKeys()
	b.checkReferences()
	b.order()
	return b.plan
}

type builder struct {
	in        Input
	plan      *Plan
	byID      map[string]*Actual
	byAddress map[string]*Actual // of the own stack
	byAddr    map[schema.Addr]*Actual
	addresses map[string]bool           // in the configuration
	desired   map[schema.Addr]string    // address of each desired object
	ids       map[string]string         // address in the configuration → id
	matched   map[string]*schema.Object // id → desired
	pairs     []pair
	deleting  map[string]bool // ids
}

type pair struct {
	want *schema.Object
	have *Actual // nil: to be created
	id   string
}

func newBuilder(in Input) *builder {
	b := &builder{
		in: in, plan: &Plan{Stack: in.Stack},
		byID: map[string]*Actual{}, byAddress: map[string]*Actual{}, byAddr: map[schema.Addr]*Actual{},
		addresses: map[string]bool{}, desired: map[schema.Addr]string{}, ids: map[string]string{},
		matched: map[string]*schema.Object{}, deleting: map[string]bool{},
	}
	for i := range in.Desired.Objects {
		b.addresses[in.Desired.Objects[i].Address] = true
		b.desired[in.Desired.Objects[i].Addr()] = in.Desired.Objects[i].Address
	}
	for i := range in.Actual {
		a := &in.Actual[i]
		if a.Tombstone {
			continue
		}
		b.byID[a.ID] = a
		b.byAddr[a.Addr()] = a
		if a.Stack == in.Stack && a.Address != "" {
			b.byAddress[a.Address] = a
		}
	}
	for i := range in.Desired.Objects {
		b.pair(&in.Desired.Objects[i])
	}
	return b
}

// pair finds the stored object that a desired one is: by its block, else by its key.
func (b *builder) pair(want *schema.Object) {
	have, ok := b.byAddress[want.Address]
	if !ok || have.Kind != want.Kind {
		have = b.byAddr[want.Addr()]
		if have != nil && (have.Stack != b.in.Stack || b.addresses[have.Address]) {
			have = nil // another's, or about to be renamed: checkKeys judges
		}
	}
	p := pair{want: want, have: have}
	if have != nil {
		p.id = have.ID
	} else {
		p.id = b.in.NewID()
	}
	b.ids[want.Address] = p.id
	b.matched[p.id] = want
	b.pairs = append(b.pairs, p)
}

func (b *builder) desire(want *schema.Object) {
	id := b.ids[want.Address]
	have := b.byID[id]
	if have == nil {
		b.create(id, want)
		return
	}
	d := b.diff(id, want, have)
	b.plan.Drift = append(b.plan.Drift, d.drift...)
	switch {
	case !d.changed:
		b.plan.Unchanged++
	case len(d.replaces) > 0 && want.Kind.Holds != "":
		b.plan.Problems = append(b.plan.Problems, Problem{
			Address: want.Address, Path: cty.GetAttrPath(d.replaces[0]),
			Summary: fmt.Sprintf("%s cannot be replaced", want.Addr()),
			Detail: fmt.Sprintf("A change of %s would destroy %s with its data and make it anew, which qod never does by itself. "+
				"Keep the value, or write a second %s beside it, move the data, and then remove this one.",
				strings.Join(d.replaces, " and "), want.Addr(), want.Kind.Name),
		})
	case len(d.replaces) > 0:
		c := b.createChange(b.in.NewID(), want)
		c.Action, c.NewID, c.ID, c.Saw = Replace, c.ID, have.ID, have.Revision
		c.Was, c.Attrs = have.Addr(), d.attrs
		c.Reason, c.Detail = ReplaceCannotUpdate, fmt.Sprintf("%s cannot be changed in place", strings.Join(d.replaces, " and "))
		b.plan.Changes = append(b.plan.Changes, c)
	default:
		b.plan.Changes = append(b.plan.Changes, b.updateChange(want, have, d))
	}
}

func (b *builder) updateChange(want *schema.Object, have *Actual, d diff) Change {
	c := Change{
		Action: Update, ID: have.ID, Kind: want.Kind, Address: want.Address, Addr: want.Addr(), Saw: have.Revision,
		Spec: d.spec, Applied: d.applied, Attrs: d.attrs, Secrets: d.secrets,
	}
	if was := have.Addr(); was != c.Addr {
		c.Was = was
	}
	if have.Address != want.Address {
		c.Moved = have.Address
	}
	return c
}

func (b *builder) create(id string, want *schema.Object) {
	b.plan.Changes = append(b.plan.Changes, b.createChange(id, want))
}

func (b *builder) createChange(id string, want *schema.Object) Change {
	spec, secrets := b.conceal(id, want)
	c := Change{
		Action: Create, ID: id, Kind: want.Kind, Address: want.Address, Addr: want.Addr(),
		Spec: spec, Applied: spec, Secrets: secrets,
	}
	for _, name := range want.Kind.Names() {
		after := spec.GetAttr(name)
		if absent(after) {
			continue
		}
		c.Attrs = append(c.Attrs, b.attr(want, name, cty.NullVal(after.Type()), after))
	}
	return c
}

// deleteRest plans the end of what the stack owns and the configuration no longer has.
func (b *builder) deleteRest() {
	for i := range b.in.Actual {
		a := &b.in.Actual[i]
		if a.Tombstone || a.Stack != b.in.Stack || b.matched[a.ID] != nil {
			continue
		}
		b.deleting[a.ID] = true
		if a.Kind.Holds != "" && !allowed(a) {
			b.plan.Problems = append(b.plan.Problems, Problem{
				Address: a.Address,
				Summary: fmt.Sprintf("%s holds data and may not be destroyed", a.Addr()),
				Detail: fmt.Sprintf("Destroying %s would delete its data. To allow it, set %s = true in its block, apply that, "+
					"and then remove the block or run the destroy again.", a.Addr(), a.Kind.Holds),
			})
		}
		b.plan.Changes = append(b.plan.Changes, Change{
			Action: Delete, ID: a.ID, Kind: a.Kind, Address: a.Address, Addr: a.Addr(), Saw: a.Revision,
			Attrs: b.gone(a), Reason: DeleteNoBlock, Detail: fmt.Sprintf("%s is not in the configuration", a.Address),
		})
	}
}

func allowed(a *Actual) bool {
	v := a.Spec.GetAttr(a.Kind.Holds)
	return !v.IsNull() && v.True()
}

func (b *builder) gone(a *Actual) []Attr {
	var attrs []Attr
	object := schema.Object{Kind: a.Kind, Address: a.Address}
	for _, name := range a.Kind.Names() {
		before := a.Spec.GetAttr(name)
		if !absent(before) {
			attrs = append(attrs, b.attr(&object, name, before, cty.NullVal(before.Type())))
		}
	}
	return attrs
}

// order sorts the changes: what is referred to is made before and destroyed after what refers to it.
func (b *builder) order() {
	g := graph.New[string]()
	changes := map[string]Change{}
	add := func(c Change, id string) {
		changes[id] = c
		g.Add(id)
	}
	for _, c := range b.plan.Changes {
		add(c, c.ID)
	}
	for _, c := range b.plan.Changes {
		b.connect(g, changes, c)
	}
	order, err := g.Order()
	if err != nil {
		return // references never form a cycle among kinds; the order of the configuration is kept then
	}
	b.plan.Changes = b.plan.Changes[:0]
	for _, id := range order {
		b.plan.Changes = append(b.plan.Changes, changes[id])
	}
}

func (b *builder) connect(g *graph.Graph[string], changes map[string]Change, c Change) {
	if c.Action == Delete {
		a := b.byID[c.ID]
		for _, ref := range a.Kind.Refs(a.Spec) {
			if target := b.byAddr[ref.To]; target != nil && changes[target.ID].Action == Delete {
				g.Connect(target.ID, c.ID)
			}
		}
		return
	}
	for _, dep := range b.matched[c.ID].DependsOn {
		if id, ok := b.ids[dep]; ok && id != c.ID {
			if _, changing := changes[id]; changing {
				g.Connect(c.ID, id)
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

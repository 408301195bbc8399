package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// Input is what a plan is made from.
type Input struct {
	Stack     string
	Mode      Mode
	Selection Selection
	Desired   schema.Desired
	Actual    []Actual
	// About, when it is not nil, makes this the plan of a request: it holds the ids of the stored objects that the
	// request names, each with the address that it gets, or "" for one that goes. All others count as those of
	// others, of the own stack too. Outputs stay as they are.
	About map[string]string
	// Lost are the objects that the stack has lost and has not taken note of.
	Lost []Lost
	// Outputs are those of the last apply. The Value of a sensitive one is its fingerprint, a string.
	Outputs []schema.Output
	// Sensitive names, by address, attributes that must not be shown although their block is not
	// desired: a destroy still knows the configuration.
	Sensitive map[string][]string
	// NewID makes the id of a new object.
	NewID func() string
	// Fingerprint stands for a secret in a spec. Several goroutines may call it at once.
	Fingerprint func(id, attr, secret string) string
	// FingerprintOutput stands for the value of a sensitive output.
	FingerprintOutput func(name string, v cty.Value) string
}

// Build compares desired and actual. Its result has no ID, times or live half; the engine adds them.
//
// It decides about each object, then about what follows for others, then leaves out what the selection
// leaves out, and at last looks at the world as the plan would leave it: names that are taken and
// references to nothing are problems, whatever led to them.
func Build(in Input) *Plan {
	b := newBuilder(in)
	if in.Mode == RefreshOnly {
		b.refresh()
	} else {
		b.compare()
		b.replaceMore()
		b.decide()
		b.leaveRest()
	}
	b.narrow()
	b.lost()
	if !b.asked() {
		b.proposeMoves()
	}
	b.finish()
	b.outputs()
	return b.plan
}

type builder struct {
	in       Input
	plan     *Plan
	fields   map[*schema.Kind][]field
	stored   []*pair               // live objects of all stacks, by kind and name
	wanted   []*pair               // in the order of Input.Desired
	byAddr   map[schema.Addr]*pair // stored
	byBlock  map[string]*pair      // stored ones of the own stack, by address after moves
	wantAt   map[string]*pair      // by address in the configuration
	wantAddr map[schema.Addr]*pair
	lostAt   map[string][]Lost // by address after moves
	// configured is what the configuration has, also in a plan that desires nothing.
	configured []schema.Object
	// protects names the blocks with prevent_destroy, also in a plan that desires nothing.
	protects map[string]bool
	renames  bool // some stored object gets another name
	drift    []drifted
	found    []found
	names    map[schema.Addr]map[string]bool // of objects, by what is around them
}

// found is a problem and the object it is about; nil for one of the whole plan.
type found struct {
	of *pair
	Problem
}

type drifted struct {
	of *pair
	Drift
}

func newBuilder(in Input) *builder {
	b := &builder{
		in: in, plan: &Plan{Stack: in.Stack, Mode: in.Mode, Partial: in.Selection.Partial()},
		fields: fields(), byAddr: make(map[schema.Addr]*pair, len(in.Actual)),
		byBlock: make(map[string]*pair, len(in.Actual)), wantAt: make(map[string]*pair, len(in.Desired.Objects)),
		wantAddr: make(map[schema.Addr]*pair, len(in.Desired.Objects)), protects: map[string]bool{}, lostAt: map[string][]Lost{},
	}
	b.configured = in.Desired.Objects
	for _, o := range b.configured {
		if o.Lifecycle.PreventDestroy {
			b.protects[o.Address] = true
		}
	}
	if in.Mode == Destroy {
		b.in.Desired.Objects, b.in.Desired.Imports = nil, nil
	}
	b.store()
	b.want()
	b.move()
	b.imports()
	for _, p := range b.wanted {
		b.match(p)
	}
	b.keepNames()
	b.link()
	return b
}

// enoughToShare is how many objects are worth a processor of their own.
const enoughToShare = 256

func (b *builder) store() {
	pairs := make([]pair, len(b.in.Actual))
	parallel.Each(len(pairs), enoughToShare, func(i int) {
		a := &b.in.Actual[i]
		addr := a.Addr()
		pairs[i] = pair{
			id: a.ID, kind: a.Kind, have: a, addr: addr, was: addr, own: a.Stack == b.in.Stack, at: a.Address, kept: true,
		}
		if b.in.About != nil {
			to, named := b.in.About[a.ID]
			pairs[i].own, pairs[i].at = pairs[i].own && named, cmp.Or(to, a.Address)
		}
	})
	b.stored = make([]*pair, 0, len(pairs))
	for i := range pairs {
		if p := &pairs[i]; !p.have.Tombstone {
			b.stored = append(b.stored, p)
			b.byAddr[p.addr] = p
		}
	}
	rank := map[*schema.Kind]int{}
	for i, k := range schema.Kinds() {
		rank[k] = i
	}
	slices.SortStableFunc(b.stored, func(x, y *pair) int { // snapshots are in this order already
		return cmp.Or(rank[x.kind]-rank[y.kind], cmp.Compare(x.addr.Path, y.addr.Path))
	})
}

func (b *builder) want() {
	pairs := make([]pair, len(b.in.Desired.Objects))
	b.wanted = make([]*pair, len(pairs))
	parallel.Each(len(pairs), enoughToShare, func(i int) {
		want := &b.in.Desired.Objects[i]
		pairs[i] = pair{kind: want.Kind, want: want, addr: want.Addr(), own: true, at: want.Address, kept: true}
		b.wanted[i] = &pairs[i]
	})
	for _, p := range b.wanted {
		b.wantAt[p.at] = p
	}
}

// match finds the stored object that a desired one is: by its import, by its block, else by its key.
func (b *builder) match(p *pair) {
	have := p.takes
	if have == nil {
		have = b.byBlock[p.at]
	}
	if have == nil || have.kind != p.kind {
		have = b.byAddr[p.addr]
		if have != nil && (!have.own || b.wantAt[have.at] != nil) {
			have = nil // another's, or about to be renamed: the check of names judges
		}
	}
	b.wantAddr[p.addr] = p
	if have == nil || have.want != nil {
		p.id = b.in.NewID()
		return
	}
	p.id, p.have, p.was = have.id, have.have, have.was
	have.want, have.twin = p.want, p
}

// finish takes over the changes in the order of doing, and what was found of what is in the plan.
func (b *builder) finish() {
	b.checkWorld()
	for _, p := range b.all() {
		switch {
		case p.change != nil && p.kept:
			b.plan.Changes = append(b.plan.Changes, *p.change)
		case p.have != nil && p.have.Stack == b.in.Stack && p.own:
			b.plan.Unchanged++
		}
	}
	for _, d := range b.drift {
		if d.of.whole().kept {
			b.plan.Drift = append(b.plan.Drift, d.Drift)
		}
	}
	for _, f := range b.found {
		if f.of == nil || f.of.whole().kept {
			b.plan.Problems = append(b.plan.Problems, f.Problem)
		}
	}
	b.order()
	b.followers()
}

// followers says of each rename how many objects refer to the object: the store gives them its new name.
func (b *builder) followers() {
	renamed := map[schema.Addr]int{} // how many refer to it, by the name that it loses
	for _, c := range b.plan.Changes {
		if c.Action == Update && c.Was.Kind != "" {
			renamed[c.Was] = 0
		}
	}
	if len(renamed) == 0 {
		return
	}
	for _, p := range b.stored {
		met := map[schema.Addr]bool{}
		for _, ref := range p.kind.Refs(p.have.Spec) {
			if n, ok := renamed[ref.To]; ok && !met[ref.To] {
				met[ref.To], renamed[ref.To] = true, n+1
			}
		}
	}
	for i := range b.plan.Changes {
		c := &b.plan.Changes[i]
		if n := renamed[c.Was]; n > 0 && c.Action == Update && c.Detail == "" {
			c.Detail = "the name changes in what refers to it as well: " + Plural(n, "object")
		}
	}
}

// all lists the desired objects and then the stored ones that are not.
func (b *builder) all() []*pair {
	list := make([]*pair, 0, len(b.wanted)+len(b.stored))
	list = append(list, b.wanted...)
	for _, p := range b.stored {
		if p.twin == nil {
			list = append(list, p)
		}
	}
	return list
}

func (b *builder) problem(of *pair, p Problem) { b.found = append(b.found, found{of, p}) }

// addresses lists what a user may call the objects of the stack, sorted: by kind and key, or by their addresses, with those
// of blocks that have several.
func (b *builder) addresses(byKey bool) []string {
	var list []string
	for _, p := range b.all() {
		if !p.own || p.at == "" {
			continue
		}
		if byKey {
			list = append(list, p.addr.String())
			continue
		}
		list = append(list, p.at)
		if several, _, ok := strings.Cut(p.at, "["); ok {
			list = append(list, several)
		}
	}
	slices.SortFunc(list, cmp.Compare)
	return slices.Compact(list)
}

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Request asks for changes of single objects of one stack. All other objects, of this stack too, stay as
// they are.
type Request struct {
	// Stack without a lineage means the one that is known by its name, or a new one.
	Stack   store.Stack
	Changes []Asked
}

// Asked is one change of a request.
type Asked struct {
	Kind *schema.Kind
	// Key is what the object is called now. The zero Addr of a put stands for the name that its Value has.
	Key    schema.Addr
	Delete bool
	// Value is all that is written of the object, with secrets in clear. Put.
	Value cty.Value
	// Keep leads to attributes, and to attributes of single blocks, that stay as they are stored, whatever
	// Value has there. Put.
	Keep      []cty.Path
	Protected bool // Put
	// TakeOver takes the object over if it belongs to another stack, or to none. Put.
	TakeOver bool
	// IfMatch is the revision that the object must be at: 0 for one that must not be there, AnyRevision for
	// one that must. Nil: as it is.
	IfMatch *store.Revision
}

// AnyRevision asks for an object that is there.
const AnyRevision store.Revision = -1

// FaultCode says, for programs, what is wrong with a change.
type FaultCode string

const (
	FaultInvalid  FaultCode = "invalid"   // by itself, or it refers to nothing
	FaultConflict FaultCode = "conflict"  // at odds with an owner, a name, a reference or a protection
	FaultNotFound FaultCode = "not_found" // there is no such object
	FaultRevision FaultCode = "revision"  // the object is not at the revision of IfMatch
)

// Fault is what is wrong with one change of a request.
type Fault struct {
	Index   int // of the change; -1 where it is about none
	Code    FaultCode
	Path    cty.Path // in the value; nil for the whole
	Summary string
	Detail  string
}

// RequestError says what is wrong with a request. Nothing of it was done.
type RequestError struct{ Faults []Fault }

func (e *RequestError) Error() string {
	more := ""
	if n := len(e.Faults) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return e.Faults[0].Summary + more
}

// Asked returns the ids of the objects of the request's changes, in their order. It is nil for other plans.
func (p *Plan) Asked() []string { return p.asked }

// Request plans the changes of a request. It writes nothing, and does not look at the live world. Errors: a
// RequestError; a StackError for a lineage that is not the stack's.
func (e *Engine) Request(ctx context.Context, r Request) (*Plan, error) {
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read store: %w", err)
	}
	known := snap.Stacks[r.Stack.Name]
	if r.Stack.Lineage == "" {
		r.Stack.Lineage = known.Lineage
	}
	if err := (store.Change{Stack: r.Stack}).Admit(known); err != nil {
		return nil, err
	}
	if r.Stack.Lineage == "" {
		r.Stack.Lineage = uuid.NewString()
	}
	a := newAsking(snap, r)
	if len(a.faults) > 0 {
		return nil, &RequestError{a.faults}
	}
	p := e.compare(snap, r.Stack, a.desired, PlanOptions{about: a.about})
	if p.Failed() {
		return nil, &RequestError{a.judged(p.Problems)}
	}
	e.warnOfRoles(ctx, snap, p.Plan, a.desired)
	p.ID, p.Lineage, p.Created, p.asked = uuid.NewString(), r.Stack.Lineage, time.Now(), a.objects(p.Plan)
	if p.Draining, err = e.draining(ctx, snap, p.Changes); err != nil {
		return nil, err
	}
	return p, nil
}

// asking is a request on its way to a plan.
type asking struct {
	Request
	byAddr  map[schema.Addr]*store.Object // live ones
	ids     []string                      // of the objects that are there, by change
	places  map[string]int                // the change of each address
	desired schema.Desired
	about   map[string]string
	faults  []Fault
}

func newAsking(snap *store.Snapshot, r Request) *asking {
	a := &asking{
		Request: r, byAddr: make(map[schema.Addr]*store.Object, len(snap.Objects)), ids: make([]string, len(r.Changes)),
		places: map[string]int{}, about: map[string]string{},
	}
	for i := range snap.Objects {
		if o := &snap.Objects[i]; !o.Tombstone {
			a.byAddr[o.Addr()] = o
		}
	}
	if err := schema.CheckName(r.Stack.Name); err != nil || r.Stack.Name == plan.SystemStack {
		a.fault(-1, FaultInvalid, nil, fmt.Sprintf("%q cannot be the name of a stack", r.Stack.Name), "")
		return a
	}
	a.Changes = slices.Clone(r.Changes) // what is kept is filled in
	for i := range a.Changes {
		a.take(i)
	}
	schema.Depend(a.desired.Objects)
	return a
}

func (a *asking) fault(i int, code FaultCode, path cty.Path, summary, detail string) {
	a.faults = append(a.faults, Fault{Index: i, Code: code, Path: path, Summary: summary, Detail: detail})
}

// take finds the object of a change, and adds what is asked of it.
func (a *asking) take(i int) {
	c := &a.Changes[i]
	to := c.Key
	if !c.Delete {
		to = c.Kind.Addr(c.Value)
		if c.Key == (schema.Addr{}) {
			c.Key = to
		}
	}
	have := a.byAddr[c.Key]
	if !c.Delete && !a.complete(i, have) {
		return
	}
	if c.IfMatch != nil && !a.matches(i, have) {
		return
	}
	if have == nil && (c.Delete || c.Key != to) {
		a.fault(i, FaultNotFound, nil, fmt.Sprintf("%s does not exist", c.Key), "")
		return
	}
	if have != nil {
		if _, twice := a.about[have.ID]; twice {
			a.fault(i, FaultInvalid, nil, fmt.Sprintf("%s is named twice", c.Key), "A request names each object once.")
			return
		}
		a.ids[i], a.about[have.ID] = have.ID, ""
	}
	if c.Delete {
		a.remove(i, have)
		return
	}
	a.put(i, to.Own(), have)
}

// complete gives a put the value that it is for, and reports whether the kind takes it.
func (a *asking) complete(i int, have *store.Object) bool {
	c := &a.Changes[i]
	c.Value = c.kept(have)
	_, problems := c.Kind.Complete(c.Value)
	for _, p := range problems {
		a.fault(i, FaultInvalid, p.Path, p.Message, "")
	}
	return len(problems) == 0
}

// matches reports whether an object is at the revision that a change asks for.
func (a *asking) matches(i int, have *store.Object) bool {
	c := a.Changes[i]
	switch want := *c.IfMatch; {
	case have == nil && want == 0, have != nil && (have.Revision == want || want == AnyRevision):
		return true
	case have == nil && want == AnyRevision:
		a.fault(i, FaultRevision, nil, fmt.Sprintf("%s does not exist", c.Key), "The request is for one that does.")
	case have == nil:
		a.fault(i, FaultRevision, nil, fmt.Sprintf("%s does not exist", c.Key), fmt.Sprintf("The request saw it at revision %d.", want))
	case want == 0:
		a.fault(i, FaultRevision, nil, fmt.Sprintf("%s exists already", c.Key), fmt.Sprintf("It is at revision %d.", have.Revision))
	default:
		a.fault(i, FaultRevision, nil, fmt.Sprintf("%s is at revision %d", c.Key, have.Revision),
			fmt.Sprintf("The request saw it at revision %d.", want))
	}
	return false
}

func (a *asking) remove(i int, have *store.Object) {
	if have.Stack != a.Stack.Name {
		owner := "nobody"
		if have.Stack != "" {
			owner = fmt.Sprintf("stack %q", have.Stack)
		}
		a.fault(i, FaultConflict, nil, fmt.Sprintf("%s belongs to %s", have.Addr(), owner),
			fmt.Sprintf("Stack %q deletes only what it owns.", a.Stack.Name))
		return
	}
	a.places[have.Address] = i
}

func (a *asking) put(i int, at schema.Address, have *store.Object) {
	c, to := &a.Changes[i], at.String()
	if _, twice := a.places[to]; twice {
		a.fault(i, FaultInvalid, nil, fmt.Sprintf("%s is named twice", to), "A request names each object once.")
		return
	}
	a.places[to] = i
	object := schema.Object{
		Kind: c.Kind, Address: to, Value: c.Value, Lifecycle: schema.Lifecycle{PreventDestroy: c.Protected, IgnoreChanges: c.Keep},
	}
	if have != nil {
		a.about[have.ID] = to
		if c.TakeOver && have.Stack != a.Stack.Name {
			a.desired.Imports = append(a.desired.Imports, schema.Import{To: at, ID: c.Key})
		}
	}
	a.desired.Objects = append(a.desired.Objects, object)
}

// kept is the value of a put with what it keeps in its place, but for secrets: what is stored stands for them.
func (c *Asked) kept(have *store.Object) cty.Value {
	if have == nil || len(c.Keep) == 0 {
		return c.Value
	}
	attrs, stored := c.Value.AsValueMap(), have.Spec.AsValueMap()
	for _, path := range c.Keep {
		name := path[0].(cty.GetAttrStep).Name
		switch a, _ := c.Kind.Attr(name); {
		case a != nil && a.Secret:
			attrs[name] = cty.NullVal(a.Type)
		case len(path) == 1:
			attrs[name] = stored[name]
		default:
			attrs[name] = plan.Overlaid(attrs[name], stored[name], []string{path[1].(cty.GetAttrStep).Name})
		}
	}
	return cty.ObjectVal(attrs)
}

// judged are the problems of a plan, by change.
func (a *asking) judged(problems []plan.Problem) []Fault {
	for _, p := range problems {
		if p.Warning {
			continue
		}
		i, ok := a.places[p.Address]
		if !ok {
			i = -1
		}
		code := FaultInvalid
		if p.Conflict {
			code = FaultConflict
		}
		a.fault(i, code, p.Path, p.Summary, p.Detail)
	}
	slices.SortStableFunc(a.faults, func(x, y Fault) int { return x.Index - y.Index })
	return a.faults
}

// objects are the ids of what the changes leave behind, or take away.
func (a *asking) objects(p *plan.Plan) []string {
	for i := range p.Changes {
		c := &p.Changes[i]
		if at, ok := a.places[c.Address]; ok {
			a.ids[at] = c.Target()
		}
	}
	return a.ids
}

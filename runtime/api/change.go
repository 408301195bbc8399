package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

type changeBody struct {
	Action    string         `json:"action"` // put or delete
	Kind      string         `json:"kind"`
	Key       string         `json:"key"`
	Spec      map[string]any `json:"spec"`
	Protected bool           `json:"protected"`
	TakeOver  bool           `json:"take_over"`
	IfMatch   match          `json:"if_match"`
}

// wish is one change as a client asks for it.
type wish struct {
	kind      *schema.Kind
	key       schema.Addr // zero: that of the spec
	remove    bool
	patch     bool // spec is a merge patch of what is stored
	spec      map[string]any
	protected bool
	takeOver  bool
	condition condition
	at        string // as place has it
}

// draft is a request on its way to the engine.
type draft struct {
	caller caller
	byAddr map[schema.Addr]*store.Object // live ones, whoever may see them
	asked  []engine.Asked
	places []place
}

func newDraft(who caller, snap *store.Snapshot) *draft {
	d := &draft{caller: who, byAddr: make(map[schema.Addr]*store.Object, len(snap.Objects))}
	for i := range snap.Objects {
		if o := &snap.Objects[i]; !o.Tombstone {
			d.byAddr[o.Addr()] = o
		}
	}
	return d
}

// tries is how often a request is planned: others may commit in between.
const tries = 4

// made is a request that was planned, and committed unless that was not wanted.
type made struct {
	*engine.Plan
	before, after *store.Snapshot
}

// make plans the wishes of a stack, and commits them.
func (c *call) make(stack store.Stack, wishes []wish, commit bool) (made, *failure) {
	if stack.Name == "" {
		return made{}, badRequest("the stack is missing").at("stack")
	}
	for try := 1; ; try++ {
		snap, err := c.rest.Engine.Store.Snapshot(c.Context())
		if err != nil {
			return made{}, broken(err)
		}
		d := newDraft(c.caller, snap)
		for i := range wishes {
			if f := d.take(&wishes[i]); f != nil {
				return made{}, f
			}
		}
		p, err := c.rest.Engine.Request(c.Context(), engine.Request{Stack: stack, Changes: d.asked})
		if err != nil {
			if try < tries && overtaken(err, wishes) {
				continue
			}
			return made{}, failed(err, d.places)
		}
		m := made{Plan: p, before: snap}
		if !commit {
			return m, nil
		}
		err = c.rest.Engine.Commit(c.Context(), p, c.who(), false)
		if again(err, stack) && try < tries {
			continue
		}
		if err != nil {
			return m, failed(err, d.places)
		}
		if m.after, err = c.rest.Engine.Store.Snapshot(c.Context()); err != nil {
			return m, broken(err)
		}
		c.rest.learnedRevision(c.Context(), m.after.Revision)
		return m, nil
	}
}

// overtaken reports whether a request is refused only because another came first, and the client asked nothing of
// what is there.
func overtaken(err error, wishes []wish) bool {
	var bad *engine.RequestError
	return errors.As(err, &bad) && !slices.ContainsFunc(bad.Faults, func(f engine.Fault) bool {
		return f.Code != engine.FaultRevision || !wishes[f.Index].condition.free()
	})
}

// again reports whether a commit failed because another came first, which a new plan takes in.
func again(err error, stack store.Stack) bool {
	var conflict *store.ConflictError
	var other *store.StackError
	return errors.As(err, &conflict) || stack.Lineage == "" && errors.As(err, &other)
}

// free reports whether nothing is asked of what is there.
func (c condition) free() bool { return !c.absent && !c.exists && len(c.revisions) == 0 }

// take turns a wish into a change that the engine takes, or says why the caller may not have it.
func (d *draft) take(w *wish) *failure {
	key := w.key
	var have *store.Object
	if key != (schema.Addr{}) {
		if have = d.byAddr[key]; !d.caller.sees(w.kind.TenantOfKey(key)) {
			return notFound().at(w.at)
		}
	}
	if w.remove || w.patch {
		if have == nil {
			return notFound().at(w.at)
		}
	}
	if have != nil && !d.caller.mayChange(have.Kind, have.Spec) {
		return forbidden(w.at)
	}
	if w.remove {
		d.add(engine.Asked{Kind: w.kind, Key: key, Delete: true, IfMatch: d.match(w, have)}, place{at: w.at})
		return nil
	}
	spec, f := d.spec(w, have)
	if f != nil {
		return f
	}
	written, problems := w.kind.Read(spec)
	p := place{w.at, written.Items}
	if len(problems) > 0 {
		list := make([]engine.Fault, len(problems))
		for i, problem := range problems {
			list[i] = engine.Fault{Index: 0, Code: engine.FaultInvalid, Path: problem.Path, Summary: problem.Message}
		}
		return faults(list, []place{p})
	}
	return d.put(w, have, written.Value, p)
}

func (d *draft) add(a engine.Asked, p place) {
	d.asked, d.places = append(d.asked, a), append(d.places, p)
}

// match is the revision that the engine must find. What was judged here, a patch or what a caller may do, was
// judged of that one.
func (d *draft) match(w *wish, have *store.Object) *store.Revision {
	want := w.condition.of(have)
	if want != nil || d.caller.System && !w.patch {
		return want
	}
	seen := store.Revision(0)
	if have != nil {
		seen = have.Revision
	}
	return &seen
}

func forbidden(at string) *failure {
	return refuse(http.StatusForbidden, "forbidden", "only a system administrator may do that").at(at)
}

// spec is the object that a wish is for, with its key.
func (d *draft) spec(w *wish, have *store.Object) (map[string]any, *failure) {
	if f := d.readable(w); f != nil {
		return nil, f
	}
	spec := maps.Clone(w.spec)
	if spec == nil {
		spec = map[string]any{}
	}
	if w.patch {
		stored, err := (&view{caller: d.caller}).plain(*have)
		if err != nil {
			return nil, broken(err)
		}
		if f := unread(w, have); f != nil {
			return nil, f
		}
		return merge(stored, w.spec).(map[string]any), nil
	}
	if w.key == (schema.Addr{}) {
		return spec, nil
	}
	parts := keyParts(w.kind, w.key, have)
	for name, part := range parts {
		if _, given := spec[name]; !given && !another(w.kind, name, spec) {
			spec[name] = part
		}
	}
	return spec, nil
}

// readable refuses attributes that the caller does not see.
func (d *draft) readable(w *wish) *failure {
	for _, path := range d.caller.hidden(w.kind) {
		at := any(w.spec)
		for _, step := range path {
			switch v := at.(type) {
			case map[string]any:
				at = v[step.(cty.GetAttrStep).Name]
			default:
				at = nil
			}
		}
		if at != nil {
			return forbidden(place{at: w.at}.spec(path))
		}
	}
	return nil
}

// unread refuses a patch that gives a secret which would not be read.
func unread(w *wish, have *store.Object) *failure {
	for i := range w.kind.Attrs {
		a := &w.kind.Attrs[i]
		if a.Version == "" || w.spec[a.Name] == nil || have.Spec.GetAttr(a.Name).IsNull() {
			continue
		}
		if _, raised := w.spec[a.Version]; !raised {
			f := refuse(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("the %s is read again when %s rises: give both", a.Name, a.Version))
			return f.at(place{at: w.at}.spec(cty.GetAttrPath(a.Name)))
		}
	}
	return nil
}

// put adds the put of a value that can be read.
func (d *draft) put(w *wish, have *store.Object, value cty.Value, p place) *failure {
	if !d.caller.sees(w.kind.TenantOf(value)) {
		return notFound().at(w.at)
	}
	if !d.caller.mayChange(w.kind, value) {
		return forbidden(w.at)
	}
	key := w.key
	if key == (schema.Addr{}) {
		key = w.kind.Addr(value)
		have = d.byAddr[key]
	}
	a := engine.Asked{
		Kind: w.kind, Key: key, Value: value, Protected: w.protected, TakeOver: w.takeOver, IfMatch: d.match(w, have),
	}
	if w.patch {
		a.Protected = have.Protected
	}
	if have != nil {
		a.Keep = append(d.caller.hidden(w.kind), untold(w, have)...)
	}
	d.add(a, p)
	return nil
}

// untold are the attributes that nobody can read, and so nobody can give back: they stay, unless the wish says
// otherwise, or gives what stands for the same.
func untold(w *wish, have *store.Object) []cty.Path {
	told := map[string]bool{}
	for i := range w.kind.Attrs {
		a := &w.kind.Attrs[i]
		if _, told[a.Name] = w.spec[a.Name]; told[a.Name] && a.StoredAs != "" {
			told[a.StoredAs] = true
		}
	}
	var keep []cty.Path
	for i := range w.kind.Attrs {
		a := &w.kind.Attrs[i]
		hidden := a.Secret || w.patch && have.Conceals(a.Name)
		if hidden && !told[a.Name] && !told[a.StoredAs] {
			keep = append(keep, cty.GetAttrPath(a.Name))
		}
	}
	for i := range w.kind.Blocks {
		name := w.kind.Blocks[i].Name
		if _, given := w.spec[name]; w.patch && have.Conceals(name) && !given {
			keep = append(keep, cty.GetAttrPath(name))
		}
	}
	return keep
}

// wish reads a change of a list.
func (b *changeBody) wish(i int) (wish, *failure) {
	at := fmt.Sprintf("changes[%d]", i)
	w := wish{spec: b.Spec, protected: b.Protected, takeOver: b.TakeOver, at: at, remove: b.Action == "delete"}
	if !w.remove && b.Action != "put" {
		return w, badRequest("an action is put or delete").at(at + ".action")
	}
	var ok bool
	if w.kind, ok = schema.Lookup(b.Kind); !ok {
		return w, badRequest("there is no such kind").at(at + ".kind")
	}
	if b.Key != "" {
		var err error
		if w.key, err = w.kind.ParseKey(b.Key); err != nil {
			return w, badRequest("this names no %s: want %s", w.kind.Name, w.kind.KeyForm()).at(at + ".key")
		}
	}
	switch {
	case w.remove && b.Key == "":
		return w, badRequest("a delete needs a key").at(at + ".key")
	case w.remove && (b.Spec != nil || b.Protected || b.TakeOver):
		return w, badRequest("a delete has no more than kind, key and if_match").at(at)
	case !w.remove && b.Spec == nil:
		return w, badRequest("a put needs a spec").at(at + ".spec")
	}
	if b.IfMatch.given {
		w.condition.absent = b.IfMatch.revision == 0
		if !w.condition.absent {
			w.condition.revisions = []store.Revision{b.IfMatch.revision}
		}
	}
	return w, nil
}

type requestBody struct {
	Stack   string       `json:"stack"`
	Lineage string       `json:"lineage"`
	Changes []changeBody `json:"changes"`
}

// most changes that one request may have.
const mostChanges = 10_000

func (c *call) request(commit bool) (made, []wish, *failure) {
	var in requestBody
	if f := c.read(&in); f != nil {
		return made{}, nil, f
	}
	if n := len(in.Changes); n == 0 || n > mostChanges {
		return made{}, nil, badRequest("want 1 to %d changes", mostChanges).at("changes")
	}
	wishes := make([]wish, len(in.Changes))
	for i := range in.Changes {
		var f *failure
		if wishes[i], f = in.Changes[i].wish(i); f != nil {
			return made{}, nil, f
		}
	}
	m, f := c.make(store.Stack{Name: in.Stack, Lineage: in.Lineage}, wishes, commit)
	return m, wishes, f
}

func (c *call) plan() *failure {
	m, _, f := c.request(false)
	if f != nil {
		return f
	}
	d, err := c.document(m.Plan.Plan)
	if err != nil {
		return broken(err)
	}
	return c.ok(d)
}

func (c *call) apply() *failure {
	m, wishes, f := c.request(true)
	if f != nil {
		c.refusedChange(f.Code)
		return f
	}
	objects := make([]string, len(wishes))
	kinds := make([]*schema.Kind, len(wishes))
	for i := range wishes {
		objects[i], kinds[i] = m.Asked()[i], wishes[i].kind
	}
	c.noteChange(fmt.Sprintf("plan %s", m.ID), m.after.Revision, m.Plan.Plan)
	return c.applied(m.Plan.Plan, m.after, objects, kinds)
}

// applied answers with a plan that was committed, and the objects that it is about.
func (c *call) applied(p *plan.Plan, snap *store.Snapshot, ids []string, kinds []*schema.Kind) *failure {
	d, err := c.document(p)
	if err != nil {
		return broken(err)
	}
	v, err := c.rest.view(c.Context(), snap, c.caller, kinds...)
	if err != nil {
		return broken(err)
	}
	at := map[string]*store.Object{}
	for i := range snap.Objects {
		at[snap.Objects[i].ID] = &snap.Objects[i]
	}
	objects := []Object{}
	for _, id := range ids {
		if o := at[id]; o != nil && c.caller.visible(o) {
			shown, err := v.show(*o)
			if err != nil {
				return broken(err)
			}
			objects = append(objects, shown)
		}
	}
	return c.ok(map[string]any{"revision": snap.Revision, "plan": d, "objects": objects})
}

// document is the plan as the caller may see it.
func (c *call) document(p *plan.Plan) (*plan.Document, error) {
	return plan.NewDocument(c.caller.shown(p), c.rest.Version, nil)
}

// shown is a plan with what the caller must not see marked as such.
func (c caller) shown(p *plan.Plan) *plan.Plan {
	shown := *p
	shown.Changes = slices.Clone(p.Changes)
	for i := range shown.Changes {
		change := &shown.Changes[i]
		change.Attrs = slices.Clone(change.Attrs)
		for _, path := range c.hidden(change.Kind) {
			name := path[0].(cty.GetAttrStep).Name
			change.Sensitive = append(slices.Clone(change.Sensitive), name)
			for j := range change.Attrs {
				change.Attrs[j].Sensitive = change.Attrs[j].Sensitive || change.Attrs[j].Name == name
			}
		}
	}
	return &shown
}

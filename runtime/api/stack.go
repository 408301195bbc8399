package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// stacks are the routes of the command line: whole configurations, evaluated where their files are, and what is stored,
// in the forms in which qod has them itself. Both sides are of one version.
func (a *REST) stacks() []route {
	const command = "command"
	return []route{
		{
			method: http.MethodPost, path: "stack/plan", name: "plan_stack", body: command, answer: "document", large: true, run: (*call).planStack,
			doc: "Plan a whole configuration, for qod plan. The plan that is to be applied is sealed.",
		},
		{
			method: http.MethodPost, path: "stack/open", name: "open_plan", body: command, answer: "document", large: true, run: (*call).openPlan,
			doc: "Show a plan that is sealed, and check that it can still be applied.",
		},
		{
			method: http.MethodPost, path: "stack/apply", name: "apply_stack", body: command, answer: "events", large: true, changes: true,
			run: (*call).applyStack,
			doc: "Carry out a plan that is sealed, for qod apply: server-sent events `committed`, `held`, `pending`, and `done` or `failed` in the end.",
		},
		{
			method: http.MethodPost, path: "stack/rollback", name: "plan_rollback", body: command, answer: "document", system: true,
			run: (*call).planRollback, doc: "Plan the way of a stack back to a revision, for qod rollback.",
		},
		{
			method: http.MethodPost, path: "stack/addresses", name: "move_addresses", body: command, answer: "document", changes: true,
			large: true, run: (*call).moveAddresses, doc: "Change where a configuration has objects, or forget them, for qod state mv and rm.",
		},
		{
			method: http.MethodGet, path: "stack/pending", name: "pending", answer: "document", run: (*call).pending,
			doc: "List what of a stack is not yet as the store says, for qod wait.", query: []parameter{{name: "stack", doc: "The stack."}},
		},
		{
			method: http.MethodGet, path: "store", name: "store", answer: "document", run: (*call).store,
			doc:   "Show what is stored, for the commands that read it. Commits are shown to system administrators.",
			query: []parameter{{name: "history", doc: "With commits where it is true."}},
		},
	}
}

// StackPlan asks for the plan of a whole configuration.
type StackPlan struct {
	Stack   string    `json:"stack"`
	Lineage string    `json:"lineage"`
	Adopt   bool      `json:"adopt,omitempty"`
	Mode    plan.Mode `json:"mode,omitempty"`
	Targets []string  `json:"targets,omitempty"`
	Exclude []string  `json:"exclude,omitempty"`
	Replace []string  `json:"replace,omitempty"`
	// Configuration is a schema.Desired, with secrets in clear.
	Configuration json.RawMessage `json:"configuration"`
}

// StackPlanned is a plan to look at, and the same to apply.
type StackPlanned struct {
	Plan json.RawMessage `json:"plan"` // as plan.Sent writes it
	// Sealed is the plan as a file, for this server alone. A plan with errors has none.
	Sealed []byte `json:"sealed,omitempty"`
}

// StackOpen asks for what is in a plan.
type StackOpen struct {
	Sealed []byte `json:"sealed"`
	// Check refuses a plan that cannot be applied any more; Adopt is as for applying it.
	Check bool `json:"check,omitempty"`
	Adopt bool `json:"adopt,omitempty"`
}

// StackRollback asks for the way of a stack back.
type StackRollback struct {
	Stack      string         `json:"stack"`
	Lineage    string         `json:"lineage"`
	Revision   store.Revision `json:"revision"`
	AllowEmpty bool           `json:"allow_empty,omitempty"`
}

// StackAddresses puts objects at other addresses in the configuration, or with an empty one at none.
type StackAddresses struct {
	Stack   string         `json:"stack"`
	Lineage string         `json:"lineage"`
	Note    string         `json:"note"`
	Writes  []StackAddress `json:"writes"`
}

// StackAddress is the address of one object, which must still be at the revision that was seen.
type StackAddress struct {
	ID      string         `json:"id"`
	Saw     store.Revision `json:"saw"`
	Address string         `json:"address"`
}

// StackPending is what of a stack is not yet as the store says.
type StackPending struct {
	Pending []plan.LiveChange `json:"pending"`
}

// desired reads the configuration, and says what of it the caller may not ask for.
func (in *StackPlan) desired(c caller) (schema.Desired, []plan.Problem, *failure) {
	var d schema.Desired
	if err := json.Unmarshal(in.Configuration, &d); err != nil {
		return d, nil, refuse(http.StatusUnprocessableEntity, "invalid", err.Error()).at("configuration")
	}
	return d, c.confine(&d), nil
}

// options are those of the plan for a caller.
func (in *StackPlan) options(c caller) (engine.PlanOptions, *failure) {
	o := engine.PlanOptions{Mode: in.Mode, AdoptStack: in.Adopt}
	if !slices.Contains([]plan.Mode{plan.Normal, plan.Destroy, plan.RefreshOnly}, in.Mode) {
		return o, badRequest("there is no such mode").at("mode")
	}
	if !c.System {
		o.Sees = c.visible
	}
	for _, list := range []struct {
		name  string
		texts []string
		into  *[]schema.Address
	}{{"targets", in.Targets, &o.Selection.Targets}, {"exclude", in.Exclude, &o.Selection.Exclude}, {"replace", in.Replace, &o.Selection.Replace}} {
		for i, text := range list.texts {
			a, err := schema.ParseAddress(text)
			if err != nil {
				return o, badRequest("this is no address").at(fmt.Sprintf("%s[%d]", list.name, i))
			}
			*list.into = append(*list.into, a)
		}
	}
	return o, nil
}

func (c *call) planStack() *failure {
	var in StackPlan
	if f := c.read(&in); f != nil {
		return f
	}
	stack := store.Stack{Name: in.Stack, Lineage: in.Lineage}
	if _, f := c.admit(stack, in.Adopt); f != nil {
		return f
	}
	desired, problems, f := in.desired(c.caller)
	if f != nil {
		return f
	}
	o, f := in.options(c.caller)
	if f != nil {
		return f
	}
	p, err := c.rest.Engine.Plan(c.Context(), stack, desired, o)
	if err != nil {
		return failedStack(err)
	}
	p.Problems = append(problems, p.Problems...)
	return c.planned(p)
}

// failedStack is failed with a code of its own for a lineage that is not the stack's: the command line knows a way out.
func failedStack(err error) *failure {
	f := failed(err, nil)
	if stack := (*store.StackError)(nil); errors.As(err, &stack) {
		f.Code = "lineage"
	}
	return f
}

// planned answers with a plan.
func (c *call) planned(p *engine.Plan) *failure {
	sent, err := plan.Sent(c.caller.shown(p.Plan))
	if err != nil {
		return broken(err)
	}
	out := StackPlanned{Plan: sent}
	if !p.Failed() {
		if out.Sealed, err = c.rest.Engine.Marshal(p); err != nil {
			return broken(err)
		}
	}
	return c.ok(out)
}

func (c *call) openPlan() *failure {
	var in StackOpen
	if f := c.read(&in); f != nil {
		return f
	}
	p, f := c.unseal(in.Sealed, in.Adopt)
	if f != nil {
		return f
	}
	if in.Check {
		if err := c.rest.Engine.Check(c.Context(), p, in.Adopt); err != nil {
			return failedStack(err)
		}
	}
	sent, err := plan.Sent(c.caller.shown(p.Plan))
	if err != nil {
		return broken(err)
	}
	return c.ok(StackPlanned{Plan: sent})
}

// unseal opens a plan that the caller may carry out.
func (c *call) unseal(sealed []byte, adopt bool) (*engine.Plan, *failure) {
	p, err := c.rest.Engine.Unmarshal(sealed)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "invalid", err.Error()).at("sealed")
	}
	snap, f := c.admit(store.Stack{Name: p.Stack, Lineage: p.Lineage}, adopt)
	if f != nil {
		return nil, f
	}
	return p, c.caller.allows(snap, p.Plan)
}

// planRollback does for qod rollback what planStack does for qod plan.
func (c *call) planRollback() *failure {
	var in StackRollback
	if f := c.read(&in); f != nil {
		return f
	}
	p, err := c.past()
	if err != nil {
		return broken(err)
	}
	if in.Revision < 1 || in.Revision > p.Revision {
		return refuse(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("want a revision from 1 to %d", p.Revision)).at("revision")
	}
	planned, f := c.wayBack(p, store.Stack{Name: in.Stack, Lineage: in.Lineage}, in.Revision, in.AllowEmpty)
	if f != nil {
		return f
	}
	return c.planned(planned)
}

func (c *call) moveAddresses() *failure {
	var in StackAddresses
	if f := c.read(&in); f != nil {
		return f
	}
	change := store.Change{Stack: store.Stack{Name: in.Stack, Lineage: in.Lineage}, By: c.who().By, From: c.from, Note: shorten(in.Note)}
	snap, f := c.admit(change.Stack, false)
	if f != nil {
		return f
	}
	for i, w := range in.Writes {
		write, f := c.caller.moved(snap, in.Stack, w)
		if f != nil {
			return f.at(fmt.Sprintf("writes[%d]", i))
		}
		change.Writes = append(change.Writes, write)
	}
	revision, err := c.rest.Engine.Store.Commit(c.Context(), change)
	if err != nil {
		c.refusedChange("conflict")
		return failedStack(err)
	}
	c.rest.learnedRevision(c.Context(), revision)
	c.noteChange(change.Note, revision, &plan.Plan{Stack: in.Stack})
	return c.ok(map[string]any{"revision": revision})
}

// moved is the write that leaves an object as it is, at another address.
func (c caller) moved(snap *store.Snapshot, stack string, to StackAddress) (store.Write, *failure) {
	o := byID(snap, to.ID)
	if o == nil || !c.visible(o) || o.Tombstone || o.Stack != stack {
		return store.Write{}, notFound()
	}
	if !c.mayChange(o.Kind, o.Spec) {
		return store.Write{}, forbidden("")
	}
	w := store.Write{
		Op: store.Put, ID: o.ID, Kind: o.Kind, Saw: to.Saw, Spec: o.Spec, Applied: o.Applied, Address: to.Address, Stack: o.Stack,
		Protected: o.Protected, Sensitive: o.Sensitive,
	}
	if to.Address == "" {
		w.Stack = ""
		return w, nil
	}
	if a, err := schema.ParseAddress(to.Address); err != nil || a.Kind != o.Kind.Name {
		return w, badRequest("this is no address of a %s", o.Kind.Name)
	}
	return w, nil
}

func (c *call) pending() *failure {
	q, f := c.query()
	if f != nil {
		return f
	}
	if name := q.Get("stack"); schema.CheckName(name) != nil || name == plan.SystemStack {
		return badRequest("this cannot be the name of a stack").at("stack")
	}
	if _, f := c.admit(store.Stack{Name: q.Get("stack")}, false); f != nil {
		return f
	}
	pending, err := c.rest.Engine.Pending(c.Context(), q.Get("stack"))
	if err != nil {
		return broken(err)
	}
	return c.ok(StackPending{changesOf(pending)})
}

func changesOf(pending []plan.Finding) []plan.LiveChange {
	out := []plan.LiveChange{}
	for _, p := range pending {
		out = append(out, plan.LiveChange{Kind: p.Addr.Kind, Object: p.Addr.Path, Message: p.Message})
	}
	return out
}

// lockTimeout reads the seconds for which another process is waited for.
func lockTimeout(seconds float64) (time.Duration, *failure) {
	const most = 24 * 3600
	if seconds < 0 || seconds > most {
		return 0, badRequest("want seconds from 0 to %d", most).at("lock_timeout")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

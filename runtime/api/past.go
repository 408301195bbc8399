package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/schema"
)

// past is a snapshot and all commits up to it.
type past struct {
	*store.Snapshot
	applies []store.Apply
}

func (c *call) past() (past, error) {
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return past{}, err
	}
	applies, err := c.rest.State.ListApplies(c.Context(), 0, 0)
	applies = slices.DeleteFunc(applies, func(a store.Apply) bool { return a.Revision > snap.Revision })
	return past{snap, applies}, err
}

// history lists commits.
func (c *call) history() *failure {
	q, limit, f := c.limited()
	if f != nil {
		return f
	}
	p, err := c.past()
	if err != nil {
		return broken(err)
	}
	steps := history.Steps(p.Snapshot, p.applies)
	if stack := q.Get("stack"); stack != "" {
		steps = slices.DeleteFunc(steps, func(s history.Step) bool { return !s.Touches(stack) })
	}
	out := history.CommitsJSON{Format: history.JSONFormat, Commits: []history.CommitJSON{}}
	for _, s := range steps[:min(limit, len(steps))] {
		out.Commits = append(out.Commits, history.EncodeStep(s))
	}
	return c.ok(out)
}

type rollbackBody struct {
	Revision store.Revision `json:"revision"`
	Stack    string         `json:"stack"`
	DryRun   bool           `json:"dry_run"`
}

// rollback makes a stack's objects as they were.
func (c *call) rollback() *failure {
	var in rollbackBody
	if f := c.read(&in); f != nil {
		return f
	}
	p, err := c.past()
	if err != nil {
		return broken(err)
	}
	stack, known := p.Stacks[in.Stack]
	switch {
	case in.Stack == "":
		return badRequest("the stack is missing").at("stack")
	case in.Revision < 1 || in.Revision > p.Revision:
		return refuse(http.StatusUnprocessableEntity, "invalid", fmt.Sprintf("want a revision from 1 to %d", p.Revision)).at("revision")
	case !known:
		return refuse(http.StatusUnprocessableEntity, "invalid", "there is no stack of that name").at("stack")
	}
	planned, f := c.back(p, stack, in.Revision)
	if f != nil {
		return f
	}
	if in.DryRun {
		d, err := c.document(planned.Plan)
		if err != nil {
			return broken(err)
		}
		return c.ok(d)
	}
	if err := c.rest.Engine.Commit(c.Context(), planned, c.who(), false); err != nil {
		c.refusedChange("conflict")
		return failed(err, nil)
	}
	after, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return broken(err)
	}
	c.rest.learnedRevision(c.Context(), after.Revision)
	c.noteChange(fmt.Sprintf("stack %s", stack.Name), after.Revision, planned.Plan)
	var ids []string
	for i := range planned.Changes {
		ids = append(ids, planned.Changes[i].Target())
	}
	return c.applied(planned.Plan, after, ids, kinds())
}

// back plans the way of a stack back to a revision, which must be open.
func (c *call) back(p past, stack store.Stack, to store.Revision) (*engine.Plan, *failure) {
	planned, f := c.wayBack(p, stack, to, false)
	if f != nil {
		return nil, f
	}
	var faulty []engine.Fault
	for _, problem := range planned.Problems {
		if !problem.Warning {
			faulty = append(faulty, engine.Fault{Index: -1, Code: engine.FaultConflict, Summary: problem.Summary, Detail: problem.Detail})
		}
	}
	if len(faulty) > 0 {
		return nil, faults(faulty, nil)
	}
	return planned, nil
}

// wayBack plans the way of a stack back to a revision, with what stands in it.
func (c *call) wayBack(p past, stack store.Stack, to store.Revision, allowEmpty bool) (*engine.Plan, *failure) {
	then, err := history.At(p.Objects, p.applies, to)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "invalid", err.Error()).at("revision")
	}
	open, err := c.rest.State.StackOutputs(c.Context(), stack.Name)
	if err != nil {
		return nil, broken(err)
	}
	shown := p.Outputs[stack.Name]
	desired, problems := history.Past{
		Stack: stack.Name, Revision: to, Now: p.Objects, Then: then, AllowEmpty: allowEmpty,
		Shown: shown, ThenShown: history.OutputsAt(shown, p.applies, stack.Name, to), Open: open,
		Ever: history.EverConcealed(p.Snapshot, p.applies),
	}.Desired()
	planned, err := c.rest.Engine.Plan(c.Context(), stack, desired, engine.PlanOptions{})
	if err != nil {
		return nil, failedStack(err)
	}
	planned.Problems = append(problems, planned.Problems...)
	for i := range planned.Changes {
		if change := &planned.Changes[i]; change.Action == plan.Delete {
			change.Detail = fmt.Sprintf("it was not there at revision %d", to)
		}
	}
	return planned, nil
}

// Session is one that a login began.
type Session struct {
	ID     string    `json:"id"`
	User   string    `json:"user"`
	Tenant string    `json:"tenant,omitempty"`
	Realm  string    `json:"realm"`
	From   string    `json:"from"`
	Began  time.Time `json:"began"`
}

// sessions lists those that may still last: the audit knows their logins.
func (c *call) sessions() *failure {
	_, limit, f := c.limited()
	if f != nil {
		return f
	}
	filter := store.EventFilter{Action: actionLogin, Since: time.Now().Add(-c.rest.BearerLife)}
	if !c.caller.System {
		filter.Tenant = c.caller.Tenant
	}
	events, err := c.rest.State.ListEvents(c.Context(), filter)
	if err != nil {
		return broken(err)
	}
	users := map[[2]string]access.Account{}
	d := c.rest.Directory.Current()
	for _, a := range d.Accounts() {
		users[[2]string{schema.Fold(a.Tenant), schema.Fold(a.Name)}] = a
	}
	list := []Session{}
	for _, e := range events {
		id, ok := strings.CutPrefix(e.Object, "session ")
		u, known := users[[2]string{schema.Fold(e.Tenant), schema.Fold(e.User)}]
		if !known { // a system administrator that chose a tenant
			u, known = users[[2]string{"", schema.Fold(e.User)}]
		}
		if !ok || e.Action != actionLogin || !known || !c.caller.administers(u) ||
			d.Ended(access.Session{ID: id, User: u.ID, Issued: e.At}) != nil || len(list) == limit {
			continue
		}
		list = append(list, Session{ID: id, User: e.User, Tenant: e.Tenant, Realm: e.Realm, From: e.From, Began: e.At})
	}
	return c.ok(map[string]any{"format_version": plan.FormatVersion, "sessions": list})
}

// Statement is a row of the history of statements.
type Statement struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	Pool    string    `json:"pool"`
	User    string    `json:"user"`
	Node    string    `json:"node"`
	SQL     string    `json:"sql"` // literals replaced, cut
	Class   string    `json:"class"`
	Status  string    `json:"status"`
	Error   string    `json:"error,omitempty"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	Rows    int64     `json:"rows"`
	Bytes   int64     `json:"bytes"`
}

// searched is how many statements are looked through for those of one tenant.
const searched = 10_000

func (c *call) statements() *failure {
	_, limit, f := c.limited()
	if f != nil {
		return f
	}
	read := limit
	if !c.caller.System {
		read = searched
	}
	rows, err := c.rest.State.ListStatements(c.Context(), read)
	if err != nil {
		return broken(err)
	}
	list := []Statement{}
	for _, s := range rows {
		if len(list) == limit || !c.caller.sees(schema.Fold(s.Tenant)) {
			continue
		}
		list = append(list, Statement{
			ID: s.ID, Tenant: s.Tenant, Pool: s.Pool, User: s.User, Node: s.Node, SQL: s.SQL, Class: s.Class, Status: s.Status,
			Error: s.Error, Started: s.Started, Seconds: s.Duration.Seconds(), Rows: s.Rows, Bytes: s.Bytes,
		})
	}
	return c.ok(map[string]any{"format_version": plan.FormatVersion, "statements": list})
}

// showStatus shows what the caller may see of the status.
func (c *call) showStatus() *failure {
	s, err := c.rest.Status(c.Context())
	if err != nil {
		return broken(err)
	}
	if c.caller.System {
		return c.ok(s)
	}
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return broken(err)
	}
	visible := map[string]bool{}
	for i := range snap.Objects {
		if o := &snap.Objects[i]; c.caller.visible(o) {
			visible[o.ID] = true
		}
	}
	s.Serves = []StatusServe{}
	s.Objects = slices.DeleteFunc(s.Objects, func(o StatusObject) bool { return !visible[o.ID] })
	s.Pools = slices.DeleteFunc(s.Pools, func(p StatusPool) bool { return !visible[p.ID] })
	for _, p := range s.Pools {
		for i := range p.Nodes {
			p.Nodes[i].PID, p.Nodes[i].Host = 0, "" // of the host
		}
	}
	return c.ok(s)
}

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
)

// Events of a plan that is carried out. Each but the last two may be missing.
const (
	EventCommitted = "committed"
	EventHeld      = "held"    // StackHeld
	EventPending   = "pending" // StackPending, whenever it has changed
	EventDone      = "done"
	EventFailed    = "failed" // StackFailed
)

// StackApply asks for a plan to be carried out.
type StackApply struct {
	Sealed []byte `json:"sealed"`
	Adopt  bool   `json:"adopt,omitempty"`
	// Lineage is that of a stack which had none when the plan was made.
	Lineage     string  `json:"lineage,omitempty"`
	LockTimeout float64 `json:"lock_timeout"` // seconds
	Parallelism int     `json:"parallelism"`
	// From is what the plan was made from, if that is known.
	From *StackPlan `json:"from,omitempty"`
}

// StackHeld says who acts in the place of who carries the plan out.
type StackHeld struct {
	Message string    `json:"message"`
	Name    string    `json:"name,omitempty"` // of a lease
	Holder  string    `json:"holder,omitempty"`
	Since   time.Time `json:"since"`
}

// StackFailed says why a plan that may have been committed was not carried out to its end.
type StackFailed struct {
	Message string `json:"message"`
	// Pending is what is left, with the Cause, where that is why.
	Unconverged bool              `json:"unconverged,omitempty"`
	Interrupted bool              `json:"interrupted,omitempty"` // the server ends
	Pending     []plan.LiveChange `json:"pending,omitempty"`
	Cause       string            `json:"cause,omitempty"`
	// Repeated are the changes that come again.
	Repeated []string `json:"repeated,omitempty"`
}

// mostParallel bounds the steps that a client may ask for at the same time.
const mostParallel = 100

// applyStack carries out a plan that the client was shown. Once it is committed the answer has begun, and what comes
// of it is told by events.
func (c *call) applyStack() *failure {
	var in StackApply
	if f := c.read(&in); f != nil {
		return f
	}
	p, carrying, f := c.carrying(&in)
	if f != nil {
		c.refusedChange(f.Code)
		return f
	}
	told := &teller{call: c}
	carrying.Committed = func() {
		told.tell(EventCommitted, struct{}{})
		c.noteCommit(p)
	}
	carrying.Pending = func(pending []plan.Finding) { told.tell(EventPending, StackPending{changesOf(pending)}) }
	carrying.Held = func(err error) { told.tell(EventHeld, heldBy(err)) }
	stop := told.beat()
	err := c.rest.Engine.CarryOut(c.Context(), p, carrying)
	stop()
	switch {
	case err == nil:
		told.tell(EventDone, struct{}{})
	case !told.began:
		f := failedStack(err)
		c.refusedChange(f.Code)
		return f
	default:
		told.tell(EventFailed, c.failure(err))
	}
	return nil
}

// carrying is how a request wants its plan to be carried out.
func (c *call) carrying(in *StackApply) (*engine.Plan, engine.Carrying, *failure) {
	carrying := engine.Carrying{Who: c.who(), AdoptStack: in.Adopt, Parallelism: in.Parallelism}
	p, f := c.unseal(in.Sealed, in.Adopt)
	if f != nil {
		return nil, carrying, f
	}
	if p.Lineage == "" {
		p.Lineage = in.Lineage
	}
	if in.Parallelism < 1 || in.Parallelism > mostParallel {
		return nil, carrying, badRequest("want a whole number from 1 to %d", mostParallel).at("parallelism")
	}
	if carrying.LockTimeout, f = lockTimeout(in.LockTimeout); f != nil {
		return nil, carrying, f
	}
	if p.Commits() && p.Lineage == "" {
		return nil, carrying, badRequest("the stack has no lineage").at("lineage")
	}
	carrying.Stopping = c.rest.Ending
	if in.From == nil {
		return p, carrying, nil
	}
	desired, problems, f := in.From.desired(c.caller)
	if f != nil {
		return nil, carrying, f
	}
	if len(problems) > 0 {
		return nil, carrying, forbidden("from")
	}
	o, f := in.From.options(c.caller)
	carrying.From = &engine.Origin{Desired: desired, Options: o}
	return p, carrying, f
}

// noteCommit notes the commit of a plan, and waits until it counts here.
func (c *call) noteCommit(p *engine.Plan) {
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return // the client is gone, or the store: the history has the commit
	}
	c.rest.learnedRevision(c.Context(), snap.Revision)
	c.noteChange(fmt.Sprintf("plan %s", p.ID), snap.Revision, p.Plan)
}

func heldBy(err error) StackHeld {
	out := StackHeld{Message: err.Error()}
	if by := (*store.HeldError)(nil); errors.As(err, &by) {
		out.Name, out.Holder, out.Since = by.Name, by.Holder, by.Since
	}
	return out
}

// failure says what the client may know of why a plan was not carried out to its end.
func (c *call) failure(err error) StackFailed {
	var left *engine.NotConvergedError
	var again *engine.RepeatedError
	switch {
	case errors.As(err, &left):
		out := StackFailed{
			Message: left.Error(), Unconverged: true, Pending: changesOf(left.Pending), Interrupted: errors.Is(err, engine.ErrInterrupted),
		}
		if left.Cause != nil {
			out.Cause = left.Cause.Error()
		}
		return out
	case errors.As(err, &again):
		return StackFailed{Message: err.Error(), Repeated: again.Changes}
	}
	c.rest.Log.ErrorContext(c.Context(), "plan was not carried out to its end", "id", c.id, "error", err)
	return StackFailed{Message: "the store does not answer: run qod apply again, it goes on from here"}
}

// teller writes the events of a call. Several goroutines may call it.
type teller struct {
	call  *call
	mu    sync.Mutex
	began bool
}

// tell writes an event. The client is gone when that fails, and the call's context ends.
func (t *teller) tell(name string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		return // these bodies always encode
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.began {
		t.began = true
		t.call.Header().Set("Content-Type", "text/event-stream")
		t.call.WriteHeader(http.StatusOK)
	}
	_ = t.call.push(name, data)
}

// beat gives signs of life between events, until it is stopped.
func (t *teller) beat() (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchBeat)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				t.mu.Lock()
				if t.began {
					_ = t.call.push("", nil)
				}
				t.mu.Unlock()
			}
		}
	}()
	return func() { close(ended); <-done }
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/runtime/client"
)

// CarryOut implements planner: the server commits the plan that was shown, and tells what becomes of it.
func (r *remote) CarryOut(ctx context.Context, p *engine.Plan, c engine.Carrying) error {
	body := api.StackApply{
		Sealed: r.sealed[p.ID], Adopt: c.AdoptStack, Lineage: p.Lineage, LockTimeout: c.LockTimeout.Seconds(), Parallelism: c.Parallelism,
	}
	if c.From != nil {
		body.From = r.from[p.ID]
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &followed{Carrying: c, begun: make(chan struct{})}
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() { // stops to listen, once there is something that the server goes on with by itself
		defer close(watched)
		select {
		case <-f.begun:
		case <-ended:
			return
		}
		select {
		case <-c.Stopping:
			cancel()
		case <-ended:
		}
	}()
	_, err := r.client.Events(ctx, "stack/apply", body, f.event)
	close(ended)
	<-watched
	switch {
	case f.done:
		return nil
	case f.failed != nil:
		return f.failed.err()
	case f.stopped():
		return &engine.NotConvergedError{Pending: f.pending, Cause: engine.ErrInterrupted}
	case errors.Is(err, client.ErrCutOff):
		return r.cutOff(err, f)
	case client.Is(err, "lineage"):
		return &store.StackError{Name: p.Stack, Have: "another", Want: p.Lineage}
	}
	return r.explained(err)
}

// cutOff says what is known of a plan whose server went away.
func (r *remote) cutOff(err error, f *followed) error {
	if !f.committed {
		return fmt.Errorf("server %s: %w before it said what became of the plan, which is committed as a whole or not at all: "+
			"qod history shows whether it is, and qod plan what is left to do", r.client.Server(), err)
	}
	return fmt.Errorf("server %s: %w after the plan was committed: the server goes on with what is left. "+
		"Run the same again to see it end", r.client.Server(), err)
}

// followed is a plan that a server carries out.
type followed struct {
	engine.Carrying
	begun     chan struct{} // closed with the first event
	committed bool
	done      bool
	pending   []plan.Finding
	failed    *failedThere
}

// failedThere is why the server did not come to the end of a plan.
type failedThere struct{ api.StackFailed }

// event takes one, and says whether it is the last that counts.
func (f *followed) event(name string, data []byte) (last bool, err error) {
	if !closed(f.begun) {
		close(f.begun)
	}
	switch name {
	case api.EventCommitted:
		f.committed = true
		f.Committed()
	case api.EventPending:
		var in api.StackPending
		if err := json.Unmarshal(data, &in); err != nil {
			return true, fmt.Errorf("read event: %w", err)
		}
		f.pending = findingsOf(in)
		f.Pending(f.pending)
	case api.EventHeld:
		var in api.StackHeld
		if err := json.Unmarshal(data, &in); err != nil {
			return true, fmt.Errorf("read event: %w", err)
		}
		f.Held(heldThere(in))
	case api.EventDone:
		f.done = true
		return true, nil
	case api.EventFailed:
		f.failed = &failedThere{}
		if err := json.Unmarshal(data, f.failed); err != nil {
			return true, fmt.Errorf("read event: %w", err)
		}
		return true, nil
	}
	return f.stopped(), nil
}

// stopped reports whether nobody wants to hear more of what the server has begun.
func (f *followed) stopped() bool { return closed(f.Stopping) && closed(f.begun) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func heldThere(in api.StackHeld) error {
	if in.Holder == "" {
		return errors.New(in.Message)
	}
	return &store.HeldError{Name: in.Name, Holder: in.Holder, Since: in.Since}
}

func (f *failedThere) err() error {
	var cause error
	switch {
	case f.Interrupted:
		cause = engine.ErrInterrupted
	case f.Cause != "":
		cause = errors.New(f.Cause)
	}
	switch {
	case f.Unconverged:
		return &engine.NotConvergedError{Pending: findingsOf(api.StackPending{Pending: f.Pending}), Cause: cause}
	case len(f.Repeated) > 0:
		return &engine.RepeatedError{Changes: f.Repeated}
	}
	return errors.New(f.Message)
}

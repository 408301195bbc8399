package engine

import (
	"context"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Carrying says for whom a plan is carried out and how, and who is told.
type Carrying struct {
	Who        Who
	AdoptStack bool
	// Convergence is that of the plan's stack.
	Convergence
	// Committed is called after the commit of a plan that has something to commit.
	Committed func()
	// Parallelism is as Config has it, for this plan.
	Parallelism int
	// From is what the plan was made from; nil where that is not known.
	From *Origin
}

// Origin is what a plan is made from.
type Origin struct {
	Desired schema.Desired
	Options PlanOptions
}

// CarryOut commits a plan, brings what lies outside of the store after it, and sees whether it was good for anything. The
// commit is made whatever becomes of ctx meanwhile. Its errors are those of Commit, before anything was
// changed, and then a NotConvergedError or a RepeatedError.
func (e *Engine) CarryOut(ctx context.Context, p *Plan, c Carrying) error {
	if err := e.Commit(context.WithoutCancel(ctx), p, c.Who, c.AdoptStack); err != nil {
		return err
	}
	if p.Commits() {
		c.Committed()
	}
	if p.Mode != plan.RefreshOnly && len(p.Changes)+len(p.Live) > 0 {
		doing := *e
		doing.Parallelism = c.Parallelism
		c.Stack = p.Stack
		if err := doing.Converge(ctx, c.Convergence); err != nil {
			return err
		}
	}
	if c.From == nil {
		return nil
	}
	return e.Repeats(ctx, p, store.Stack{Name: p.Stack, Lineage: p.Lineage}, c.From.Desired, c.From.Options)
}

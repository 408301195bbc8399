package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// RepeatedError says that changes which were just applied would be made again: something undoes them, or
// does not keep what is written.
type RepeatedError struct {
	// Changes are those that come again, as addresses with what differs: "pool.acme/bi: memory".
	Changes []string
}

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("not converging: %s; the plan that was just applied reappears", strings.Join(e.Changes, "; "))
}

// Repeats plans again after an apply, with the same configuration, and fails with a RepeatedError when
// changes of the applied plan reappear. It does not look at the live world.
func (e *Engine) Repeats(ctx context.Context, applied *Plan, stack store.Stack, c schema.Desired, o PlanOptions) error {
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	o.Selection.Replace = nil // that was done once
	again := repeated(applied.Plan, e.compare(o.visible(snap), stack, c, o).Plan)
	if len(again) == 0 {
		return nil
	}
	return &RepeatedError{Changes: again}
}

// repeated lists what is the same in a plan and in the one after it.
func repeated(before, after *plan.Plan) []string {
	var out []string
	for _, c := range after.Changes {
		if !slices.ContainsFunc(before.Changes, func(b plan.Change) bool { return sameChange(b, c) }) {
			continue
		}
		words := string(c.Action)
		if len(c.Attrs) > 0 {
			words = strings.Join(names(c.Attrs), ", ")
		}
		out = append(out, fmt.Sprintf("%s: %s", c.Addr, words))
	}
	for _, o := range after.Outputs {
		if slices.ContainsFunc(before.Outputs, func(b plan.OutputChange) bool { return b.Name == o.Name && same(b.After, o.After) }) {
			out = append(out, "output."+o.Name)
		}
	}
	return out
}

func sameChange(a, b plan.Change) bool {
	return a.Addr == b.Addr && a.Action == b.Action && slices.EqualFunc(a.Attrs, b.Attrs, func(a, b plan.Attr) bool {
		return a.Name == b.Name && same(a.After, b.After)
	})
}

func same(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == b
	}
	return a.RawEquals(b)
}

func names(attrs []plan.Attr) []string {
	out := make([]string, len(attrs))
	for i, a := range attrs {
		out[i] = a.Name
	}
	return out
}

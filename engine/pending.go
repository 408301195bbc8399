package engine

import (
	"context"
	"fmt"

	"github.com/qod-io/qod/engine/plan"
)

// Pending says what of a stack is unfinished or missing outside the store. It looks and does not act.
func (e *Engine) Pending(ctx context.Context, stack string) ([]plan.Finding, error) {
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read store: %w", err)
	}
	return e.findings(ctx, snap, stack)
}

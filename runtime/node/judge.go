//go:build !noguard

package node

import (
	"context"

	duck "github.com/duckdb/duckdb-go-bindings"

	"github.com/qod-io/qod/runtime/guard"
)

// judge asks the guard whether a statement may run.
func (s *server) judge(ctx context.Context, sql string, scope guard.Scope) (guard.Statement, error) {
	return s.guard.Check(ctx, sql, scope)
}

// agreed says whether the engine takes a prepared statement for what the guard took it for.
func agreed(st guard.Statement, prepared duck.StatementType) bool { return guard.Matches(st, prepared) }

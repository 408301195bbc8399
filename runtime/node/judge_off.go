//go:build noguard

package node

import (
	"context"

	duck "github.com/duckdb/duckdb-go-bindings"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// judge lets every statement run as it was sent, whoever sent it. Only a test is built so, to show what
// the layers behind the guard hold back by themselves.
func (s *server) judge(_ context.Context, sql string, _ guard.Scope) (guard.Statement, error) {
	st := guard.Statement{SQL: sql, Class: sqltext.Guess(sql)}
	switch st.Class {
	case wire.Read, wire.Metadata:
		st.Class, st.Kind, st.ReadOnly = wire.Read, guard.Select, true
	case wire.Transaction:
		st.Kind = transactionKind(sql)
	default: // it runs once, on the session's own connection, where nothing is asked about afterwards
		st.Class, st.Kind, st.Leaves = wire.Write, guard.Insert, true
	}
	return st, nil
}

func transactionKind(sql string) guard.Kind {
	_, tokens, err := sqltext.First(sql)
	switch {
	case err != nil || len(tokens) == 0:
	case tokens[0].Is("commit"), tokens[0].Is("end"):
		return guard.Commit
	case tokens[0].Is("rollback"), tokens[0].Is("abort"):
		return guard.Rollback
	}
	return guard.Begin
}

// agreed leaves it to the engine what a statement is.
func agreed(guard.Statement, duck.StatementType) bool { return true }

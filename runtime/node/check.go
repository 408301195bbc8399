package node

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// statement is a statement that the guard let through.
type statement struct{ guard.Statement }

// reads says whether the statement can be run again without harm, and so is run when it is fetched.
func (st statement) reads() bool { return st.ReadOnly }

// leaves says whether the statement leaves something on its connection.
func (st statement) leaves() bool { return st.Leaves || st.Kind == guard.Begin }

func (st statement) endsTransaction() bool {
	return st.Kind == guard.Commit || st.Kind == guard.Rollback
}

func (st statement) commits() bool { return st.Kind == guard.Commit }

// answersNothing says whether the node answers the statement without the engine: transaction control,
// and what asks for what is so anyway.
func (st statement) answersNothing() bool { return st.Class == wire.Transaction || st.NoOp }

// internal is a statement of the node's own.
func internal(sql string, class wire.Class, kind guard.Kind, leaves bool) statement {
	return statement{guard.Statement{SQL: sql, Class: class, Kind: kind, Leaves: leaves}}
}

// checker asks the guard on behalf of the node.
type checker struct {
	guard *guard.Guard
	lake  wire.Lake
}

func newChecker(lake wire.Lake) (*checker, error) {
	g, err := guard.New(guard.Config{})
	if err != nil {
		return nil, fmt.Errorf("open guard: %w", err)
	}
	return &checker{guard: g, lake: lake}, nil
}

func (k *checker) close() { k.guard.Close() }

// check asks the guard about a statement on behalf of the caller, with the permissions of this moment.
func (s *server) check(ctx context.Context, c *call, sql string, prepared bool) (statement, error) {
	permissions, err := c.permissions()
	if err != nil {
		return statement{}, err
	}
	rights, err := s.checker.guard.Rights(ctx, permissions, s.cfg.Lake.Name)
	if err != nil {
		return statement{}, fmt.Errorf("read permissions: %w", err)
	}
	st, err := s.checker.guard.Check(ctx, sql, guard.Scope{
		Catalog: s.cfg.Lake.Name, Rights: rights, Prepared: prepared,
	})
	if err != nil {
		return statement{}, guardFault(err)
	}
	return statement{st}, nil
}

func guardFault(err error) error {
	var refusal *guard.Refusal
	var syntax *guard.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return faultf(codes.InvalidArgument, "", "%s", syntax.Message)
	case errors.As(err, &refusal):
		code := codes.PermissionDenied
		switch refusal.Code {
		case guard.Multiple, guard.TooLarge, guard.Unknown:
			code = codes.InvalidArgument
		}
		return faultf(code, wire.Denied, "%s", refusal.Message)
	}
	return err
}

// reach says whether the caller may see anything of the lake.
func (s *server) reach(ctx context.Context, p wire.Permissions) bool {
	rights, err := s.checker.guard.Rights(ctx, p, s.cfg.Lake.Name)
	return err == nil && !rights.Empty()
}

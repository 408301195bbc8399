package node

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// statement is a statement that the guard let through.
type statement struct {
	guard.Statement
	text string // as the client sent it
}

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
	return statement{Statement: guard.Statement{SQL: sql, Class: class, Kind: kind, Leaves: leaves}}
}

// check asks the guard about a statement on behalf of the caller, with the rights of this moment, where
// names mean what m says.
func (s *server) check(ctx context.Context, c *call, sql string, prepared bool, m *names) (statement, error) {
	rights, err := c.rights(ctx)
	if err != nil {
		return statement{}, err
	}
	st, err := s.judge(ctx, sql, guard.Scope{
		Catalog: s.cfg.Lake.Name, Path: m.path, Temporary: m.temporary, Rights: rights, Prepared: prepared,
	})
	if err != nil {
		return statement{}, guardFault(err)
	}
	if err := readablePath(st); err != nil {
		return statement{}, err
	}
	return statement{Statement: st, text: sql}, nil
}

// readablePath refuses to put a session into a schema whose name would make the engine's text of the
// search path ambiguous.
func readablePath(st guard.Statement) error {
	if st.Class != wire.Setting {
		return nil
	}
	for _, t := range st.Tables {
		if strings.ContainsAny(t.Catalog+t.Schema+t.Name, `",`) {
			return faultf(codes.InvalidArgument, "", "a schema with a comma or a quote in its name cannot be the default: "+
				"write schema.table instead")
		}
	}
	return nil
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
		f := faultf(code, wire.Denied, "%s", refusal.Message)
		f.denial = &wire.Denial{Code: string(refusal.Code), Object: refusal.Object, Privilege: refusal.Privilege}
		return f
	}
	return err
}

package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/qod-io/qod/runtime/wire"
)

// Expectation says whether a user should be able to run a statement.
type Expectation struct {
	User      string  `hcl:"user,label"`
	Tenant    *string `hcl:"tenant"`
	Database  *string `hcl:"database"`
	Statement string  `hcl:"statement"`
	Allow     bool    `hcl:"allow"`
	// Reason is, of a statement that is refused, a part of what the user is told.
	Reason *string   `hcl:"reason"`
	Range  hcl.Range `hcl:",def_range"`
}

// Expectations reads a file of blocks expect "USER" {...}.
func Expectations(src []byte, name string) ([]Expectation, error) {
	file, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("read expectations: %w", diags)
	}
	var read struct {
		Expect []Expectation `hcl:"expect,block"`
	}
	if diags := gohcl.DecodeBody(file.Body, nil, &read); diags.HasErrors() {
		return nil, fmt.Errorf("read expectations: %w", diags)
	}
	if len(read.Expect) == 0 {
		return nil, fmt.Errorf("read expectations: %s has no block expect \"USER\"", name)
	}
	for _, e := range read.Expect {
		if e.Reason != nil && e.Allow {
			return nil, fmt.Errorf("read expectations: %s: a statement that is allowed has no reason", e.place())
		}
	}
	return read.Expect, nil
}

func (e Expectation) place() string {
	return fmt.Sprintf("%s:%d", e.Range.Filename, e.Range.Start.Line)
}

// Judge says why a statement is refused under a permission set, or "" when it is not. In is the schema that
// names without one are looked for in. An error says that the text cannot be judged, such as one that is no
// statement.
type Judge func(ctx context.Context, p wire.Permissions, database, in, statement string) (refusal string, err error)

// notReached is the refusal of a user that may not connect to any pool of the database.
const notReached = "no pool of the database is granted to the user, or the user or its tenant is disabled"

// Check says what is not as expected, with its place, or returns "".
func (e Expectation) Check(ctx context.Context, d *Directory, judge Judge) string {
	q := Question{User: e.User}
	if e.Tenant != nil {
		q.Tenant = *e.Tenant
	}
	if e.Database != nil {
		q.Database = *e.Database
	}
	permissions, database, in, reached, err := d.PermissionsOf(q)
	if err != nil {
		return fmt.Sprintf("%s: %s", e.place(), err)
	}
	refusal, err := judge(ctx, permissions, database, in, e.Statement)
	if err == nil && !reached {
		refusal = notReached
	}
	switch {
	case err != nil:
		return fmt.Sprintf("%s: the statement cannot be judged: %s", e.place(), err)
	case e.Allow && refusal != "":
		return fmt.Sprintf("%s: %s should be allowed, and is refused: %s", e.place(), e.User, refusal)
	case !e.Allow && refusal == "":
		return fmt.Sprintf("%s: %s should be refused, and is allowed", e.place(), e.User)
	case e.Reason != nil && !strings.Contains(refusal, *e.Reason):
		return fmt.Sprintf("%s: %s should be refused with %q, and is refused with: %s", e.place(), e.User, *e.Reason, refusal)
	}
	return ""
}

package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// veilCase is an error of the engine and what is told of it.
type veilCase struct {
	message       string
	names, values string // told where names and where values are not to be; "" for the message itself
	code          codes.Code
	reason        wire.Reason
}

const (
	withheld = " Error: details are withheld, because the statement touches a table with policies"
	unusable = "a policy on a table of the statement cannot be applied; ask an administrator"
)

func (test veilCase) check(t *testing.T) {
	const sql = "SELECT card, x FROM shop.orders JOIN nope USING (id)"
	for depth, want := range map[veilDepth]string{overNothing: "", overNames: test.names, overValues: test.values} {
		err := veil{depth: depth, text: sql}.over(messageFault(t.Context(), test.message))
		f := asFault(err)
		if want == "" {
			want = test.message
		}
		if f.message != want {
			t.Errorf("depth %d: told %q, want %q", depth, f.message, want)
		}
		if depth != overNothing && want != unusable && (f.code != test.code || f.reason != test.reason) {
			t.Errorf("depth %d: code %s, reason %q", depth, f.code, f.reason)
		}
		if again := (veil{depth: overValues}).over(err); depth != overNothing && again != err {
			t.Errorf("depth %d: a second veil makes it %v", depth, again)
		}
	}
}

func TestVeilOverValues(t *testing.T) {
	for name, test := range map[string]veilCase{
		"conversion":   {"Conversion Error: Could not convert string 'CANARY' to INT32\n\nLINE 1: SELECT", "", "Conversion" + withheld, codes.InvalidArgument, ""},
		"user's own":   {"Invalid Input Error: CANARY Error: x", "", "Invalid Input" + withheld, codes.InvalidArgument, ""},
		"unknown kind": {"CANARY Error: x", "", withheld[1:], codes.Unknown, ""},
		"no kind":      {"CANARY: connection lost", "", withheld[1:], codes.Unavailable, wire.Transient},
		"fatal":        {"FATAL Error: CANARY", "", "FATAL" + withheld, codes.Internal, wire.Fatal},
		"constraint":   {"Constraint Error: duplicate key \"CANARY\"", "", "Constraint" + withheld, codes.FailedPrecondition, ""},
		"memory":       {"Out of Memory Error: CANARY", "", "Out of Memory" + withheld, codes.ResourceExhausted, ""},
		"commit":       {"TransactionContext Error: Failed to commit: CANARY", "", "TransactionContext" + withheld, codes.Aborted, ""},
	} {
		t.Run(name, test.check)
	}
}

func TestVeilOverNames(t *testing.T) {
	const nope, shop = `table "nope" does not exist or you are not authorized`, `schema "shop" does not exist or you are not authorized`
	const something = "what the statement names does not exist or you are not authorized"
	for name, test := range map[string]veilCase{
		"no table": {"Catalog Error: Table with name nope does not exist!\nDid you mean \"CANARY\"?\n\nLINE 1: SELECT",
			nope, nope, codes.PermissionDenied, wire.Denied},
		"no schema of a table": {`Catalog Error: Table with name "shop.nope" does not exist because schema "shop" does not exist.`,
			nope, nope, codes.PermissionDenied, wire.Denied},
		"no schema to use":       {`Catalog Error: SET schema: No catalog + schema named "shop" found.`, shop, shop, codes.PermissionDenied, wire.Denied},
		"no schema to create in": {`Binder Error: Schema "shop" not found in DuckLakeCatalog "lake"`, shop, shop, codes.PermissionDenied, wire.Denied},
		"no table of the policy": {"Catalog Error: Table with name CANARY does not exist!",
			`table "CANARY" does not exist or you are not authorized`, unusable, codes.PermissionDenied, wire.Denied},
		"another of the catalog": {"Catalog Error: CANARY", something, something, codes.PermissionDenied, wire.Denied},
		"exists": {"Catalog Error: Table with name \"x\" already exists!\nCANARY",
			`Catalog Error: Table with name "x" already exists!`, "Catalog" + withheld, codes.AlreadyExists, ""},
		"schema in use": {"Catalog Error: Cannot drop schema \"x\" because there are entries that depend on it\ntable \"CANARY\" depends",
			`Catalog Error: Cannot drop schema "x" because there are entries that depend on it`, "Catalog" + withheld, codes.NotFound, ""},
		"no column": {"Binder Error: Referenced column \"x\" not found in FROM clause!\nCandidate bindings: \"CANARY\"\n\nLINE 1: SELECT",
			`Binder Error: Referenced column "x" not found in FROM clause!`, "Binder" + withheld, codes.InvalidArgument, ""},
		"no column of the policy": {"Binder Error: Referenced column \"CANARY\" not found in FROM clause!\nCandidate bindings: \"x\"",
			`Binder Error: Referenced column "CANARY" not found in FROM clause!`, unusable, codes.InvalidArgument, ""},
		"no column of the policy in a table": {"Binder Error: Table \"orders_1\" does not have a column named \"CANARY\"\n\nCandidate bindings: : \"x\"",
			`Binder Error: Table "orders_1" does not have a column named "CANARY"`, unusable, codes.InvalidArgument, ""},
		"no column to leave out": {`Binder Error: Column "CANARY" in EXCLUDE list not found in FROM clause`, "", unusable, codes.InvalidArgument, ""},
		"suggestion in the line": {`Binder Error: something Did you mean "CANARY"?`, "Binder Error: something", "Binder" + withheld, codes.InvalidArgument, ""},
		"dependency":             {"Dependency Error: in use\ntable CANARY", "Dependency Error: in use", "Dependency" + withheld, codes.FailedPrecondition, ""},
	} {
		t.Run(name, test.check)
	}
}

func TestVeilLeavesOtherErrors(t *testing.T) {
	for _, err := range []error{
		nil, errStatementTimeout, context.Canceled, cancelled{"enough"}, errors.New("x"),
		faultf(codes.Aborted, wire.TransactionLost, "pinned node disappeared"),
	} {
		if got := (veil{depth: overValues}).over(err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

// raising are expressions over the text column card that fail on some of its values. The engine puts the
// value into many of the messages.
func raising() []string {
	return []string{
		"CAST(card AS INT)", "card::DATE", "card::TIMESTAMP", "card::TIMESTAMPTZ", "card::TIME", "card::INTERVAL", "card::UUID",
		"card::BOOLEAN", "card::DOUBLE", "card::DECIMAL(4,1)", "card::HUGEINT", "card::BIT", "card::BLOB", "card::INET", "card::JSON",
		"card::INT[]", "card::STRUCT(a INT)", "card::MAP(VARCHAR, INT)", "card::ENUM('a', 'b')", "card::UNION(a INT)", "card::INT[2]",
		"error(card)", "error('x' || card)", "1 // (length(card) - length(card))", "range(length(card))::VARCHAR::INT",
		"regexp_matches('x', card)", "regexp_replace('x', card, 'y')", "regexp_extract('x', card, 9)", "'x' SIMILAR TO card",
		"strptime(card, '%Y')", "strftime(DATE '2026-01-01', card)", "strptime('2026', card)", "make_date(length(card), 77, 99)",
		"date_part(card, DATE '2026-01-01')", "date_trunc(card, DATE '2026-01-01')", "date_diff(card, DATE '2026-01-01', DATE '2026-01-02')",
		"json_extract(card, '$.a')", "json_extract('{}', card)", "from_json(card, '\"INTEGER\"')", "json_transform_strict(card, '{\"a\": \"INT\"}')",
		"unhex(card)", "from_base64(card)", "chr(-length(card))", "array_extract(MAP {card: 1}, 5)::INT[]",
		"list_transform([card], x -> x::INT)", "list_reduce([card, card], (x, y) -> error(x))", "struct_pack(a := card)::STRUCT(b INT)",
		"factorial(length(card) * 10)", "sqrt(-length(card))", "ln(-length(card))", "acos(length(card))", "(2::DOUBLE ^ 4000)::FLOAT::INT",
		"(length(card) * 9000000000000000000::BIGINT)", "(length(card) + 250)::UTINYINT", "format(card, 1)", "printf(card, 1)", "format('{:d}', card)",
		"substring(card, 1, 3)::INT", "list_value(card)[1]::INT", "bar(1, 0, length(card), -1)", "to_base(length(card), 99)", "hash(card)::TINYINT",
		"string_split(card, 'x')::INT[]", "array_cross_product([1,2,3]::INT[3], card::INT[3])", "card COLLATE nosuch", "md5(card)::INT",
		"to_timestamp(1e300 * length(card))", "getvariable(card)", "(SELECT CAST(card AS INT))", "CASE WHEN card LIKE 'C%' THEN error(card) END",
		"TRY_CAST(card AS INT) + error(card)", "max(card::INT) OVER ()", "nth_value(card::INT, 1) OVER ()", "sum(error(card)) OVER ()",
	}
}

// TestProtectedErrorsHoldNoValues runs everything that raises on values that must not be told, as a
// statement that touches a protected table.
func TestProtectedErrorsHoldNoValues(t *testing.T) {
	c := memoryConn(t)
	if err := c.runAll(t.Context(), "SET memory_limit = '512MB'", "CREATE TABLE t AS SELECT range AS id, 'CANARY(' || range AS card FROM range(5000)"); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, e := range raising() {
		for _, sql := range []string{
			"SELECT " + e + " FROM t", "SELECT id FROM t WHERE (" + e + ") IS NULL", "SELECT id FROM t ORDER BY " + e,
			"SELECT id FROM t WHERE id < 4000 OR (" + e + ") IS NULL", // fails after rows have been sent
		} {
			err := runAs(t.Context(), c, guard.Statement{SQL: sql, Kind: guard.Select, Class: wire.Read, ReadOnly: true, Protected: true})
			if err == nil {
				continue
			}
			failed++
			if message := err.Error(); strings.Contains(message, "CANARY") || !strings.Contains(message, "withheld") && !strings.Contains(message, "authorized") {
				t.Errorf("%s: told %q", sql, message)
			}
		}
	}
	if failed < 100 {
		t.Errorf("only %d statements failed", failed)
	}
}

// runAs runs a statement to its end.
func runAs(ctx context.Context, c *conn, st guard.Statement) error {
	q, err := c.prepareChecked(ctx, statement{Statement: st, text: st.SQL})
	if err != nil {
		return err
	}
	defer q.close()
	if err := q.start(ctx, true); err != nil {
		return err
	}
	rows, err := q.drain(ctx)
	releaseAll(rows)
	return err
}

package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Role is a named set of permissions, and of policies that restrict whoever holds it.
type Role struct {
	Tenant       string         `cty:"tenant"`
	Name         string         `cty:"name"`
	Description  *string        `cty:"description"`
	Permission   []Permission   `cty:"permission"`
	RowPolicy    []RowPolicy    `cty:"row_policy"`
	ColumnPolicy []ColumnPolicy `cty:"column_policy"`
}

// Permission allows privileges on the tables it names; "*" names all.
type Permission struct {
	Catalog    string   `cty:"catalog"`
	Schema     string   `cty:"schema"`
	Table      string   `cty:"table"`
	Privileges []string `cty:"privileges"`
}

// RowPolicy shows only the rows of the tables it names for which the predicate holds.
type RowPolicy struct {
	Catalog   string `cty:"catalog"`
	Schema    string `cty:"schema"`
	Table     string `cty:"table"`
	Predicate string `cty:"predicate"`
}

// ColumnPolicy takes a column away or puts an expression in its place.
type ColumnPolicy struct {
	Catalog    string  `cty:"catalog"`
	Schema     string  `cty:"schema"`
	Table      string  `cty:"table"`
	Column     string  `cty:"column"`
	Action     string  `cty:"action"`
	Expression *string `cty:"expression"`
}

// Any stands for every catalog, schema or table in permissions and policies.
const Any = "*"

// AllPrivileges is the privilege that is every other one.
const AllPrivileges = "all"

// What a column policy does.
const (
	DenyColumn = "deny"
	MaskColumn = "mask"
)

var privileges = []string{AllPrivileges, "select", "insert", "update", "delete", "create", "alter", "drop"}

const (
	maxIdentifier = 255  // bytes of a name in SQL
	maxPolicyText = 1024 // bytes of a predicate or mask, which is parsed for each statement it changes
)

var roleKind = Define[Role](Kind{
	Name:    "role",
	Doc:     "A named set of permissions, and of policies that restrict whoever holds it.",
	Key:     []string{"tenant", "name"},
	Version: 1,
	Attrs:   []Attr{tenantAttr(), nameAttr("role", Row, checkName), descriptionAttr()},
	Blocks:  []Block{permissionBlock(), rowPolicyBlock(), columnPolicyBlock()},
})

func permissionBlock() Block {
	return Block{
		Name: "permission", Effect: Live,
		Doc: "What the role allows. What no permission of a user's roles allows is refused. Names are compared without regard to case.",
		Attrs: append(tableAttrs("table", true),
			Attr{
				Name: "privileges", Type: cty.Set(cty.String), Mode: Required, Effect: Live, OneOf: privileges, Check: checkSome,
				Doc: "What is allowed there: " + codeList(privileges[1:]) + ", or `all` of it. What a statement reads needs `select`, " +
					"also where it changes something else. TRUNCATE needs `delete`, CREATE OR REPLACE `drop` too, and renaming `all` " +
					"on both names. Only `*` as the table allows to create or drop the schema itself.",
			}),
	}
}

func rowPolicyBlock() Block {
	return Block{
		Name: "row_policy", Effect: Live,
		Doc: "Which rows the holders of the role see, and may update or delete. It restricts them whatever other roles allow. " +
			"The predicates of several policies on one table are joined by OR. Rows that are inserted are not checked.",
		Attrs: append(tableAttrs("table", false), Attr{
			Name: "predicate", Type: cty.String, Mode: Required, Effect: Live, Check: checkPolicyText,
			Doc: "A condition in SQL over the table's columns. `current_user` and `current_tenant` stand for the user's names, " +
				"`current_roles` and `current_groups` for lists of names. A statement on the table is refused where it cannot be evaluated.",
		}),
	}
}

func columnPolicyBlock() Block {
	attrs := tableAttrs("table", false)
	table := &attrs[slices.IndexFunc(attrs, func(a Attr) bool { return a.Name == "table" })]
	table.Doc, table.Check = "The table or view.", checkOneTable
	return Block{
		Name: "column_policy", Effect: Live,
		Doc: "A column that the holders of the role do not see, or see masked. It restricts them whatever other roles allow. " +
			"Of several on one column a denial counts, and two masks that differ are a denial.",
		Attrs: append(attrs,
			Attr{Name: "column", Type: cty.String, Mode: Required, Effect: Live, Check: checkColumn, Doc: "The column."},
			Attr{
				Name: "action", Type: cty.String, Mode: Required, Effect: Live, OneOf: []string{DenyColumn, MaskColumn},
				Doc: "`deny`: for them the column does not exist. `mask`: the expression's value is in place of its own.",
			},
			Attr{
				Name: "expression", Type: cty.String, Effect: Live, Check: checkPolicyText,
				Doc: "With `mask`: an expression in SQL over that column alone, or a constant.",
			}),
		Check: checkColumnPolicy,
	}
}

// tableAttrs are the arguments that name tables. A permission need not name one.
func tableAttrs(table string, optional bool) []Attr {
	attrs := []Attr{
		{
			Name: "catalog", Type: cty.String, Default: cty.StringVal(Any), Effect: Live, Check: checkIdentifier,
			Doc: "The database, by the name of its tenant_db, or `*`.",
		},
		{Name: "schema", Type: cty.String, Default: cty.StringVal(Any), Effect: Live, Check: checkIdentifier, Doc: "The schema, or `*`."},
		{Name: table, Type: cty.String, Mode: Required, Effect: Live, Check: checkIdentifier, Doc: "The table or view, or `*`."},
	}
	if optional {
		attrs[2].Mode, attrs[2].Default = Optional, cty.StringVal(Any)
	}
	return attrs
}

func checkIdentifier(v cty.Value) error {
	name := v.AsString()
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("a name in SQL is not empty")
	case len(name) > maxIdentifier:
		return fmt.Errorf("a name in SQL has at most %d bytes, and this has %d", maxIdentifier, len(name))
	case strings.ContainsRune(name, 0):
		return errors.New("a name in SQL has no NUL character")
	}
	return nil
}

// checkOneTable refuses a column policy on every table: on those without the column all statements would be refused.
func checkOneTable(v cty.Value) error {
	if v.AsString() == Any {
		return errors.New("a column policy names its table: with * it would be on tables without the column too, and those could not be used")
	}
	return checkIdentifier(v)
}

func checkColumn(v cty.Value) error {
	if v.AsString() == Any {
		return errors.New("a column policy names one column: to keep a whole table from somebody, give no permission on it")
	}
	return checkIdentifier(v)
}

func checkPolicyText(v cty.Value) error {
	text := v.AsString()
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("this is SQL, and not empty")
	case len(text) > maxPolicyText:
		return fmt.Errorf("this has at most %d bytes, and not %d", maxPolicyText, len(text))
	case strings.ContainsRune(text, 0):
		return errors.New("SQL has no NUL character")
	}
	return nil
}

func checkColumnPolicy(v cty.Value) error {
	masks, given := v.GetAttr("action").AsString() == MaskColumn, !v.GetAttr("expression").IsNull()
	switch {
	case masks && !given:
		return errors.New("action \"mask\" needs an expression, whose value is in place of the column's")
	case !masks && given:
		return errors.New("action \"deny\" takes no expression: leave it out, or write action = \"mask\"")
	}
	return nil
}

func checkSome(v cty.Value) error {
	if v.LengthInt() == 0 {
		return fmt.Errorf("name at least one of %s", orList(privileges))
	}
	return nil
}

// VirtualRole is a role that every tenant has and no store holds.
type VirtualRole struct {
	Name       string
	Privileges []string // on everything
}

// VirtualRoles lists the roles that may be held and cannot be made: no name has a colon.
func VirtualRoles() []VirtualRole {
	return []VirtualRole{
		{"qod:reader", []string{"select"}},
		{"qod:writer", []string{"select", "insert", "update", "delete"}},
		{"qod:admin", []string{AllPrivileges}},
	}
}

// Group is a set of users that hold the same roles.
type Group struct {
	Tenant      string   `cty:"tenant"`
	Name        string   `cty:"name"`
	Description *string  `cty:"description"`
	Roles       []string `cty:"roles"`
}

var groupKind = Define[Group](Kind{
	Name:    "group",
	Doc:     "A set of users that hold the same roles.",
	Key:     []string{"tenant", "name"},
	Version: 1,
	Attrs: []Attr{
		tenantAttr(),
		nameAttr("group", Row, checkName),
		descriptionAttr(),
		rolesAttr("The roles that every user of the group holds."),
	},
})

func rolesAttr(doc string) Attr {
	var names, words []string
	for _, r := range VirtualRoles() {
		names = append(names, r.Name)
		words = append(words, fmt.Sprintf("`%s` (%s)", r.Name, strings.Join(r.Privileges, ", ")))
	}
	return Attr{
		Name: "roles", Type: cty.Set(cty.String), Ref: "role", Literal: names, Effect: Live,
		Doc: doc + " Beside those of the tenant there are " + strings.Join(words, ", ") + ", on everything.",
	}
}

func codeList(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

// Privileges lists each privilege that `all` stands for.
func Privileges() []string { return slices.Clone(privileges[1:]) }

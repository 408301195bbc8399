package schema

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// Role is a named set of permissions.
type Role struct {
	Tenant      string       `cty:"tenant"`
	Name        string       `cty:"name"`
	Description *string      `cty:"description"`
	Permission  []Permission `cty:"permission"`
}

// Permission allows privileges on the tables it names; "*" names all.
type Permission struct {
	Catalog    string   `cty:"catalog"`
	Schema     string   `cty:"schema"`
	Table      string   `cty:"table"`
	Privileges []string `cty:"privileges"`
}

var privileges = []string{"all", "select", "insert", "update", "delete", "create", "alter", "drop"}

var roleKind = Define[Role](Kind{
	Name:    "role",
	Doc:     "A named set of permissions.",
	Key:     []string{"tenant", "name"},
	Version: 1,
	Attrs:   []Attr{tenantAttr(), nameAttr("role", Row, checkName), descriptionAttr()},
	Blocks: []Block{{
		Name: "permission", Effect: Live,
		Doc: "What the role allows. In this version a permission allows all on a whole database or on all of " +
			"them; a finer one is refused, since it could not be enforced.",
		Attrs: []Attr{
			{Name: "catalog", Type: cty.String, Default: cty.StringVal("*"), Effect: Live, Doc: "The database, or `*`."},
			{Name: "schema", Type: cty.String, Default: cty.StringVal("*"), Effect: Live, Doc: "The schema: `*`."},
			{Name: "table", Type: cty.String, Default: cty.StringVal("*"), Effect: Live, Doc: "The table: `*`."},
			{
				Name: "privileges", Type: cty.Set(cty.String), Mode: Required, Effect: Live, OneOf: privileges,
				Doc: "What is allowed: `all`.",
			},
		},
		Check: func(v cty.Value) error {
			fine := v.GetAttr("schema").AsString() != "*" || v.GetAttr("table").AsString() != "*"
			granted := stringSet(v.GetAttr("privileges"))
			if !fine && slices.Equal(granted, []string{"all"}) {
				return nil
			}
			return fmt.Errorf("permissions finer than all privileges on a whole database are not enforced yet, and "+
				"a grant that is not enforced would be no grant at all: write privileges = [\"all\"] without schema and table (this has %v)", granted)
		},
	}},
})

func stringSet(v cty.Value) []string {
	var out []string
	for it := v.ElementIterator(); it.Next(); {
		_, ev := it.Element()
		out = append(out, ev.AsString())
	}
	return out
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
	return Attr{Name: "roles", Type: cty.Set(cty.String), Ref: "role", Effect: Live, Doc: doc}
}

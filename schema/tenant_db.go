package schema

import "github.com/zclconf/go-cty/cty"

// TenantDB is a database of a tenant, served by the nodes of its pools.
type TenantDB struct {
	Tenant        string `cty:"tenant"`
	Name          string `cty:"name"`
	Kind          string `cty:"kind"`
	DefaultSchema string `cty:"default_schema"`
	Disabled      bool   `cty:"disabled"`
	AllowDestroy  bool   `cty:"allow_destroy"`
}

var tenantDBKind = Define[TenantDB](Kind{
	Name:    "tenant_db",
	Doc:     "A database of a tenant. A ducklake keeps its catalog in a Postgres database of its own and its data as files.",
	Key:     []string{"tenant", "name"},
	Holds:   "allow_destroy",
	Version: 1,
	Attrs: []Attr{
		tenantAttr(),
		nameAttr("database", Roll, checkDatabaseName),
		{
			Name: "kind", Type: cty.String, Mode: Required, Effect: Replace, OneOf: []string{"ducklake"},
			Doc: "What the database is: `ducklake`.",
		},
		{
			Name: "default_schema", Type: cty.String, Default: cty.StringVal("main"), Effect: Roll, Check: checkName,
			Doc: "The schema a new session starts in. It is made when it does not exist.",
		},
		disabledAttr("Statements on the database are refused and its nodes drain and stop. Data stays."),
		{
			Name: "allow_destroy", Type: cty.Bool, Default: cty.False, Effect: Row,
			Doc: "Whether the database and its data may be destroyed. It must have been applied before the destroy.",
		},
	},
})

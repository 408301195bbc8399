package schema

import "github.com/zclconf/go-cty/cty"

// Tenant is a customer or team: the border that no name, grant or node crosses.
type Tenant struct {
	Name        string      `cty:"name"`
	DisplayName *string     `cty:"display_name"`
	Disabled    bool        `cty:"disabled"`
	Auth        *TenantAuth `cty:"auth"`
}

// TenantAuth is the OpenID Connect issuer whose tokens log in users of the tenant.
type TenantAuth struct {
	Issuer        string   `cty:"issuer"`
	Audience      []string `cty:"audience"`
	UsernameClaim string   `cty:"username_claim"`
	RolesClaim    *string  `cty:"roles_claim"`
	GroupsClaim   *string  `cty:"groups_claim"`
}

var tenantKind = Define[Tenant](Kind{
	Name:    "tenant",
	Doc:     "A customer or team: the border that no name, grant or node crosses.",
	Key:     []string{"name"},
	Version: 1,
	Attrs: []Attr{
		nameAttr("tenant", Live, checkName),
		{Name: "display_name", Type: cty.String, Effect: Row, Doc: "The tenant's name for people."},
		disabledAttr("Logins and statements of the tenant are refused and its nodes drain and stop. Data stays."),
	},
	Blocks: []Block{authBlock()},
})

func nameAttr(kind string, effect Effect, check func(cty.Value) error) Attr {
	return Attr{
		Name: "name", Type: cty.String, Mode: Required, Effect: effect, Check: check,
		Doc:     "The name. A new one renames the " + kind + " in place.",
		Written: "Default: the label of the block. At the same address it is the same " + kind + ".",
	}
}

func tenantAttr() Attr {
	return Attr{
		Name: "tenant", Type: cty.String, Mode: Required, Ref: "tenant", Effect: Replace,
		Doc:     "The tenant.",
		Written: "It may be left out where a reference given as an object implies it.",
	}
}

func disabledAttr(doc string) Attr {
	return Attr{Name: "disabled", Type: cty.Bool, Default: cty.False, Effect: Live, Doc: doc}
}

func descriptionAttr() Attr {
	return Attr{Name: "description", Type: cty.String, Effect: Row, Doc: "A line for people."}
}

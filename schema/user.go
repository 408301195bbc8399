package schema

import "github.com/zclconf/go-cty/cty"

// User is a person or program that logs in.
type User struct {
	Tenant           *string  `cty:"tenant"`
	Name             string   `cty:"name"`
	System           bool     `cty:"system"`
	Password         *string  `cty:"password"`
	PasswordVersion  int      `cty:"password_version"`
	PasswordVerifier *string  `cty:"password_verifier"`
	Email            *string  `cty:"email"`
	Admin            bool     `cty:"admin"`
	Disabled         bool     `cty:"disabled"`
	Roles            []string `cty:"roles"`
	Groups           []string `cty:"groups"`
}

var userKind = Define[User](Kind{
	Name:    "user",
	Doc:     "A person or program that logs in, of one tenant or, with `system = true`, of none.",
	Key:     []string{"tenant", "name"},
	Version: 1,
	Attrs: []Attr{
		{
			Name: "tenant", Type: cty.String, Ref: "tenant", Effect: Replace,
			Doc:     "The tenant; left out for a system administrator.",
			Written: "It may also be left out where a reference given as an object implies it.",
		},
		nameAttr("user", Live, checkUserName),
		{
			Name: "system", Type: cty.Bool, Default: cty.False, Effect: Replace, Host: true,
			Doc: "Makes the user a system administrator, who belongs to no tenant and may enter every pool.",
		},
		{
			Name: "password", Type: cty.String, Effect: Live, Secret: true, Version: "password_version",
			StoredAs: "password_verifier", Check: checkPassword,
			Doc: "The password. It is read when the user is created and when password_version rises, and kept only as an argon2id verifier.",
		},
		{
			Name: "password_version", Type: cty.Number, Default: cty.Zero, Effect: Live, Check: whole(0, 1<<53),
			Doc: "Raise it to have the password read again.",
		},
		{
			Name: "password_verifier", Type: cty.String, Effect: Live, Secret: true, Check: checkVerifier,
			Doc: "An argon2id verifier in place of a password: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`.",
		},
		{Name: "email", Type: cty.String, Effect: Row, Doc: "The user's address."},
		{
			Name: "admin", Type: cty.Bool, Default: cty.False, Effect: Live,
			Doc: "Makes the user an administrator of the tenant, who may enter its pools and do all there.",
		},
		disabledAttr("Logins and statements of the user are refused."),
		rolesAttr("The roles the user holds."),
		{Name: "groups", Type: cty.Set(cty.String), Ref: "group", Effect: Live, Doc: "The groups the user is in."},
	},
	Check: func(v cty.Value) []Problem {
		var problems []Problem
		system, tenant := v.GetAttr("system").True(), !v.GetAttr("tenant").IsNull()
		switch {
		case system && tenant:
			problems = append(problems, Problem{cty.GetAttrPath("system"), "a system administrator belongs to no tenant: leave tenant out"})
		case !system && !tenant:
			problems = append(problems, Problem{cty.GetAttrPath("tenant"), "tenant is required, unless system = true"})
		}
		if !v.GetAttr("password").IsNull() && !v.GetAttr("password_verifier").IsNull() {
			problems = append(problems, Problem{cty.GetAttrPath("password_verifier"), "give password or password_verifier, not both"})
		}
		return problems
	},
})

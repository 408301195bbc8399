// Package samples has values of every attribute and block of every kind, for the tests that try them all.
package samples

// Sample says how one attribute or block of a kind is tried. Values are HCL; those of a block are what is in it.
type Sample struct {
	// A is what it is at first, B what it becomes; "" leaves it out.
	A, B string
	// With and WithB are other arguments that A and B need.
	With, WithB map[string]string
	// Only explains why there is no second value to change to.
	Only string
	// Required arguments are not tried without a value.
	Required bool
	// Apart says that it does not go together with all others.
	Apart bool
	// Kept values are not set back where somebody else changed them: only a refresh makes that good.
	Kept bool
}

// verifiers of two passwords.
const (
	verifierA = `"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zm9ydHktdHdvIGJ5dGVzIG9mIGEgaGFzaCBoZXI"`
	verifierB = `"$argon2id$v=19$m=19456,t=2,p=1$b3RoZXJzYWx0b3RoZXJzYQ$Zm9ydHktdHdvIGJ5dGVzIG9mIGEgaGFzaCBoZXI"`
)

// Minimal is what a block of each kind cannot do without, in a stack beside the one called base.
func Minimal() map[string]map[string]string {
	return map[string]map[string]string{
		"tenant":     {},
		"tenant_db":  {"tenant": `"acme"`, "kind": `"ducklake"`, "allow_destroy": `true`},
		"pool":       {"tenant": `"acme"`, "tenant_db": `"lake"`, "nodes": "dual = 0"},
		"role":       {"tenant": `"acme"`},
		"group":      {"tenant": `"acme"`},
		"user":       {"tenant": `"acme"`},
		"pool_grant": {"tenant": `"acme"`, "pool": `"bi"`, "user": `"ana"`},
	}
}

// Base is the other stack, whose objects the samples refer to by name.
const Base = `
qod {
  stack = "base"
}

tenant "t" {
  for_each = toset(["acme", "other"])
}

tenant_db "lake" {
  for_each      = tenant.t
  tenant        = each.value
  name          = "lake"
  kind          = "ducklake"
  allow_destroy = true
}

tenant_db "second" {
  tenant        = tenant.t["acme"]
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  for_each  = tenant.t
  tenant    = each.value
  name      = "bi"
  tenant_db = tenant_db.lake[each.key]
  nodes {
    dual = 0
  }
}

pool "etl" {
  tenant_db = tenant_db.lake["acme"]
  nodes {
    dual = 0
  }
}

role "r" {
  for_each = toset(["reader", "writer"])
  tenant   = tenant.t["acme"]
}

group "g" {
  for_each = toset(["staff", "guests"])
  tenant   = tenant.t["acme"]
}

user "ana" {
  for_each = tenant.t
  tenant   = each.value
  name     = "ana"
}

user "bob" {
  tenant = tenant.t["acme"]
}
`

// All has a line for each attribute and block of each kind: a kind that gains one without a line here
// fails its tests.
func All() map[string]map[string]Sample {
	description := descriptions()
	disabled := Sample{A: `false`, B: `true`}
	name := Sample{A: `"odd-1"`, B: `"odd_2"`, Required: true}
	tenant := Sample{A: `"acme"`, B: `"other"`, Required: true}
	return map[string]map[string]Sample{
		"tenant": {
			"name": name, "display_name": description, "disabled": disabled,
			"auth": {
				A: "issuer = \"https://login.acme.example\"\n    audience = [\"qod\"]",
				B: "issuer = \"https://login.acme.example/realms/data\"\n    audience = [\"https://qod.acme.example\", \"qod\"]\n" +
					"    username_claim = \"sub\"\n    roles_claim = \"realm_access.roles\"\n    groups_claim = \"groups\"",
			},
		},
		"tenant_db": {
			"tenant": tenant, "name": name,
			"kind":           {A: `"ducklake"`, Only: "a database is a ducklake", Required: true},
			"default_schema": {A: `"main"`, B: `"analytics"`},
			"disabled":       disabled,
			"allow_destroy":  {A: `true`, B: `false`},
		},
		"pool": {
			"tenant": tenant, "name": name,
			"tenant_db":               {A: `"lake"`, B: `"second"`, Required: true},
			"runtime":                 {A: `"local"`, Only: "nodes run on this host"},
			"max_concurrent_per_node": {A: `8`, B: `16`},
			"memory":                  {A: `"512MiB"`, B: `"768MiB"`, With: map[string]string{"nodes": "dual = 1"}},
			"threads":                 {A: `1`, B: `3`},
			"suspended":               disabled, "disabled": disabled,
			"statement_timeout":    {A: `"1m"`, B: `"2m"`},
			"session_idle_timeout": {A: `"10m"`, B: `"0s"`},
			"nodes":                {A: "dual = 0", B: "dual = 1"},
		},
		"role": roleSamples(),
		"group": {
			"tenant": {A: `"acme"`, B: `"other"`, Required: true}, "name": name, "description": description,
			"roles": {A: `["reader"]`, B: `["qod:writer", "reader"]`},
		},
		"user": {
			"tenant": tenant,
			"name":   {A: `"ann.o'neil@corp.com"`, B: `"Ann O Neil@corp.com"`, Required: true},
			"system": {A: `false`, B: `true`, WithB: map[string]string{"tenant": ""}},
			"password": {
				A: `"matrix-S3cret-1"`, B: `"matrix-S3cret-2"`, WithB: map[string]string{"password_version": "1"}, Kept: true,
			},
			"password_version":  {A: `1`, B: `9007199254740992`, With: map[string]string{"password": `"matrix-S3cret-1"`}},
			"password_verifier": {A: verifierA, B: verifierB, Apart: true},
			"email":             {A: `"ann@corp.com"`, B: `"o'neil@corp.com"`},
			"admin":             disabled, "disabled": disabled,
			"roles":  {A: `["qod:reader"]`, B: `["writer", "qod:writer"]`},
			"groups": {A: `["staff"]`, B: `["guests", "staff"]`},
		},
		"pool_grant": {
			"tenant": {A: `"acme"`, B: `"other"`, Required: true},
			"pool":   {A: `"bi"`, B: `"*"`, Required: true},
			"user":   {A: `"ana"`, B: `"bob"`, Required: true},
			"group":  {A: `"staff"`, B: `"guests"`, Required: true, Apart: true, With: map[string]string{"user": ""}},
			"role":   {A: `"reader"`, B: `"writer"`, Required: true, Apart: true, With: map[string]string{"user": ""}},
		},
	}
}

func descriptions() Sample {
	return Sample{A: `"first"`, B: `"second, with a \"quote\" and $${not} a template"`}
}

func roleSamples() map[string]Sample {
	return map[string]Sample{
		"tenant": {A: `"acme"`, B: `"other"`, Required: true}, "name": {A: `"odd-1"`, B: `"odd_2"`, Required: true},
		"description": descriptions(),
		"permission": {
			A: `privileges = ["all"]`,
			B: "catalog = \"lake\"\n    schema = \"main\"\n    table = \"Orders\"\n    privileges = [\"select\", \"insert\"]",
		},
		"row_policy": {
			A: "table = \"orders\"\n    predicate = \"region = 'EU'\"",
			B: "catalog = \"lake\"\n    schema = \"main\"\n    table = \"*\"\n    predicate = \"owner = current_user AND note <> '$${x}'\"",
		},
		"column_policy": {
			A: "table = \"orders\"\n    column = \"price\"\n    action = \"deny\"",
			B: "table = \"orders\"\n    column = \"price\"\n    action = \"mask\"\n    expression = \"round(price, -2)\"",
		},
	}
}

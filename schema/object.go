package schema

import "github.com/zclconf/go-cty/cty"

// Object is a desired object: a value as its author wrote it, and the block that wrote it.
type Object struct {
	Kind *Kind
	// Address is where the configuration has it: pool.bi, user.all["ana"].
	Address string
	// Value has the kind's type. What was not written is null; defaults are not in it. Secrets are
	// in clear: the value must not be printed or stored before they are taken out.
	Value cty.Value
	// Sensitive lists the attributes outside the kind's secrets that were computed from sensitive
	// variables, and must not be shown.
	Sensitive []string
	// DependsOn lists the addresses that must exist before, by reference or by depends_on.
	DependsOn []string
}

// Addr returns the address of the object by kind and key.
func (o Object) Addr() Addr { return o.Kind.Addr(o.Value) }

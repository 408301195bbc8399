package schema

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Desired is everything a configuration asks for.
type Desired struct {
	// Objects are in order of dependency: each comes after those in its DependsOn.
	Objects  []Object
	Moves    []Move
	Removals []Removal
	Imports  []Import
	Outputs  []Output // by name
	// Declared is what the files have. Absence says from it why an address is not among the objects; it may be nil:
	// then nothing is known.
	Declared Declared
	Absence  func(Address) Absence
}

// Object is a desired object: a value as its author wrote it, and the block that wrote it.
type Object struct {
	Kind *Kind
	// Address is where the configuration has it: pool.bi, user.all["ana"], module.eu.pool.bi. It is
	// what [Address.String] prints.
	Address string
	// Value has the kind's type. What was not written is null; defaults are not in it. Secrets are
	// in clear: the value must not be printed or stored before they are taken out.
	Value cty.Value
	// Sensitive lists the attributes outside the kind's secrets that were computed from sensitive
	// variables, and must not be shown.
	Sensitive []string
	// DependsOn lists the addresses that must exist before, by reference or by depends_on.
	DependsOn []string
	Lifecycle Lifecycle
}

// Addr returns the address of the object by kind and key.
func (o Object) Addr() Addr { return o.Kind.Addr(o.Value) }

// Depend orders objects by their kinds, and says which of them need which by reference.
func Depend(objects []Object) {
	rank := map[string]int{}
	for i, k := range Kinds() {
		rank[k.Name] = i
	}
	slices.SortStableFunc(objects, func(x, y Object) int { return rank[x.Kind.Name] - rank[y.Kind.Name] })
	at := map[Addr]string{}
	for _, o := range objects {
		at[o.Addr()] = o.Address
	}
	for i := range objects {
		o := &objects[i]
		for _, ref := range o.Kind.Refs(o.Value) {
			if address, ok := at[ref.To]; ok && address != o.Address && !slices.Contains(o.DependsOn, address) {
				o.DependsOn = append(o.DependsOn, address)
			}
		}
	}
}

// Lifecycle is what the lifecycle block of an object says.
type Lifecycle struct {
	// PreventDestroy refuses plans that destroy or replace the object. It is kept with the object, so
	// it outlives its block.
	PreventDestroy bool
	// IgnoreChanges lists what others may change once the object exists: an attribute, a block, or an
	// attribute of a single block. IgnoreAll stands for all of them.
	IgnoreChanges []cty.Path
	IgnoreAll     bool
	// ReplaceTriggeredBy lists what replaces the object when it changes.
	ReplaceTriggeredBy []Trigger
}

// Trigger is an object, all objects of a block, or, with Attr, one of their attributes.
type Trigger struct {
	Address Address
	Attr    string
}

// Move says that what was at one address is now at another: an object, the objects of a block, or those
// of a module.
type Move struct {
	From, To Address
	Range    hcl.Range // of the moved block
}

// Removal says what becomes of objects whose block has left the configuration: they are destroyed,
// protected ones too, or else forgotten, which leaves them as they are and without an owner.
type Removal struct {
	From    Address
	Destroy bool
	Range   hcl.Range
}

// Import takes over an object that exists and belongs to no configuration or to another stack.
type Import struct {
	To    Address // of one object
	ID    Addr
	Range hcl.Range
}

// Output is a named result of a configuration.
type Output struct {
	Name        string
	Value       cty.Value // without marks
	Sensitive   bool
	Description string
}

// Absence says why an address that was in the configuration no longer is.
type Absence string

const (
	// NoBlock: the block is gone.
	NoBlock Absence = "no_block"
	// NoKey: the block has for_each, and the key is not among its elements.
	NoKey Absence = "no_key"
	// WrongRepetition: the block gained or lost for_each.
	WrongRepetition Absence = "wrong_repetition"
	// NoModule: the module call is gone, or one of its keys.
	NoModule Absence = "no_module"
)

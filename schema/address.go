package schema

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Address is where a configuration has something: an object (pool.bi, user.all["ana"]), the objects of a
// block with for_each (user.all), or those of a module (module.eu, module.region["eu"].pool.bi). An
// [Addr] names what was made of it.
type Address struct {
	Modules []Step // from the outermost on
	// Kind and the block's Step; empty for a module as a whole.
	Kind string
	Step
}

// Step is a name, and which of its instances where it has several.
type Step struct {
	Name  string
	Key   string
	Keyed bool
}

func (s Step) String() string {
	if !s.Keyed {
		return s.Name
	}
	return fmt.Sprintf("%s[%s]", s.Name, hclwrite.TokensForValue(cty.StringVal(s.Key)).Bytes())
}

// String prints the address as users write it.
func (a Address) String() string {
	var parts []string
	for _, m := range a.Modules {
		parts = append(parts, "module."+m.String())
	}
	if a.Kind != "" {
		parts = append(parts, a.Kind+"."+a.Step.String())
	}
	return strings.Join(parts, ".")
}

// In returns the address seen from outside of the given modules.
func (a Address) In(modules []Step) Address {
	a.Modules = append(append([]Step(nil), modules...), a.Modules...)
	return a
}

// Contains reports whether b is at a or in it: in the module, or one of the block's instances.
func (a Address) Contains(b Address) bool {
	_, ok := b.Rebase(a, a)
	return ok
}

// Rebase returns the address that a has once from is called to, and false where from does not contain a.
// Whole modules are rebased on modules and whole blocks on blocks; from and to may choose an instance.
func (a Address) Rebase(from, to Address) (Address, bool) {
	if from.Kind == "" {
		return a.rebaseModule(from, to)
	}
	if a.Kind != from.Kind || len(a.Modules) != len(from.Modules) {
		return a, false
	}
	for i, m := range from.Modules {
		if m != a.Modules[i] {
			return a, false
		}
	}
	step, ok := a.Step.rebase(from.Step, to.Step)
	if !ok {
		return a, false
	}
	return Address{Modules: to.Modules, Kind: to.Kind, Step: step}, true
}

func (a Address) rebaseModule(from, to Address) (Address, bool) {
	n := len(from.Modules)
	if n == 0 || len(to.Modules) == 0 || len(a.Modules) < n {
		return a, false
	}
	for i, m := range from.Modules[:n-1] {
		if m != a.Modules[i] {
			return a, false
		}
	}
	last, ok := a.Modules[n-1].rebase(from.Modules[n-1], to.Modules[len(to.Modules)-1])
	if !ok {
		return a, false
	}
	modules := append([]Step(nil), to.Modules[:len(to.Modules)-1]...)
	a.Modules = append(append(modules, last), a.Modules[n:]...)
	return a, true
}

// rebase keeps the key where neither side chooses an instance.
func (s Step) rebase(from, to Step) (Step, bool) {
	switch {
	case s.Name != from.Name || from.Keyed && s != from:
		return s, false
	case from.Keyed || to.Keyed || !s.Keyed:
		return to, from.Keyed || !s.Keyed || !to.Keyed
	}
	return Step{Name: to.Name, Key: s.Key, Keyed: true}, true
}

// Own returns the address of an object that no block or resource wrote: it prints as the object's name.
func (a Addr) Own() Address { return Address{Kind: a.Kind, Step: Step{Name: a.Path}} }

// Names reports whether an address is the object's own name, and can be that of no block. Such an address follows
// the name.
func (a Addr) Names(address string) bool {
	return strings.Contains(a.Path, "/") && address == a.String()
}

// ParseAddress reads what String printed, unless it is that of an object which no block wrote.
func ParseAddress(s string) (Address, error) {
	t, diags := hclsyntax.ParseTraversalAbs([]byte(s), "", hcl.InitialPos)
	if diags.HasErrors() {
		return Address{}, fmt.Errorf("parse address %q: want KIND.LABEL, KIND.LABEL[\"KEY\"] or module.NAME", s)
	}
	a, rest, err := AddressOf(t)
	if err != nil {
		return Address{}, fmt.Errorf("parse address %q: %w", s, err)
	}
	if len(rest) > 0 {
		return Address{}, fmt.Errorf("parse address %q: nothing may follow %s", s, a)
	}
	return a, nil
}

// ParseNamed reads what a person calls something: where a configuration has it, or an object by its kind and key, as in
// pool.acme/bi. The latter's address is the object's own, as [Addr.Own] has it.
func ParseNamed(s string) (Address, error) {
	address, err := ParseAddress(s)
	if err == nil {
		return address, nil
	}
	name, noName := ParseAddr(s)
	if noName != nil || !strings.Contains(name.Path, "/") {
		return Address{}, err
	}
	kind, _ := Lookup(name.Kind)
	if name, err = kind.ParseKey(name.Path); err != nil {
		return Address{}, err
	}
	return name.Own(), nil
}

// AddressOf reads the address at the start of a traversal, and returns what follows it.
func AddressOf(t hcl.Traversal) (Address, hcl.Traversal, error) {
	var a Address
	for len(t) > 0 {
		root, ok := stepName(t[0])
		if !ok {
			return a, t, fmt.Errorf("want a name")
		}
		_, known := Lookup(root)
		if root != "module" && !known {
			if len(a.Modules) > 0 {
				return a, t, nil
			}
			kinds := []string{"module"}
			for _, k := range Kinds() {
				kinds = append(kinds, k.Name)
			}
			return a, t, fmt.Errorf("%q is neither a kind nor module.%s", root, DidYouMean(root, kinds))
		}
		step, rest, err := stepOf(root, t[1:])
		if err != nil {
			return a, t, err
		}
		t = rest
		if known {
			a.Kind, a.Step = root, step
			return a, t, nil
		}
		a.Modules = append(a.Modules, step)
	}
	return a, t, nil
}

func stepOf(root string, t hcl.Traversal) (Step, hcl.Traversal, error) {
	if len(t) == 0 {
		return Step{}, t, fmt.Errorf("%s is followed by a label", root)
	}
	name, ok := stepName(t[0])
	if !ok {
		return Step{}, t, fmt.Errorf("%s is followed by a label", root)
	}
	s := Step{Name: name}
	if len(t) == 1 {
		return s, nil, nil
	}
	index, ok := t[1].(hcl.TraverseIndex)
	if !ok {
		return s, t[1:], nil
	}
	if index.Key.Type() != cty.String || !index.Key.IsKnown() || index.Key.IsNull() {
		return s, t, fmt.Errorf("the key of %s.%s is a string in quotes", root, name)
	}
	s.Key, s.Keyed = index.Key.AsString(), true
	return s, t[2:], nil
}

func stepName(s hcl.Traverser) (string, bool) {
	switch s := s.(type) {
	case hcl.TraverseRoot:
		return s.Name, true
	case hcl.TraverseAttr:
		return s.Name, true
	}
	return "", false
}

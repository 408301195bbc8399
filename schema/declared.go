package schema

// Declared is what a configuration has in its files, whether or not anything comes of it.
type Declared struct {
	// Modules are the addresses of the instances of modules: module.eu, module.region["eu"].
	Modules map[string]bool
	// Blocks are the addresses of the blocks of objects, without keys: true for one with for_each.
	Blocks map[string]bool
}

// Absence returns what says why the configuration has nothing at an address; it is "" where there is something. The
// objects that there are have the addresses of there.
func (d Declared) Absence(there func(address string) bool) func(Address) Absence {
	return func(a Address) Absence {
		for i := range a.Modules {
			if !d.Modules[Address{Modules: a.Modules[:i+1]}.String()] {
				return NoModule
			}
		}
		repeated, declared := d.Blocks[Address{Modules: a.Modules, Kind: a.Kind, Step: Step{Name: a.Name}}.String()]
		switch {
		case a.Kind == "":
			return ""
		case !declared:
			return NoBlock
		case repeated != a.Keyed:
			return WrongRepetition
		case !there(a.String()):
			return NoKey
		}
		return ""
	}
}

package schema

// Kinds lists every kind, referenced ones before those that refer to them.
func Kinds() []*Kind {
	return []*Kind{tenantKind, tenantDBKind, poolKind, roleKind, groupKind, userKind, poolGrantKind}
}

// Lookup returns the kind of that name.
func Lookup(name string) (*Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return nil, false
}

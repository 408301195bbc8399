package plan

import "slices"

// conceals reports whether the values of an attribute or block must not be shown.
func (c *Change) conceals(name string) bool {
	sensitive := func(a Attr) bool { return a.Name == name && a.Sensitive }
	return c.Kind.Secret(name) || slices.Contains(c.Sensitive, name) || slices.ContainsFunc(c.Attrs, sensitive)
}

package plan

import (
	"slices"

	"github.com/qod-io/qod/schema"
)

// conceals reports whether the values of an attribute or block must not be shown.
func (c *Change) conceals(name string) bool {
	sensitive := func(a Attr) bool { return a.Name == name && a.Sensitive }
	return secret(c.Kind, name) || slices.Contains(c.Sensitive, name) || slices.ContainsFunc(c.Attrs, sensitive)
}

// secret reports whether an attribute or something in a block is secret by its kind.
func secret(k *schema.Kind, name string) bool {
	if a, ok := k.Attr(name); ok {
		return a.Secret
	}
	b, ok := k.Block(name)
	return ok && slices.ContainsFunc(b.Attrs, func(a schema.Attr) bool { return a.Secret })
}

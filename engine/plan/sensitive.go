package plan

import (
	"slices"

	"github.com/qod-io/qod/schema"
)

// markSensitive notes with each change which of its attributes must not be shown, those too that stay as
// they are.
func (b *builder) markSensitive() {
	written := map[string][]string{}
	for _, o := range b.in.Desired.Objects {
		written[o.Address] = o.Sensitive
	}
	for i := range b.plan.Changes {
		c := &b.plan.Changes[i]
		for _, address := range []string{c.Address, c.Moved} {
			c.Sensitive = append(append(c.Sensitive, written[address]...), b.in.Sensitive[address]...)
		}
		slices.Sort(c.Sensitive)
		c.Sensitive = slices.Compact(c.Sensitive)
	}
}

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

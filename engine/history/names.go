package history

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// renamed returns an object's value with the names that its references have after the rollback. The index
// has the objects of the time that the value is of.
func (b *rollback) renamed(o *store.Object, index map[schema.Addr]*store.Object) cty.Value {
	names := schema.Renames{}
	for _, ref := range o.Kind.Refs(o.Spec) {
		to := index[ref.To]
		if to == nil {
			continue
		}
		if now, known := b.names[to.ID]; known && now != to.Kind.NameOf(to.Spec) {
			names.Add(ref.Attr, ref.To.Name(), now)
		}
	}
	return names.Apply(o.Spec)
}

// outputs returns the outputs of the revision. Sensitive ones come back only where they have not changed.
func (b *rollback) outputs() []schema.Output {
	shown, open := outputsByName(b.Shown), outputsByName(b.Open)
	out := []schema.Output{}
	for _, o := range b.ThenShown {
		now, exists := shown[o.Name]
		switch {
		case !o.Sensitive:
			o.Sensitive = exists && now.Sensitive || b.Ever.outputs[b.Stack][o.Name] // what was hidden since stays so
		case exists && now.Sensitive && now.Value.RawEquals(o.Value):
			o.Value = open[o.Name].Value
		case exists:
			o = open[o.Name]
			b.warn("", nil, fmt.Sprintf("output %s is not rolled back: past secrets are not kept", o.Name), "It stays as it is now.")
		default:
			b.warn("", nil, fmt.Sprintf("output %s does not come back: past secrets are not kept", o.Name), "The next apply of the configuration gives it a value.")
			continue
		}
		out = append(out, o)
	}
	return out
}

func outputsByName(outputs []schema.Output) map[string]schema.Output {
	by := make(map[string]schema.Output, len(outputs))
	for _, o := range outputs {
		by[o.Name] = o
	}
	return by
}

package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// concealed knows which values must not be shown although their attributes are no secrets: those that the
// configuration computes from sensitive values, and those that it once did. The store keeps the names, so
// that they outlive the block.
type concealed struct {
	written map[string][]string // by address in the configuration
	kept    map[string][]string // by id of the object
	addrs   map[schema.Addr][]string
}

func newConcealed(snap *store.Snapshot, objects []schema.Object) concealed {
	c := concealed{map[string][]string{}, map[string][]string{}, map[schema.Addr][]string{}}
	for _, o := range objects {
		c.written[o.Address] = o.Sensitive
	}
	for _, o := range snap.Objects {
		if len(o.Sensitive) > 0 && !o.Tombstone {
			c.kept[o.ID], c.addrs[o.Addr()] = o.Sensitive, o.Sensitive
		}
	}
	return c
}

// mark conceals in a plan what must not be shown, and notes with each change what the store is to keep.
func (c concealed) mark(p *plan.Plan) {
	for i := range p.Changes {
		change := &p.Changes[i]
		change.Sensitive = union(change.Sensitive, c.written[change.Address], c.kept[change.ID])
		for j := range change.Attrs {
			a := &change.Attrs[j]
			a.Sensitive = a.Sensitive || slices.Contains(change.Sensitive, a.Name)
		}
	}
	for i := range p.Drift {
		a := &p.Drift[i].Attr
		names := union(c.written[p.Drift[i].Address], c.addrs[p.Drift[i].Addr])
		a.Sensitive = a.Sensitive || slices.Contains(names, a.Name)
	}
}

// reclassify plans to keep the names of attributes of otherwise unchanged objects that are sensitive from
// now on: a later plan may know only those that are kept.
func (c concealed) reclassify(p *plan.Plan, snap *store.Snapshot) {
	if p.Mode != plan.Normal || p.Partial {
		return
	}
	changes := map[string]bool{}
	for _, change := range p.Changes {
		changes[change.ID] = true
	}
	for _, o := range snap.Objects {
		if o.Stack != p.Stack || o.Tombstone || changes[o.ID] {
			continue
		}
		all := union(c.written[o.Address], o.Sensitive)
		if len(all) == len(o.Sensitive) {
			continue
		}
		fresh := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(o.Sensitive, name) })
		p.Changes = append(p.Changes, plan.Change{
			Action: plan.Update, ID: o.ID, Kind: o.Kind, Address: o.Address, Addr: o.Addr(), Saw: int64(o.Revision),
			Spec: o.Spec, Applied: o.Applied, Sensitive: all, Protected: o.Protected, WasProtected: o.Protected,
			Detail: fmt.Sprintf("no longer shown from now on: %s", strings.Join(fresh, ", ")),
		})
		p.Unchanged--
	}
}

// union returns the names without repetition, in order.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

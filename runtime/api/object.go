package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Object is an object as REST shows it.
type Object struct {
	Kind       string         `json:"kind"`
	Key        string         `json:"key"`
	ID         string         `json:"id"`
	Stack      string         `json:"stack"`
	Address    string         `json:"address"`
	Revision   store.Revision `json:"revision"`
	Generation int64          `json:"generation"`
	Protected  bool           `json:"protected"`
	Deleting   bool           `json:"deleting"`
	Spec       map[string]any `json:"spec"`
	Effective  map[string]any `json:"effective"`
	Status     ObjectStatus   `json:"status"`
}

// ObjectStatus is how far the outside of an object is.
type ObjectStatus struct {
	Phase  store.Phase   `json:"phase"`
	Reason string        `json:"reason"`
	Nodes  *[]ObjectNode `json:"nodes,omitempty"` // of kinds that have nodes
}

// ObjectNode is a node of an object.
type ObjectNode struct {
	ID     string `json:"id"`
	Role   string `json:"role"`
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
}

// view shows objects of one snapshot to one caller.
type view struct {
	*store.Snapshot
	engine *engine.Engine
	caller caller
	lacks  map[string]string
	nodes  map[string][]ObjectNode // by object
}

// view looks at a snapshot, and at the nodes where objects of the kind have some.
func (a *REST) view(ctx context.Context, snap *store.Snapshot, who caller, kinds ...*schema.Kind) (*view, error) {
	v := &view{Snapshot: snap, engine: a.Engine, caller: who, nodes: map[string][]ObjectNode{}}
	if !slices.ContainsFunc(kinds, engine.Runs) {
		return v, nil
	}
	var err error
	if v.lacks, err = a.Engine.Lacks(ctx, snap); err != nil {
		return nil, err
	}
	rows, err := a.Engine.Nodes.ListNodes(ctx)
	for _, n := range rows {
		v.nodes[n.PoolID] = append(v.nodes[n.PoolID], ObjectNode{ID: n.ID, Role: n.Role, Phase: n.Phase, Reason: n.Reason})
	}
	return v, err
}

// visible reports whether the caller may see an object.
func (c caller) visible(o *store.Object) bool { return c.sees(o.Kind.TenantOf(o.Spec)) }

func (v *view) show(o store.Object) (Object, error) {
	out := Object{
		Kind: o.Kind.Name, Key: o.Addr().Path, ID: o.ID, Stack: o.Stack, Address: o.Address, Revision: o.Revision,
		Generation: o.Generation, Protected: o.Protected, Deleting: o.Tombstone,
	}
	raw, err := o.Kind.Encode(o.Spec)
	if err != nil {
		return out, err
	}
	if out.Spec, err = v.without(o, raw); err != nil {
		return out, err
	}
	complete, err := open(o).Complete()
	if err != nil {
		return out, err
	}
	if raw, err = ctyjson.Marshal(complete, complete.Type()); err != nil {
		return out, fmt.Errorf("show %s: %w", o.Addr(), err)
	}
	if out.Effective, err = v.without(o, raw); err != nil {
		return out, err
	}
	s := v.engine.State(o, v.lacks)
	out.Status = ObjectStatus{Phase: s.Phase, Reason: s.Message}
	if out.Status.Reason == "" {
		out.Status.Reason = s.Reason
	}
	if engine.Runs(o.Kind) {
		nodes := append([]ObjectNode{}, v.nodes[o.ID]...)
		out.Status.Nodes = &nodes
	}
	return out, nil
}

// open returns an object without its secrets: what is stored of them is a fingerprint, which is no value of the
// attribute.
func open(o store.Object) store.Object {
	values := o.Spec.AsValueMap()
	for i := range o.Kind.Attrs {
		if a := &o.Kind.Attrs[i]; a.Secret {
			values[a.Name] = cty.NullVal(a.Type)
		}
	}
	o.Spec = cty.ObjectVal(values)
	return o
}

// without decodes a value without what is secret and what the caller must not see.
func (v *view) without(o store.Object, raw []byte) (map[string]any, error) {
	tree, err := decodeTree(raw)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", o.Addr(), err)
	}
	for name := range tree {
		if o.Conceals(name) {
			delete(tree, name)
		}
	}
	v.caller.strip(tree, o.Kind.Attrs)
	for i := range o.Kind.Blocks {
		b := &o.Kind.Blocks[i]
		switch block := tree[b.Name].(type) {
		case map[string]any:
			v.caller.strip(block, b.Attrs)
		case []any:
			for _, item := range block {
				v.caller.strip(item.(map[string]any), b.Attrs)
			}
		}
	}
	return tree, nil
}

func (c caller) strip(tree map[string]any, attrs []schema.Attr) {
	for i := range attrs {
		if a := &attrs[i]; a.Secret || c.hides(a) {
			delete(tree, a.Name)
		}
	}
}

// lookup returns the live object of that address, nil if there is none that the caller may see.
func (c caller) lookup(snap *store.Snapshot, addr schema.Addr) *store.Object {
	for i := range snap.Objects {
		if o := &snap.Objects[i]; o.Kind.Name == addr.Kind && !o.Tombstone && o.Addr() == addr {
			if c.visible(o) {
				return o
			}
			return nil
		}
	}
	return nil
}

// get answers with the object of a key.
func (c *call) get() *failure {
	addr, ok := keyOf(c.kind, c.params)
	if !ok {
		return notFound()
	}
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return broken(err)
	}
	o := c.caller.lookup(snap, addr)
	if o == nil {
		return notFound()
	}
	return c.one(http.StatusOK, snap, *o)
}

// getByID answers with the object of an id, also while it is being deleted.
func (c *call) getByID() *failure {
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return broken(err)
	}
	o := byID(snap, c.params[0])
	if o == nil || !c.caller.visible(o) {
		return notFound()
	}
	return c.one(http.StatusOK, snap, *o)
}

func byID(snap *store.Snapshot, id string) *store.Object {
	i := slices.IndexFunc(snap.Objects, func(o store.Object) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &snap.Objects[i]
}

// one answers with an object and its ETag.
func (c *call) one(status int, snap *store.Snapshot, o store.Object) *failure {
	v, err := c.rest.view(c.Context(), snap, c.caller, o.Kind)
	if err != nil {
		return broken(err)
	}
	shown, err := v.show(o)
	if err != nil {
		return broken(err)
	}
	c.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprint(o.Revision)))
	c.answer(status, shown)
	return nil
}

// hidden is what a caller's request must leave as it is: attributes that it does not see, and blocks of which
// there may be several with such a one.
func (c caller) hidden(k *schema.Kind) []cty.Path {
	var paths []cty.Path
	for i := range k.Attrs {
		if a := &k.Attrs[i]; c.hides(a) {
			paths = append(paths, cty.GetAttrPath(a.Name))
		}
	}
	for i := range k.Blocks {
		b := &k.Blocks[i]
		for j := range b.Attrs {
			a := &b.Attrs[j]
			switch {
			case !c.hides(a):
			case b.Single:
				paths = append(paths, cty.GetAttrPath(b.Name).GetAttr(a.Name))
			default:
				paths = append(paths, cty.GetAttrPath(b.Name))
			}
		}
	}
	return paths
}

package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

type putBody struct {
	Stack     string         `json:"stack"`
	Spec      map[string]any `json:"spec"`
	Protected bool           `json:"protected"`
	TakeOver  bool           `json:"take_over"`
}

type patchBody struct {
	Stack string         `json:"stack"`
	Spec  map[string]any `json:"spec"`
}

// change makes one wish about the object of the path, and answers with what came of it.
func (c *call) change(stack string, w wish) *failure {
	var ok bool
	if w.key, ok = keyOf(c.kind, c.params); !ok {
		return notFound()
	}
	w.kind = c.kind
	var f *failure
	if w.condition, f = c.condition(); f != nil {
		return f
	}
	m, f := c.make(store.Stack{Name: stack}, []wish{w}, true)
	if f != nil {
		c.refusedChange(f.Code)
		return f
	}
	id := m.Asked()[0]
	c.noteChange(w.key.String(), m.after.Revision, m.Plan.Plan)
	if w.remove {
		return c.ok(map[string]any{"revision": m.after.Revision, "id": id})
	}
	o := byID(m.after, id)
	if o == nil { // somebody removed it since
		return notFound()
	}
	status := http.StatusOK
	if byID(m.before, id) == nil {
		status = http.StatusCreated
	}
	return c.one(status, m.after, *o)
}

func (c *call) put() *failure {
	var in putBody
	if f := c.read(&in); f != nil {
		return f
	}
	if in.Spec == nil {
		return badRequest("the spec is missing").at("spec")
	}
	return c.change(in.Stack, wish{spec: in.Spec, protected: in.Protected, takeOver: in.TakeOver})
}

func (c *call) patch() *failure {
	var in patchBody
	if f := c.read(&in); f != nil {
		return f
	}
	if in.Spec == nil {
		return badRequest("the spec is missing").at("spec")
	}
	return c.change(in.Stack, wish{spec: in.Spec, patch: true})
}

func (c *call) remove() *failure {
	q, f := c.query()
	if f != nil {
		return f
	}
	return c.change(q.Get("stack"), wish{remove: true})
}

// plain is the stored value of an object as a patch finds it.
func (v *view) plain(o store.Object) (map[string]any, error) {
	raw, err := o.Kind.Encode(o.Spec)
	if err != nil {
		return nil, err
	}
	return v.without(o, raw)
}

// merge applies a merge patch (RFC 7396).
func merge(target any, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	out = maps.Clone(out)
	for name, v := range changes {
		if v == nil {
			delete(out, name)
			continue
		}
		out[name] = merge(out[name], v)
	}
	return out
}

// keyParts are the attributes that the key of an object has, as they are stored or as the key says.
func keyParts(k *schema.Kind, key schema.Addr, have *store.Object) map[string]any {
	out := map[string]any{}
	if have != nil {
		for i := range k.Attrs {
			name := k.Attrs[i].Name
			if v := have.Spec.GetAttr(name); k.Identifies(name) && !v.IsNull() {
				out[name] = v.AsString()
			}
		}
		return out
	}
	for name, part := range k.KeyValues(key) {
		out[name] = part
	}
	return out
}

// another reports whether a spec has an attribute that stands for the same part of the key.
func another(k *schema.Kind, attr string, spec map[string]any) bool {
	for _, part := range k.Key {
		names := strings.Split(part, "|")
		if slices.Contains(names, attr) {
			return slices.ContainsFunc(names, func(n string) bool { return spec[n] != nil })
		}
	}
	return false
}

// decodeTree reads JSON and keeps numbers as they are written.
func decodeTree(raw []byte) (map[string]any, error) {
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}
	return tree, nil
}

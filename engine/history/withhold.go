package history

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Withhold returns a snapshot, and the commits up to it, without what stands for secrets and without the values that are
// concealed at any time: stand-ins are in their places, so that what is told of changes stays the same. Nothing is
// left in them that must not be shown.
func Withhold(snap *store.Snapshot, applies []store.Apply, s *store.Sealer) (*store.Snapshot, []store.Apply, error) {
	w := withholder{EverConcealed(snap, applies), s}
	part := *snap
	part.Secrets, part.Tokens, part.Revoked, part.Outputs = nil, nil, nil, map[string][]schema.Output{}
	part.Objects = slices.Clone(snap.Objects)
	for i := range part.Objects {
		if err := w.object(&part.Objects[i]); err != nil {
			return nil, nil, err
		}
	}
	var err error
	for stack, outputs := range snap.Outputs {
		if part.Outputs[stack], err = w.results(stack, outputs); err != nil {
			return nil, nil, err
		}
	}
	steps := Steps(snap, applies)
	applies = slices.Clone(applies)
	for i := range applies {
		a := &applies[i]
		a.Note = steps[i].Note
		if a.Before, err = w.before(a.Before); err != nil {
			return nil, nil, err
		}
		if a.Outputs, err = w.results(a.Stack, a.Outputs); err != nil {
			return nil, nil, err
		}
	}
	return &part, applies, nil
}

type withholder struct {
	Concealed
	sealer *store.Sealer
}

func (w withholder) object(o *store.Object) error {
	var names []string
	for _, name := range o.Kind.Names() {
		if o.Kind.Secret(name) || slices.Contains(w.attrs[o.ID], name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	for _, side := range []*cty.Value{&o.Spec, &o.Applied} {
		if *side == cty.NilVal {
			continue
		}
		values := side.AsValueMap()
		for _, name := range names {
			if o.Kind.Identifies(name) {
				continue // it is in the object's name
			}
			var err error
			if values[name], err = w.sealer.StandIn(store.SecretKey{Object: o.ID, Attr: name}, values[name]); err != nil {
				return fmt.Errorf("withhold %s of %s: %w", name, o.Addr(), err)
			}
		}
		*side = cty.ObjectVal(values)
	}
	return nil
}

func (w withholder) before(objects map[string]*store.Object) (map[string]*store.Object, error) {
	out := make(map[string]*store.Object, len(objects))
	for id, o := range objects {
		if o != nil {
			part := *o
			if err := w.object(&part); err != nil {
				return nil, err
			}
			o = &part
		}
		out[id] = o
	}
	return out, nil
}

// results withholds outputs that are sensitive at any time.
func (w withholder) results(stack string, outputs []schema.Output) ([]schema.Output, error) {
	outputs = slices.Clone(outputs)
	for i := range outputs {
		o := &outputs[i]
		if !w.outputs[stack][o.Name] {
			continue
		}
		if !o.Sensitive { // else its value is this already
			fingerprint, err := w.sealer.FingerprintOutput(stack, *o)
			if err != nil {
				return nil, err
			}
			o.Value = cty.StringVal(fingerprint)
		}
		var err error
		if o.Value, err = w.sealer.StandIn(store.SecretKey{Object: stack, Attr: o.Name}, o.Value); err != nil {
			return nil, err
		}
	}
	return outputs, nil
}

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// Sent returns a plan as it is sent to who is to look at it, in the form of a saved plan, but not sealed: it prints as
// the plan does, by [Text] and as a [Document]. What must not be shown is not in it; other values of the same type
// stand in its place. It may have errors. It cannot be applied.
func Sent(p *Plan) ([]byte, error) {
	shown := *p
	shown.Changes = slices.Clone(p.Changes)
	for i := range shown.Changes {
		shown.Changes[i] = shown.Changes[i].concealed()
	}
	shown.Drift = slices.Clone(p.Drift)
	for i := range shown.Drift {
		d := &shown.Drift[i]
		if k, ok := schema.Lookup(d.Addr.Kind); ok && !d.Deleted && (d.Attr.Sensitive || k.Secret(d.Attr.Name)) {
			d.Attr.Before, d.Attr.After = standIn(d.Attr.Before), standIn(d.Attr.After)
		}
	}
	shown.Outputs = slices.Clone(p.Outputs)
	for i := range shown.Outputs {
		if o := &shown.Outputs[i]; o.Sensitive {
			o.Before, o.After = standIn(o.Before), standIn(o.After)
		}
	}
	out := sent{Format: fileFormat}
	var err error
	if out.Plan, err = fileOf(&shown, nil); err != nil {
		return nil, err
	}
	for _, problem := range p.Problems {
		path, err := sentPath(problem.Path)
		if err != nil {
			return nil, fmt.Errorf("send a problem of %s: %w", problem.Address, err)
		}
		out.Paths = append(out.Paths, path)
	}
	return json.Marshal(out)
}

// sent is a plan on its way between two processes, which write the same format or do not understand each other.
type sent struct {
	Format int  `json:"format"`
	Plan   file `json:"plan"`
	// Paths lead to what each problem is about, through elements of sets too, which a saved plan leaves out.
	Paths [][]sentStep `json:"paths"`
}

// sentStep is a step of a path: an attribute, or an element of a set, with its type.
type sentStep struct {
	Attr    string          `json:"attr,omitempty"`
	Element json.RawMessage `json:"element,omitempty"`
}

func sentPath(path cty.Path) ([]sentStep, error) {
	var steps []sentStep
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			steps = append(steps, sentStep{Attr: step.Name})
		case cty.IndexStep:
			raw, err := ctyjson.Marshal(step.Key, cty.DynamicPseudoType)
			if err != nil {
				return nil, err
			}
			steps = append(steps, sentStep{Element: raw})
		}
	}
	return steps, nil
}

func receivedPath(steps []sentStep) (cty.Path, error) {
	var path cty.Path
	for _, step := range steps {
		if step.Element == nil {
			path = path.GetAttr(step.Attr)
			continue
		}
		key, err := ctyjson.Unmarshal(step.Element, cty.DynamicPseudoType)
		if err != nil {
			return nil, err
		}
		path = path.Index(key)
	}
	return path, nil
}

// Received reads what Sent wrote.
func Received(raw []byte) (*Plan, error) {
	var format struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(raw, &format); err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	other := fmt.Errorf("read plan: the server is of another version of qod, which writes plans in format %d, and this one reads %d: use the "+
		"qod of the server", format.Format, fileFormat)
	if format.Format != fileFormat {
		return nil, other
	}
	var in sent
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, errors.Join(other, err)
	}
	p, err := in.Plan.plan()
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	if len(in.Paths) != len(p.Problems) {
		return nil, errors.New("read plan: it does not say where its problems are")
	}
	for i := range p.Problems {
		if p.Problems[i].Path, err = receivedPath(in.Paths[i]); err != nil {
			return nil, fmt.Errorf("read plan: %w", err)
		}
	}
	return p, nil
}

// concealed returns the change without the values that must not be shown. What identifies the object is in its name.
func (c Change) concealed() Change {
	hides := func(name string) bool { return c.conceals(name) && !c.Kind.Identifies(name) }
	c.Spec, c.Applied = without(c.Spec, hides), without(c.Applied, hides)
	c.Attrs = slices.Clone(c.Attrs)
	for i := range c.Attrs {
		if a := &c.Attrs[i]; c.conceals(a.Name) {
			a.Before, a.After = standIn(a.Before), standIn(a.After)
		}
	}
	return c
}

func without(object cty.Value, hides func(name string) bool) cty.Value {
	if object == cty.NilVal {
		return object
	}
	values := object.AsValueMap()
	for name, v := range values {
		if hides(name) {
			values[name] = standIn(v)
		}
	}
	return cty.ObjectVal(values)
}

// standIn is another value of the same type, absent where v is.
func standIn(v cty.Value) cty.Value {
	if v == cty.NilVal || absent(v) {
		return v
	}
	switch t := v.Type(); {
	case t == cty.Number:
		return cty.Zero
	case t == cty.Bool:
		return cty.False
	case t.IsSetType() && t.ElementType() == cty.String:
		return cty.SetVal([]cty.Value{cty.StringVal(Hidden)})
	case t.IsSetType() && t.ElementType().IsObjectType():
		return cty.SetVal([]cty.Value{noneOf(t.ElementType())})
	case t.IsObjectType():
		return noneOf(t)
	}
	return cty.StringVal(Hidden)
}

// noneOf is an object in which nothing is written.
func noneOf(t cty.Type) cty.Value {
	values := map[string]cty.Value{}
	for name, at := range t.AttributeTypes() {
		values[name] = cty.NullVal(at)
	}
	return cty.ObjectVal(values)
}

package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// fileFormat is the version of the form in which plans are saved.
const fileFormat = 1

type file struct {
	Format  int          `json:"qod_plan"`
	ID      string       `json:"id"`
	Stack   string       `json:"stack"`
	Lineage string       `json:"lineage"`
	Created time.Time    `json:"created"`
	Changes []fileChange `json:"changes"`
	Live    []Finding    `json:"live,omitempty"`
	// Secrets are sealed with the master key. The rest is as clear as the plan's text.
	Secrets map[string][]byte `json:"secrets,omitempty"`
}

type fileChange struct {
	Action  Action          `json:"action"`
	ID      string          `json:"id"`
	NewID   string          `json:"new_id,omitempty"`
	Kind    string          `json:"kind"`
	Address string          `json:"address,omitempty"`
	Addr    schema.Addr     `json:"addr"`
	Was     schema.Addr     `json:"was"`
	Moved   string          `json:"moved,omitempty"`
	Saw     int64           `json:"saw"`
	Spec    json.RawMessage `json:"spec,omitempty"`
	Applied json.RawMessage `json:"applied,omitempty"`
	Attrs   []fileAttr      `json:"attrs,omitempty"`
	Secrets []string        `json:"secrets,omitempty"`
	Reason  Reason          `json:"reason,omitempty"`
	Detail  string          `json:"detail,omitempty"`
}

type fileAttr struct {
	Name      string          `json:"name"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"`
	Note      string          `json:"note,omitempty"`
}

// Marshal returns the file form of a plan. Secrets must be sealed; they are kept by "id/attribute".
func Marshal(p *Plan, secrets map[string][]byte) ([]byte, error) {
	f := file{Format: fileFormat, ID: p.ID, Stack: p.Stack, Lineage: p.Lineage, Created: p.Created, Live: p.Live, Secrets: secrets}
	for _, c := range p.Changes {
		fc, err := encodeChange(c)
		if err != nil {
			return nil, fmt.Errorf("save change of %s: %w", c.Addr, err)
		}
		f.Changes = append(f.Changes, fc)
	}
	return json.MarshalIndent(f, "", " ")
}

func encodeChange(c Change) (fileChange, error) {
	fc := fileChange{
		Action: c.Action, ID: c.ID, NewID: c.NewID, Kind: c.Kind.Name, Address: c.Address, Addr: c.Addr, Was: c.Was,
		Moved: c.Moved, Saw: c.Saw, Secrets: c.Secrets, Reason: c.Reason, Detail: c.Detail,
	}
	var err error
	if c.Spec != cty.NilVal {
		if fc.Spec, err = c.Kind.Encode(c.Spec); err != nil {
			return fc, err
		}
	}
	if c.Applied != cty.NilVal {
		if fc.Applied, err = c.Kind.Encode(c.Applied); err != nil {
			return fc, err
		}
	}
	for _, a := range c.Attrs {
		fa := fileAttr{Name: a.Name, Sensitive: a.Sensitive, Note: a.Note}
		if fa.Before, err = encodeAttr(c.Kind, a.Name, a.Before); err != nil {
			return fc, err
		}
		if fa.After, err = encodeAttr(c.Kind, a.Name, a.After); err != nil {
			return fc, err
		}
		fc.Attrs = append(fc.Attrs, fa)
	}
	return fc, nil
}

// encodeAttr stores one attribute as an object in which nothing else is written.
func encodeAttr(k *schema.Kind, name string, v cty.Value) (json.RawMessage, error) {
	if absent(v) {
		return nil, nil
	}
	attrs := k.Empty().AsValueMap()
	attrs[name] = v
	return k.Encode(cty.ObjectVal(attrs))
}

// Unmarshal reads the file form of a plan.
func Unmarshal(data []byte) (*Plan, map[string][]byte, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil || f.Format == 0 {
		return nil, nil, errors.New("this is not a plan that qod saved")
	}
	if f.Format != fileFormat {
		return nil, nil, fmt.Errorf("the plan has format %d, this qod reads %d: make it anew", f.Format, fileFormat)
	}
	p := &Plan{ID: f.ID, Stack: f.Stack, Lineage: f.Lineage, Created: f.Created, Live: f.Live}
	for _, fc := range f.Changes {
		c, err := decodeChange(fc)
		if err != nil {
			return nil, nil, fmt.Errorf("read change of %s: %w", fc.Addr, err)
		}
		p.Changes = append(p.Changes, c)
	}
	return p, f.Secrets, nil
}

func decodeChange(fc fileChange) (Change, error) {
	k, ok := schema.Lookup(fc.Kind)
	if !ok {
		return Change{}, fmt.Errorf("there is no kind %q", fc.Kind)
	}
	c := Change{
		Action: fc.Action, ID: fc.ID, NewID: fc.NewID, Kind: k, Address: fc.Address, Addr: fc.Addr, Was: fc.Was,
		Moved: fc.Moved, Saw: fc.Saw, Secrets: fc.Secrets, Reason: fc.Reason, Detail: fc.Detail, Spec: cty.NilVal, Applied: cty.NilVal,
	}
	var err error
	if fc.Spec != nil {
		if c.Spec, err = k.Decode(fc.Spec); err != nil {
			return c, err
		}
	}
	if fc.Applied != nil {
		if c.Applied, err = k.Decode(fc.Applied); err != nil {
			return c, err
		}
	}
	for _, fa := range fc.Attrs {
		a := Attr{Name: fa.Name, Sensitive: fa.Sensitive, Note: fa.Note, Effect: k.EffectOf(fa.Name), Default: cty.NilVal}
		if def, ok := k.Attr(fa.Name); ok {
			a.Default = def.Default
		}
		if a.Before, err = decodeAttr(k, fa.Name, fa.Before); err != nil {
			return c, err
		}
		if a.After, err = decodeAttr(k, fa.Name, fa.After); err != nil {
			return c, err
		}
		c.Attrs = append(c.Attrs, a)
	}
	return c, nil
}

func decodeAttr(k *schema.Kind, name string, raw json.RawMessage) (cty.Value, error) {
	if raw == nil {
		return k.Empty().GetAttr(name), nil
	}
	v, err := k.Decode(raw)
	if err != nil {
		return cty.NilVal, err
	}
	if !v.Type().HasAttribute(name) {
		return cty.NilVal, fmt.Errorf("%s has no attribute %q", k.Name, name)
	}
	return v.GetAttr(name), nil
}

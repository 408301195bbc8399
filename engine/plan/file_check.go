package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// fileOutput has the values of a change of an output, as objects of value and type. What a plan has of a
// sensitive one are fingerprints.
type fileOutput struct {
	Name      string          `json:"name"`
	Sensitive bool            `json:"sensitive"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
}

type fileResult struct {
	Name        string          `json:"name"`
	Sensitive   bool            `json:"sensitive"`
	Description string          `json:"description"`
	Value       json.RawMessage `json:"value,omitempty"`
}

func encodeOutputs(p *Plan) ([]fileOutput, *[]fileResult, error) {
	var outputs []fileOutput
	for _, o := range p.Outputs {
		fo := fileOutput{Name: o.Name, Sensitive: o.Sensitive}
		var err error
		if fo.Before, err = encodeOutput(o.Before); err == nil {
			fo.After, err = encodeOutput(o.After)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("save output %q: %w", o.Name, err)
		}
		outputs = append(outputs, fo)
	}
	if p.Result == nil {
		return outputs, nil, nil
	}
	results := []fileResult{}
	for _, o := range p.Result {
		result := fileResult{Name: o.Name, Sensitive: o.Sensitive, Description: o.Description}
		if !o.Sensitive {
			var err error
			if result.Value, err = encodeOutput(o.Value); err != nil {
				return nil, nil, fmt.Errorf("save output %q: %w", o.Name, err)
			}
		}
		results = append(results, result)
	}
	return outputs, &results, nil
}

func encodeOutput(v cty.Value) (json.RawMessage, error) {
	if v == cty.NilVal {
		return nil, nil
	}
	return ctyjson.Marshal(v, cty.DynamicPseudoType)
}

// decodeOutputs gives sensitive results as nulls; whoever can open them puts them in their place.
func decodeOutputs(p *Plan, outputs []fileOutput, results *[]fileResult) error {
	for _, fo := range outputs {
		o := OutputChange{Name: fo.Name, Sensitive: fo.Sensitive, Before: cty.NilVal, After: cty.NilVal}
		var err error
		if fo.Before != nil {
			o.Before, err = decodeOutput(fo.Before)
		}
		if fo.After != nil && err == nil {
			o.After, err = decodeOutput(fo.After)
		}
		if err != nil {
			return fmt.Errorf("output %q: %w", fo.Name, err)
		}
		p.Outputs = append(p.Outputs, o)
	}
	if results == nil {
		return nil
	}
	p.Result = []schema.Output{}
	for _, fr := range *results {
		value := cty.NullVal(cty.DynamicPseudoType)
		if !fr.Sensitive {
			var err error
			if value, err = decodeOutput(fr.Value); err != nil {
				return fmt.Errorf("output %q: %w", fr.Name, err)
			}
		}
		p.Result = append(p.Result, schema.Output{Name: fr.Name, Value: value, Sensitive: fr.Sensitive, Description: fr.Description})
	}
	return nil
}

func decodeOutput(raw json.RawMessage) (cty.Value, error) {
	if raw == nil {
		return cty.NilVal, errors.New("its value is missing")
	}
	return ctyjson.Unmarshal(raw, cty.DynamicPseudoType)
}

// check looks at what a plan that was read must hold for whoever prints or applies it.
func check(p *Plan) error {
	switch {
	case p.ID == "" || p.Stack == "" || p.Created.IsZero():
		return errors.New("it does not say which plan it is")
	case !slices.Contains([]Mode{Normal, Destroy, RefreshOnly}, p.Mode):
		return fmt.Errorf("there is no mode %q", p.Mode)
	}
	for _, f := range slices.Concat(p.Live, p.Draining) {
		if _, ok := schema.Lookup(f.Addr.Kind); !ok {
			return fmt.Errorf("there is no kind %q", f.Addr.Kind)
		}
	}
	for _, d := range p.Drift {
		if err := d.Attr.check(); err != nil && !d.Deleted {
			return fmt.Errorf("drift of %s: %w", d.Addr, err)
		}
	}
	for i := range p.Changes {
		if err := p.Changes[i].check(); err != nil {
			return fmt.Errorf("change of %s: %w", p.Changes[i].Addr, err)
		}
	}
	return nil
}

func (c *Change) check() error {
	stored := c.Action == Create || c.Action == Update || c.Action == Replace
	switch {
	case !stored && c.Action != Delete && c.Action != Forget:
		return fmt.Errorf("there is no action %q", c.Action)
	case c.ID == "" || c.Action == Replace && c.NewID == "":
		return errors.New("it does not say which object it is")
	case c.Addr.Kind != c.Kind.Name || c.Was.Kind != "" && c.Was.Kind != c.Kind.Name:
		return fmt.Errorf("it is not about a %s", c.Kind.Name)
	case stored && (c.Spec == cty.NilVal || c.Applied == cty.NilVal):
		return errors.New("it does not say what to store")
	case c.Action == Delete && c.Spec != cty.NilVal:
		return errors.New("it stores what it deletes")
	case c.Spec != cty.NilVal && c.Kind.Addr(c.Spec) != c.Addr:
		return fmt.Errorf("what it stores is %s", c.Kind.Addr(c.Spec))
	}
	for _, name := range c.Secrets {
		if a, ok := c.Kind.Attr(name); !ok || !a.Secret {
			return fmt.Errorf("%s has no secret %q", c.Kind.Name, name)
		}
	}
	for _, a := range c.Attrs {
		if err := a.check(); err != nil {
			return err
		}
	}
	return nil
}

func (a *Attr) check() error {
	if !slices.Contains([]schema.Effect{schema.Replace, schema.Roll, schema.Live, schema.Row}, a.Effect) {
		return fmt.Errorf("there is no effect %q", a.Effect)
	}
	return nil
}

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// desiredJSON is a Desired on its way from one process to another of the same version.
type desiredJSON struct {
	Objects  []objectJSON  `json:"objects"`
	Moves    []moveJSON    `json:"moves,omitempty"`
	Removals []removalJSON `json:"removals,omitempty"`
	Imports  []importJSON  `json:"imports,omitempty"`
	Outputs  []outputJSON  `json:"outputs,omitempty"`
	Modules  []string      `json:"modules,omitempty"`
	// Blocks are the addresses of blocks, true for one with for_each.
	Blocks map[string]bool `json:"blocks,omitempty"`
}

type objectJSON struct {
	Kind           string          `json:"kind"`
	Address        string          `json:"address"`
	Value          json.RawMessage `json:"value"`
	Sensitive      []string        `json:"sensitive,omitempty"`
	DependsOn      []string        `json:"depends_on,omitempty"`
	PreventDestroy bool            `json:"prevent_destroy,omitempty"`
	IgnoreChanges  [][]string      `json:"ignore_changes,omitempty"` // names of attributes, from the outside in
	IgnoreAll      bool            `json:"ignore_all,omitempty"`
	Triggers       []triggerJSON   `json:"replace_triggered_by,omitempty"`
}

type triggerJSON struct {
	Address string `json:"address"`
	Attr    string `json:"attr,omitempty"`
}

type moveJSON struct {
	From  string    `json:"from"`
	To    string    `json:"to"`
	Range hcl.Range `json:"range"`
}

type removalJSON struct {
	From    string    `json:"from"`
	Destroy bool      `json:"destroy"`
	Range   hcl.Range `json:"range"`
}

type importJSON struct {
	To    string    `json:"to"`
	ID    Addr      `json:"id"`
	Range hcl.Range `json:"range"`
}

type outputJSON struct {
	Name        string          `json:"name"`
	Value       json.RawMessage `json:"value"` // with its type
	Sensitive   bool            `json:"sensitive,omitempty"`
	Description string          `json:"description,omitempty"`
}

// MarshalJSON writes all that a configuration asks for, with secrets in clear: it goes only where they are to go.
func (d Desired) MarshalJSON() ([]byte, error) {
	out := desiredJSON{Objects: make([]objectJSON, len(d.Objects)), Modules: slices.Sorted(maps.Keys(d.Declared.Modules)), Blocks: d.Declared.Blocks}
	for i, o := range d.Objects {
		var err error
		if out.Objects[i], err = encodeDesired(o); err != nil {
			return nil, fmt.Errorf("encode %s: %w", o.Address, err)
		}
	}
	for _, m := range d.Moves {
		out.Moves = append(out.Moves, moveJSON{m.From.String(), m.To.String(), m.Range})
	}
	for _, r := range d.Removals {
		out.Removals = append(out.Removals, removalJSON{r.From.String(), r.Destroy, r.Range})
	}
	for _, i := range d.Imports {
		out.Imports = append(out.Imports, importJSON{i.To.String(), i.ID, i.Range})
	}
	for _, o := range d.Outputs {
		value, err := ctyjson.Marshal(o.Value, cty.DynamicPseudoType)
		if err != nil {
			return nil, fmt.Errorf("encode output %q: %w", o.Name, err)
		}
		out.Outputs = append(out.Outputs, outputJSON{o.Name, value, o.Sensitive, o.Description})
	}
	return json.Marshal(out)
}

func encodeDesired(o Object) (objectJSON, error) {
	out := objectJSON{
		Kind: o.Kind.Name, Address: o.Address, Sensitive: o.Sensitive, DependsOn: o.DependsOn,
		PreventDestroy: o.Lifecycle.PreventDestroy, IgnoreAll: o.Lifecycle.IgnoreAll,
	}
	for _, path := range o.Lifecycle.IgnoreChanges {
		var names []string
		for _, step := range path {
			attr, ok := step.(cty.GetAttrStep)
			if !ok {
				return out, fmt.Errorf("ignore_changes leads to an element of a set")
			}
			names = append(names, attr.Name)
		}
		out.IgnoreChanges = append(out.IgnoreChanges, names)
	}
	for _, t := range o.Lifecycle.ReplaceTriggeredBy {
		out.Triggers = append(out.Triggers, triggerJSON{t.Address.String(), t.Attr})
	}
	var err error
	out.Value, err = o.Kind.Encode(o.Value)
	return out, err
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses what no configuration can ask for: values that fail the checks
// of their kinds, addresses that are none or twice the same, and objects before those that they depend on.
func (d *Desired) UnmarshalJSON(raw []byte) error {
	var in desiredJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	*d = Desired{Declared: Declared{Modules: map[string]bool{}, Blocks: in.Blocks}}
	for _, m := range in.Modules {
		d.Declared.Modules[m] = true
	}
	before := map[string]bool{}
	for _, o := range in.Objects {
		object, err := o.object(before)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Address, err)
		}
		before[o.Address] = true
		d.Objects = append(d.Objects, object)
	}
	if err := d.relocate(in); err != nil {
		return err
	}
	for _, o := range in.Outputs {
		value, err := ctyjson.Unmarshal(o.Value, cty.DynamicPseudoType)
		if err != nil {
			return fmt.Errorf("output %q: %w", o.Name, err)
		}
		d.Outputs = append(d.Outputs, Output{o.Name, value, o.Sensitive, o.Description})
	}
	d.Absence = d.Declared.Absence(func(address string) bool { return before[address] })
	return nil
}

func (o objectJSON) object(before map[string]bool) (Object, error) {
	out := Object{
		Address: o.Address, Sensitive: o.Sensitive, DependsOn: o.DependsOn,
		Lifecycle: Lifecycle{PreventDestroy: o.PreventDestroy, IgnoreAll: o.IgnoreAll},
	}
	address, err := ParseAddress(o.Address)
	switch {
	case err != nil:
		return out, err
	case address.Kind == "" || address.Kind != o.Kind || address.String() != o.Address:
		return out, fmt.Errorf("this is no address of a %q", o.Kind)
	case before[o.Address]:
		return out, fmt.Errorf("the address is there twice")
	}
	out.Kind, _ = Lookup(o.Kind) // addresses have known kinds only
	if out.Value, err = out.Kind.Decode(o.Value); err != nil {
		return out, err
	}
	if _, problems := out.Kind.Complete(out.Value); len(problems) > 0 {
		return out, fmt.Errorf("%s", problems[0].Message)
	}
	for _, other := range o.DependsOn {
		if !before[other] {
			return out, fmt.Errorf("%s does not come before it", other)
		}
	}
	for _, name := range o.Sensitive {
		if !slices.Contains(out.Kind.Names(), name) {
			return out, fmt.Errorf("there is no argument %q", name)
		}
	}
	return out, o.lifecycle(&out)
}

func (o objectJSON) lifecycle(out *Object) error {
	for _, names := range o.IgnoreChanges {
		if len(names) == 0 || len(names) > 2 || !slices.Contains(out.Kind.Names(), names[0]) {
			return fmt.Errorf("ignore_changes leads nowhere")
		}
		var path cty.Path
		for _, name := range names {
			path = path.GetAttr(name)
		}
		out.Lifecycle.IgnoreChanges = append(out.Lifecycle.IgnoreChanges, path)
	}
	for _, t := range o.Triggers {
		address, err := ParseAddress(t.Address)
		if err != nil {
			return err
		}
		out.Lifecycle.ReplaceTriggeredBy = append(out.Lifecycle.ReplaceTriggeredBy, Trigger{address, t.Attr})
	}
	return nil
}

// relocate reads moves, removals and imports.
func (d *Desired) relocate(in desiredJSON) error {
	var err error
	address := func(text string) Address {
		a, parsed := ParseAddress(text)
		if parsed != nil && err == nil {
			err = parsed
		}
		return a
	}
	for _, m := range in.Moves {
		d.Moves = append(d.Moves, Move{address(m.From), address(m.To), m.Range})
	}
	for _, r := range in.Removals {
		d.Removals = append(d.Removals, Removal{address(r.From), r.Destroy, r.Range})
	}
	for _, i := range in.Imports {
		if _, known := Lookup(i.ID.Kind); !known && err == nil {
			err = fmt.Errorf("import of %s: there is no kind %q", i.ID, i.ID.Kind)
		}
		d.Imports = append(d.Imports, Import{address(i.To), i.ID, i.Range})
	}
	return err
}

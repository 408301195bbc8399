package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// JSON returns the plan's [Document], indented and with a line feed. Equal plans give equal bytes.
func JSON(p *Plan, version string, diagnostics []schema.Diagnostic) ([]byte, error) {
	d, err := NewDocument(p, version, diagnostics)
	if err != nil {
		return nil, err
	}
	return d.Encode()
}

// Encode returns the document as JSON, indented and with a line feed.
func (d *Document) Encode() ([]byte, error) {
	out := &bytes.Buffer{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	return out.Bytes(), nil
}

// NewDocument describes a plan made by that version of qod. Without diagnostics, not even an empty list,
// it takes the plan's problems, which know little of their places.
func NewDocument(p *Plan, version string, diagnostics []schema.Diagnostic) (*Document, error) {
	if diagnostics == nil {
		for _, problem := range p.Problems {
			diagnostics = append(diagnostics, problem.Diagnostic())
		}
	}
	failed := p.Failed() || slices.ContainsFunc(diagnostics, func(d schema.Diagnostic) bool { return d.Severity == "error" })
	d := &Document{
		FormatVersion: FormatVersion, QodVersion: version, Stack: p.Stack, Mode: string(p.Mode), Partial: p.Partial,
		Created: p.Created.UTC(), Applicable: !failed && !p.Empty(), Complete: !failed && !p.Partial, Errored: failed,
		ResourceChanges: []ResourceChange{}, Drift: []ResourceDrift{}, Diagnostics: append([]schema.Diagnostic{}, diagnostics...),
		Summary: summarize(p),
	}
	if p.Mode == Normal {
		d.Mode = "normal"
	}
	addresses := map[schema.Addr]string{}
	for i := range p.Changes {
		c := &p.Changes[i]
		addresses[c.Addr] = c.Address
		rc, err := describe(c, p.Mode)
		if err != nil {
			return nil, fmt.Errorf("describe change of %s: %w", c.Addr, err)
		}
		d.ResourceChanges = append(d.ResourceChanges, rc)
	}
	d.LiveChanges, d.Draining = liveChanges(p.Live, addresses), liveChanges(p.Draining, addresses)
	for _, drift := range p.Drift {
		attr, err := describeDrift(drift)
		if err != nil {
			return nil, fmt.Errorf("describe drift of %s: %w", drift.Addr, err)
		}
		d.Drift = append(d.Drift, attr)
	}
	var err error
	d.Outputs, err = describeOutputs(p)
	return d, err
}

// summarize counts by the actions that programs read: a no-op is no change.
func summarize(p *Plan) Summary {
	s := Summary{Live: len(p.Live)}
	for i := range p.Changes {
		c := &p.Changes[i]
		for _, action := range actions(c, p.Mode) {
			switch Action(action) {
			case Create:
				s.Add++
			case Update:
				s.Change++
			case Delete:
				s.Destroy++
			case Forget:
				s.Forget++
			}
		}
		if c.Import {
			s.Import++
		}
	}
	return s
}

func describe(c *Change, mode Mode) (ResourceChange, error) {
	rc := ResourceChange{
		Address: c.Address, PreviousAddress: c.Moved, Kind: c.Kind.Name, Object: c.Addr.Path, PreviousObject: c.Was.Path,
		ID: c.ID, ActionReason: c.Reason, ReasonDetail: c.Detail, Protected: c.Protected, WasProtected: c.WasProtected,
		Effects: map[string]schema.Effect{},
	}
	if c.Action == Create {
		rc.ID = ""
	}
	v := &rc.Change
	v.Actions = actions(c, mode)
	before, after := c.before(), c.Spec
	if mode == RefreshOnly && c.Action == Update {
		before = after // the drift says what is taken as applied
	} else {
		rc.Effects, v.ReplacePaths = effectsOf(c)
	}
	if c.Action == Delete || c.Action == Forget {
		after = cty.NilVal
	}
	var err error
	if v.Before, v.BeforeSensitive, err = c.show(before); err != nil {
		return rc, err
	}
	if v.After, v.AfterSensitive, err = c.show(after); err != nil {
		return rc, err
	}
	if v.Effective, err = showEffective(c.Kind, after, v.AfterSensitive); err != nil {
		return rc, err
	}
	if c.Import {
		id := c.Addr
		if c.Was.Kind != "" {
			id = c.Was
		}
		v.Importing = &Importing{ID: id.String(), FromStack: c.From}
	}
	return rc, nil
}

func actions(c *Change, mode Mode) []string {
	switch {
	case c.Action == Replace:
		return []string{string(Delete), string(Create)}
	case c.Action == Update && (mode == RefreshOnly || c.onlyRecord()):
		return []string{"no-op"}
	}
	return []string{string(c.Action)}
}

// onlyRecord reports whether only what the stack notes of the object changes: its place or its owner.
func (c *Change) onlyRecord() bool {
	return len(c.Attrs) == 0 && len(c.Secrets) == 0 && c.Was.Kind == "" && c.Protected == c.WasProtected
}

// effectsOf says what the changes of attributes do, and which of them cannot be made in place.
func effectsOf(c *Change) (map[string]schema.Effect, [][]string) {
	effects := map[string]schema.Effect{}
	if c.Action != Update && c.Action != Replace {
		return effects, nil
	}
	var paths [][]string
	for _, a := range c.Attrs {
		effects[a.Name] = a.Effect
		if c.Action == Replace && a.Effect == schema.Replace {
			paths = append(paths, []string{a.Name})
		}
	}
	return effects, paths
}

// before returns the object as it was. A reference whose target is renamed in the same plan has the new
// name already: it means the same object.
func (c *Change) before() cty.Value {
	if c.Action == Create {
		return cty.NilVal
	}
	from := c.Spec
	if from == cty.NilVal {
		from = c.Kind.Empty()
	}
	attrs := from.AsValueMap()
	for _, a := range c.Attrs {
		attrs[a.Name] = a.Before
		if a.Before == cty.NilVal {
			attrs[a.Name] = cty.NullVal(from.GetAttr(a.Name).Type())
		}
	}
	return cty.ObjectVal(attrs)
}

// show encodes a value of the change's kind without what must not be shown, and names that.
func (c *Change) show(v cty.Value) (json.RawMessage, map[string]bool, error) {
	return ShowValue(c.Kind, v, c.conceals)
}

// ShowValue encodes a value of a kind for programs: without what is not written, and with null for what
// conceals says or is secret by its kind, which it names. Secrets that are not kept are left out.
func ShowValue(k *schema.Kind, v cty.Value, conceals func(name string) bool) (json.RawMessage, map[string]bool, error) {
	sensitive := map[string]bool{}
	if v == cty.NilVal {
		return json.RawMessage("null"), sensitive, nil
	}
	raw, err := k.Encode(v)
	if err != nil {
		return nil, nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, nil, fmt.Errorf("show %s: %w", k.Name, err)
	}
	for name := range fields {
		a, isAttr := k.Attr(name)
		switch {
		case isAttr && a.StoredAs != "":
			delete(fields, name)
		case k.Secret(name) || conceals(name):
			fields[name], sensitive[name] = json.RawMessage("null"), true
		}
	}
	shown, err := json.Marshal(fields)
	return shown, sensitive, err
}

// showEffective encodes a value with the defaults of its kind, without what is sensitive of it.
func showEffective(k *schema.Kind, v cty.Value, sensitive map[string]bool) (json.RawMessage, error) {
	if v != cty.NilVal {
		v, _ = k.Complete(v) // what is planned was checked before
	}
	shown, _, err := ShowValue(k, v, func(name string) bool { return sensitive[name] })
	return shown, err
}

func liveChanges(findings []Finding, addresses map[schema.Addr]string) []LiveChange {
	out := []LiveChange{}
	for _, f := range findings {
		out = append(out, LiveChange{Address: addresses[f.Addr], Kind: f.Addr.Kind, Object: f.Addr.Path, Message: f.Message})
	}
	return out
}

func describeDrift(d Drift) (ResourceDrift, error) {
	out := ResourceDrift{
		Address: d.Address, Kind: d.Addr.Kind, Object: d.Addr.Path, Deleted: d.Deleted, Attribute: d.Attr.Name,
		Before: json.RawMessage("null"), After: json.RawMessage("null"), Sensitive: d.Attr.Sensitive,
	}
	k, ok := schema.Lookup(d.Addr.Kind)
	if !ok {
		return out, fmt.Errorf("there is no kind %q", d.Addr.Kind)
	}
	if d.Deleted {
		return out, nil
	}
	out.Sensitive = out.Sensitive || k.Secret(d.Attr.Name)
	if out.Sensitive {
		return out, nil
	}
	var err error
	if out.Before, err = showAttr(k, d.Attr.Name, d.Attr.Before); err != nil {
		return out, err
	}
	out.After, err = showAttr(k, d.Attr.Name, d.Attr.After)
	return out, err
}

// showAttr encodes one attribute as its kind does.
func showAttr(k *schema.Kind, name string, v cty.Value) (json.RawMessage, error) {
	raw, err := encodeAttr(k, name, v)
	if err != nil || raw == nil {
		return json.RawMessage("null"), err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("show %s of %s: %w", name, k.Name, err)
	}
	return fields[name], nil
}

func describeOutputs(p *Plan) (map[string]OutputValues, error) {
	out := map[string]OutputValues{}
	add := func(name string, action []string, before, after cty.Value, sensitive bool) (err error) {
		o := OutputValues{Actions: action, Sensitive: sensitive}
		if o.Before, err = showOutput(before, sensitive); err == nil {
			o.After, err = showOutput(after, sensitive)
		}
		out[name] = o
		if err != nil {
			return fmt.Errorf("describe output %q: %w", name, err)
		}
		return nil
	}
	for _, o := range p.Result {
		if err := add(o.Name, []string{"no-op"}, o.Value, o.Value, o.Sensitive); err != nil {
			return nil, err
		}
	}
	for _, o := range p.Outputs {
		action := Update
		switch {
		case o.Before == cty.NilVal:
			action = Create
		case o.After == cty.NilVal:
			action = Delete
		}
		if err := add(o.Name, []string{string(action)}, o.Before, o.After, o.Sensitive); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func showOutput(v cty.Value, sensitive bool) (json.RawMessage, error) {
	if sensitive || v == cty.NilVal {
		return json.RawMessage("null"), nil
	}
	return ctyjson.Marshal(v, v.Type())
}

// Diagnostic returns the problem for programs, without a snippet.
func (p Problem) Diagnostic() schema.Diagnostic {
	d := schema.Diagnostic{
		Severity: "error", Summary: p.Summary, Detail: p.Detail, Address: p.Address, Path: names(p.Path),
	}
	if p.Warning {
		d.Severity = "warning"
	}
	if p.Range != nil {
		d.Range = &schema.SourceRange{
			Filename: p.Range.Filename,
			Start:    schema.SourcePosition{Line: p.Range.Start.Line, Column: p.Range.Start.Column},
			End:      schema.SourcePosition{Line: p.Range.End.Line, Column: p.Range.End.Column},
		}
	}
	return d
}

// names lists the attributes of a path. The elements of a set have no name.
func names(path cty.Path) []string {
	var list []string
	for _, step := range path {
		if attr, ok := step.(cty.GetAttrStep); ok {
			list = append(list, attr.Name)
		}
	}
	return list
}

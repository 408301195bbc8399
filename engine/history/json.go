package history

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// JSONFormat is the version of the JSON forms. The number before the dot rises when a program that reads
// them has to change.
const JSONFormat = "1.0"

// CommitsJSON lists commits for programs.
type CommitsJSON struct {
	Format  string       `json:"format_version"`
	Commits []CommitJSON `json:"commits"`
}

// CommitJSON is a commit for programs.
type CommitJSON struct {
	Revision store.Revision `json:"revision"`
	At       time.Time      `json:"at"`
	By       string         `json:"by"`
	From     string         `json:"from"`
	Stack    string         `json:"stack,omitempty"`
	PlanID   string         `json:"plan_id,omitempty"`
	Note     string         `json:"note"`
	Add      int            `json:"add"`
	Change   int            `json:"change"`
	Destroy  int            `json:"destroy"`
	Outputs  int            `json:"outputs"`
}

// EncodeStep returns a commit for programs.
func EncodeStep(s Step) CommitJSON {
	c := CommitJSON{
		Revision: s.Revision, At: s.At, By: s.By, From: s.From, Stack: s.Stack, PlanID: s.PlanID, Note: s.Note,
		Outputs: len(s.Outputs),
	}
	c.Add, c.Change, c.Destroy = Counts(s.Changes)
	return c
}

// ChangeJSON is a change for programs. Values that must not be shown are left out.
type ChangeJSON struct {
	Action   Action     `json:"action"`
	Object   string     `json:"object"`             // pool.acme/bi
	Was      string     `json:"was,omitempty"`      // its name before, where it differs
	Address  string     `json:"address,omitempty"`  // pool.bi
	Stack    string     `json:"stack,omitempty"`    // that has it, or had it last
	WasOwned string     `json:"was_from,omitempty"` // the stack before, where it differs
	Kind     string     `json:"kind"`
	ID       string     `json:"id"`
	Attrs    []AttrJSON `json:"attributes,omitempty"`
}

// AttrJSON is an attribute that differs. A value that was not written is left out.
type AttrJSON struct {
	Name      string          `json:"name"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// EncodeChanges returns changes for programs.
func EncodeChanges(changes []Change) ([]ChangeJSON, error) {
	out := make([]ChangeJSON, 0, len(changes))
	for _, c := range changes {
		o := c.Object()
		e := ChangeJSON{
			Action: c.Action, Object: o.Addr().String(), Address: o.Address, Stack: o.Stack, Kind: o.Kind.Name, ID: o.ID,
		}
		if c.Before != nil && c.After != nil {
			if was := c.Before.Addr(); was != o.Addr() {
				e.Was = was.String()
			}
			if c.Before.Stack != o.Stack {
				e.WasOwned = c.Before.Stack
			}
		}
		for _, a := range c.Attrs() {
			attr, err := encodeAttr(a, func(v cty.Value) (json.RawMessage, error) { return encodeOf(o.Kind, a.Name, v) })
			if err != nil {
				return nil, fmt.Errorf("encode %s of %s: %w", a.Name, o.Addr(), err)
			}
			e.Attrs = append(e.Attrs, attr)
		}
		out = append(out, e)
	}
	return out, nil
}

func encodeAttr(a Attr, encode func(cty.Value) (json.RawMessage, error)) (AttrJSON, error) {
	e := AttrJSON{Name: a.Name, Sensitive: a.Hidden}
	if a.Hidden {
		return e, nil
	}
	var err error
	if e.Before, err = encode(a.Before); err != nil {
		return e, err
	}
	e.After, err = encode(a.After)
	return e, err
}

// encodeOf encodes an attribute as it is stored: within an object in which nothing else is written.
func encodeOf(k *schema.Kind, name string, v cty.Value) (json.RawMessage, error) {
	attrs := k.Empty().AsValueMap()
	attrs[name] = v
	raw, err := k.Encode(cty.ObjectVal(attrs))
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	err = json.Unmarshal(raw, &object)
	return object[name], err
}

// EncodeValue returns a value as plain JSON, and nothing for a null.
func EncodeValue(v cty.Value) (json.RawMessage, error) {
	if v.IsNull() {
		return nil, nil
	}
	return ctyjson.Marshal(v, v.Type())
}

// EncodeOutputs returns changes of outputs for programs.
func EncodeOutputs(changes []OutputChange) ([]AttrJSON, error) {
	out := make([]AttrJSON, 0, len(changes))
	for _, c := range changes {
		a := Attr{Name: c.Name, Before: cty.NullVal(cty.String), After: cty.NullVal(cty.String)}
		for _, side := range []struct {
			o  *schema.Output
			to *cty.Value
		}{{c.Before, &a.Before}, {c.After, &a.After}} {
			if side.o != nil {
				*side.to = side.o.Value
				a.Hidden = a.Hidden || side.o.Sensitive
			}
		}
		e, err := encodeAttr(a, EncodeValue)
		if err != nil {
			return nil, fmt.Errorf("encode output %s: %w", c.Name, err)
		}
		out = append(out, e)
	}
	return out, nil
}

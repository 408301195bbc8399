package store

import (
	"encoding/json"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// ObjectJSON is an object without its id and status, as the history keeps it. Applied is left out where it equals the
// spec.
type ObjectJSON struct {
	Kind       string          `json:"kind"`
	Spec       json.RawMessage `json:"spec"`
	Applied    json.RawMessage `json:"applied,omitempty"`
	AsApplied  bool            `json:"as_applied,omitempty"`
	Address    string          `json:"address,omitempty"`
	Stack      string          `json:"stack,omitempty"`
	Generation int64           `json:"generation"`
	Revision   Revision        `json:"revision"`
	Tombstone  bool            `json:"tombstone,omitempty"`
	Protected  bool            `json:"protected,omitempty"`
	Sensitive  []string        `json:"sensitive,omitempty"`
}

// EncodeObject returns what is kept of an object.
func EncodeObject(o Object) (ObjectJSON, error) {
	e := ObjectJSON{
		Kind: o.Kind.Name, Address: o.Address, Stack: o.Stack,
		Generation: o.Generation, Revision: o.Revision, Tombstone: o.Tombstone,
		Protected: o.Protected, Sensitive: o.Sensitive,
	}
	var err error
	if e.Spec, err = o.Kind.Encode(o.Spec); err != nil {
		return e, fmt.Errorf("store %s: %w", o.Addr(), err)
	}
	if o.Applied == cty.NilVal {
		return e, nil
	}
	if e.AsApplied = o.Applied.RawEquals(o.Spec); e.AsApplied {
		return e, nil
	}
	if e.Applied, err = o.Kind.Encode(o.Applied); err != nil {
		return e, fmt.Errorf("store what was applied to %s: %w", o.Addr(), err)
	}
	return e, nil
}

// Object returns the object that was encoded.
func (e *ObjectJSON) Object(id string) (Object, error) {
	kind, ok := schema.Lookup(e.Kind)
	if !ok {
		return Object{}, fmt.Errorf("there is no kind %q: %w", e.Kind, ErrNewer)
	}
	o := Object{
		ID: id, Kind: kind, Applied: cty.NilVal, Address: e.Address, Stack: e.Stack, Generation: e.Generation,
		Revision: e.Revision, Tombstone: e.Tombstone, Protected: e.Protected, Sensitive: e.Sensitive,
	}
	var err error
	if o.Spec, err = kind.Decode(e.Spec); err != nil {
		return o, err
	}
	switch {
	case e.AsApplied:
		o.Applied = o.Spec
	case e.Applied != nil:
		o.Applied, err = kind.Decode(e.Applied)
	}
	return o, err
}

package store

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// KeptOutput is an output as a store keeps it. The Value of a sensitive one is its fingerprint, and Sealed
// has what stands behind it.
type KeptOutput struct {
	schema.Output
	Sealed Sealed
}

// typed is a value with its type, as JSON.
type typed struct {
	Type  json.RawMessage `json:"type"`
	Value json.RawMessage `json:"value"`
}

// EncodeOutput returns the type and the value of an output as JSON.
func EncodeOutput(o schema.Output) (ofType, value []byte, err error) {
	if o.Value == cty.NilVal || !o.Value.IsWhollyKnown() || o.Value.ContainsMarked() {
		return nil, nil, fmt.Errorf("store output %s: its value is not known, or is marked", o.Name)
	}
	if ofType, err = ctyjson.MarshalType(o.Value.Type()); err != nil {
		return nil, nil, fmt.Errorf("store output %s: %w", o.Name, err)
	}
	if value, err = ctyjson.Marshal(o.Value, o.Value.Type()); err != nil {
		return nil, nil, fmt.Errorf("store output %s: %w", o.Name, err)
	}
	return ofType, value, nil
}

// DecodeOutput reads what EncodeOutput wrote.
func DecodeOutput(name string, ofType, value []byte) (cty.Value, error) {
	t, err := ctyjson.UnmarshalType(ofType)
	if err != nil {
		return cty.NilVal, fmt.Errorf("read output %s: %w", name, err)
	}
	v, err := ctyjson.Unmarshal(value, t)
	if err != nil {
		return cty.NilVal, fmt.Errorf("read output %s: %w", name, err)
	}
	return v, nil
}

func outputKey(stack, name string) SecretKey { return SecretKey{Object: "output/" + stack, Attr: name} }

func encodeTyped(o schema.Output) ([]byte, error) {
	ofType, value, err := EncodeOutput(o)
	if err != nil {
		return nil, err
	}
	return json.Marshal(typed{ofType, value})
}

// FingerprintOutput stands for the value of a sensitive output of a stack, like Fingerprint for a secret.
func (s *Sealer) FingerprintOutput(stack string, o schema.Output) (string, error) {
	raw, err := encodeTyped(o)
	if err != nil {
		return "", err
	}
	return s.Fingerprint(outputKey(stack, o.Name), raw), nil
}

// KeepOutputs returns the change's outputs as they are kept, by name; nil when it has none.
func (c Change) KeepOutputs(s *Sealer) ([]KeptOutput, error) {
	if c.Outputs == nil {
		return nil, nil
	}
	if c.Stack.Name == "" {
		return nil, errors.New("commit: there are outputs, but no stack to keep them for")
	}
	kept := make([]KeptOutput, 0, len(c.Outputs))
	for _, o := range c.Outputs {
		k, err := keep(s, c.Stack.Name, o)
		if err != nil {
			return nil, err
		}
		kept = append(kept, k)
	}
	slices.SortFunc(kept, func(a, b KeptOutput) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(kept); i++ {
		if kept[i].Name == kept[i-1].Name {
			return nil, fmt.Errorf("commit: output %s is given twice", kept[i].Name)
		}
	}
	return kept, nil
}

func keep(s *Sealer, stack string, o schema.Output) (KeptOutput, error) {
	if !o.Sensitive {
		_, _, err := EncodeOutput(o)
		return KeptOutput{Output: o}, err
	}
	if s == nil {
		return KeptOutput{}, errors.New("commit: there are sensitive outputs, but no master key to seal them with")
	}
	raw, err := encodeTyped(o)
	if err != nil {
		return KeptOutput{}, err
	}
	key := outputKey(stack, o.Name)
	o.Value = cty.StringVal(s.Fingerprint(key, raw))
	return KeptOutput{Output: o, Sealed: s.Seal(key, raw)}, nil
}

// SameOutputs reports whether keeping a in place of b would change nothing. A nil a keeps b.
func SameOutputs(a, b []KeptOutput) bool {
	return a == nil || slices.EqualFunc(a, b, func(a, b KeptOutput) bool { return SameOutput(a.Output, b.Output) })
}

// SameOutput compares outputs as snapshots have them.
func SameOutput(a, b schema.Output) bool {
	return a.Name == b.Name && a.Sensitive == b.Sensitive && a.Description == b.Description && sameValue(a.Value, b.Value)
}

// Idle reports whether the change, whose outputs are those that are kept, has nothing to do for a stack
// known so. A change without outputs always has: its record.
func (c Change) Idle(known Stack) bool {
	return len(c.Writes) == 0 && len(c.Settle) == 0 && c.Outputs != nil && known == c.Stack
}

// ShownOutputs are kept outputs as snapshots have them.
func ShownOutputs(kept []KeptOutput) []schema.Output {
	shown := make([]schema.Output, len(kept))
	for i, k := range kept {
		shown[i] = k.Output
	}
	return shown
}

// OpenOutputs returns kept outputs with their values.
func OpenOutputs(s *Sealer, stack string, kept []KeptOutput) ([]schema.Output, error) {
	open := ShownOutputs(kept)
	for i, k := range kept {
		if !k.Sensitive {
			continue
		}
		if s == nil {
			return nil, fmt.Errorf("read output %s: it is sensitive, and there is no master key", k.Name)
		}
		raw, err := s.Open(outputKey(stack, k.Name), k.Sealed)
		if err != nil {
			return nil, fmt.Errorf("read output %s: %w", k.Name, err)
		}
		var v typed
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("read output %s: %w", k.Name, err)
		}
		if open[i].Value, err = DecodeOutput(k.Name, v.Type, v.Value); err != nil {
			return nil, err
		}
	}
	return open, nil
}

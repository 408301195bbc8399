package store

import (
	"fmt"
	"time"

	"github.com/qod-io/qod/schema"
)

// SnapshotJSON is a snapshot on its way from one process to another of the same version: objects, stacks, outputs and
// losses, and the commits that led to it where Known says so. Nothing sealed is in it.
type SnapshotJSON struct {
	Revision Revision                `json:"revision"`
	Objects  []snapshotObject        `json:"objects"`
	Stacks   map[string]string       `json:"stacks"` // their lineages
	Outputs  map[string][]outputJSON `json:"outputs"`
	Lost     map[string][]Lost       `json:"lost,omitempty"`
	Known    bool                    `json:"history"`
	Applies  []applyJSON             `json:"applies,omitempty"`
}

type snapshotObject struct {
	ID string `json:"id"`
	ObjectJSON
	Status Status `json:"status"`
}

// outputJSON is an output as snapshots have it: the value of a sensitive one is its fingerprint.
type outputJSON struct {
	Name string `json:"name"`
	typed
	Sensitive   bool   `json:"sensitive,omitempty"`
	Description string `json:"description,omitempty"`
}

type applyJSON struct {
	Revision Revision               `json:"revision"`
	At       time.Time              `json:"at"`
	By       string                 `json:"by"`
	From     string                 `json:"from"`
	Stack    string                 `json:"stack"`
	PlanID   string                 `json:"plan_id"`
	Note     string                 `json:"note"`
	Before   map[string]*ObjectJSON `json:"before"`
	Outputs  *[]outputJSON          `json:"outputs,omitempty"`
}

// EncodeSnapshot returns a snapshot, and the commits up to it, newest first: nil stands for commits that are not to be
// known.
func EncodeSnapshot(snap *Snapshot, applies []Apply) (*SnapshotJSON, error) {
	out := &SnapshotJSON{
		Revision: snap.Revision, Objects: make([]snapshotObject, len(snap.Objects)), Stacks: map[string]string{},
		Outputs: map[string][]outputJSON{}, Lost: snap.Lost, Known: applies != nil,
	}
	var err error
	for i, o := range snap.Objects {
		out.Objects[i] = snapshotObject{ID: o.ID, Status: o.Status}
		if out.Objects[i].ObjectJSON, err = EncodeObject(o); err != nil {
			return nil, err
		}
	}
	for name, s := range snap.Stacks {
		out.Stacks[name] = s.Lineage
	}
	for stack, outputs := range snap.Outputs {
		if out.Outputs[stack], err = encodeOutputs(outputs); err != nil {
			return nil, err
		}
	}
	for _, a := range applies {
		e, err := encodeApply(a)
		if err != nil {
			return nil, err
		}
		out.Applies = append(out.Applies, e)
	}
	return out, nil
}

func encodeOutputs(outputs []schema.Output) ([]outputJSON, error) {
	out := make([]outputJSON, len(outputs))
	for i, o := range outputs {
		out[i] = outputJSON{Name: o.Name, Sensitive: o.Sensitive, Description: o.Description}
		ofType, value, err := EncodeOutput(o)
		if err != nil {
			return nil, err
		}
		out[i].typed = typed{ofType, value}
	}
	return out, nil
}

func encodeApply(a Apply) (applyJSON, error) {
	out := applyJSON{
		Revision: a.Revision, At: a.At, By: a.By, From: a.From, Stack: a.Stack, PlanID: a.PlanID, Note: a.Note,
		Before: make(map[string]*ObjectJSON, len(a.Before)),
	}
	for id, o := range a.Before {
		out.Before[id] = nil
		if o == nil {
			continue
		}
		e, err := EncodeObject(*o)
		if err != nil {
			return out, err
		}
		out.Before[id] = &e
	}
	if a.Outputs == nil {
		return out, nil
	}
	outputs, err := encodeOutputs(a.Outputs)
	out.Outputs = &outputs
	return out, err
}

// Decode returns what was encoded. The commits are nil where they are not to be known.
func (s *SnapshotJSON) Decode() (*Snapshot, []Apply, error) {
	snap := &Snapshot{
		Revision: s.Revision, Objects: make([]Object, len(s.Objects)), Stacks: map[string]Stack{},
		Outputs: map[string][]schema.Output{}, Lost: s.Lost,
	}
	var err error
	for i := range s.Objects {
		e := &s.Objects[i]
		if snap.Objects[i], err = e.Object(e.ID); err != nil {
			return nil, nil, fmt.Errorf("read object %s: %w", e.ID, err)
		}
		snap.Objects[i].Status = e.Status
	}
	for name, lineage := range s.Stacks {
		snap.Stacks[name] = Stack{Name: name, Lineage: lineage}
	}
	for stack, outputs := range s.Outputs {
		if snap.Outputs[stack], err = decodeOutputs(outputs); err != nil {
			return nil, nil, err
		}
	}
	if !s.Known {
		return snap, nil, nil
	}
	applies := make([]Apply, len(s.Applies))
	for i := range s.Applies {
		if applies[i], err = s.Applies[i].apply(); err != nil {
			return nil, nil, err
		}
	}
	return snap, applies, nil
}

func decodeOutputs(in []outputJSON) ([]schema.Output, error) {
	out := make([]schema.Output, len(in))
	for i, o := range in {
		value, err := DecodeOutput(o.Name, o.Type, o.Value)
		if err != nil {
			return nil, err
		}
		out[i] = schema.Output{Name: o.Name, Value: value, Sensitive: o.Sensitive, Description: o.Description}
	}
	return out, nil
}

func (a *applyJSON) apply() (Apply, error) {
	out := Apply{
		Revision: a.Revision, At: a.At, By: a.By, From: a.From, Stack: a.Stack, PlanID: a.PlanID, Note: a.Note,
		Before: make(map[string]*Object, len(a.Before)),
	}
	for id, e := range a.Before {
		out.Before[id] = nil
		if e == nil {
			continue
		}
		o, err := e.Object(id)
		if err != nil {
			return out, fmt.Errorf("read history of object %s: %w", id, err)
		}
		out.Before[id] = &o
	}
	if a.Outputs == nil {
		return out, nil
	}
	var err error
	out.Outputs, err = decodeOutputs(*a.Outputs)
	return out, err
}

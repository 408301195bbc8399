package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

const (
	allOutputs = `SELECT stack, name, type, value, sealed, sensitive, description FROM qodstate_output ORDER BY stack, name`

	stackOutputs = `SELECT stack, name, type, value, sealed, sensitive, description FROM qodstate_output
WHERE stack = $1 ORDER BY name`

	deleteOutputs = `DELETE FROM qodstate_output WHERE stack = $1`

	putOutput = `INSERT INTO qodstate_output (stack, name, type, value, sealed, sensitive, description)
VALUES ($1, $2, $3::text::json, $4::text::json, $5, $6, $7)`
)

// outputRow is an output with the stack that has it.
type outputRow struct {
	stack string
	store.KeptOutput
}

func scanOutput(row pgx.CollectableRow) (outputRow, error) {
	var o outputRow
	var ofType, value, sealed []byte
	err := row.Scan(&o.stack, &o.Name, &ofType, &value, &sealed, &o.Sensitive, &o.Description)
	if err != nil {
		return o, err
	}
	o.Sealed = sealed
	o.Value, err = store.DecodeOutput(o.Name, ofType, value)
	return o, err
}

// StackOutputs implements store.Applies.
func (s *Store) StackOutputs(ctx context.Context, stack string) ([]schema.Output, error) {
	var kept []store.KeptOutput
	err := s.read(ctx, "read outputs", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, stackOutputs, stack)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, scanOutput)
		kept = make([]store.KeptOutput, len(all))
		for i, o := range all {
			kept[i] = o.KeptOutput
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return store.OpenOutputs(s.sealer, stack, kept)
}

// queueOutputs replaces the outputs of the stack where they differ.
func (a *apply) queueOutputs(batch *pgx.Batch) error {
	if store.SameOutputs(a.outputs, a.kept) {
		return nil
	}
	batch.Queue(deleteOutputs, a.change.Stack.Name)
	for _, o := range a.outputs {
		ofType, value, err := store.EncodeOutput(o.Output)
		if err != nil {
			return err
		}
		batch.Queue(putOutput, a.change.Stack.Name, o.Name, string(ofType), string(value), []byte(o.Sealed), o.Sensitive, o.Description)
	}
	return nil
}

// encodedOutput is an output in the history. Of a sensitive one there is only the fingerprint.
type encodedOutput struct {
	Name        string          `json:"name"`
	Type        json.RawMessage `json:"type"`
	Value       json.RawMessage `json:"value"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Description string          `json:"description,omitempty"`
}

// previousOutputs is what the record of the commit says of them: nil when they stay as they are.
func (a *apply) previousOutputs() (*string, error) {
	if store.SameOutputs(a.outputs, a.kept) {
		return nil, nil
	}
	previous := make([]encodedOutput, len(a.kept))
	for i, o := range a.kept {
		ofType, value, err := store.EncodeOutput(o.Output)
		if err != nil {
			return nil, err
		}
		previous[i] = encodedOutput{o.Name, ofType, value, o.Sensitive, o.Description}
	}
	raw, err := json.Marshal(previous)
	text := string(raw)
	return &text, err
}

func decodePreviousOutputs(raw []byte) ([]schema.Output, error) {
	if raw == nil {
		return nil, nil
	}
	var previous []encodedOutput
	if err := json.Unmarshal(raw, &previous); err != nil {
		return nil, fmt.Errorf("read history of outputs: %w", err)
	}
	outputs := make([]schema.Output, len(previous))
	for i, o := range previous {
		v, err := store.DecodeOutput(o.Name, o.Type, o.Value)
		if err != nil {
			return nil, fmt.Errorf("read history of outputs: %w", err)
		}
		outputs[i] = schema.Output{Name: o.Name, Value: v, Sensitive: o.Sensitive, Description: o.Description}
	}
	return outputs, nil
}

// encodeNames returns the names as a JSON array.
func encodeNames(names []string) string {
	if len(names) == 0 {
		return "[]"
	}
	raw, _ := json.Marshal(names) // strings always encode
	return string(raw)
}

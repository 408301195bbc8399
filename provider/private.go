package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// marks are what Terraform keeps beside the state of a resource, for the provider alone.
type marks interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

const (
	markSeen     = "seen"
	markImported = "imported"
)

// seen is the revision of the object that the state is of.
type seen struct {
	Revision int64 `json:"revision"`
}

// imported says whom the object was imported from.
type imported struct {
	From string `json:"from"`
	Done bool   `json:"done"` // it was taken over; a later owner is another matter
}

func seenOf(ctx context.Context, m marks) seen {
	var s seen
	_ = getMark(ctx, m, markSeen, &s) // without one any revision will do
	return s
}

// mayTake reports whether an import lets the resource have what belongs to that stack.
func mayTake(ctx context.Context, m marks, stack string) bool {
	var i imported
	return getMark(ctx, m, markImported, &i) && !i.Done && i.From == stack
}

func getMark(ctx context.Context, m marks, key string, into any) bool {
	raw, diags := m.GetKey(ctx, key)
	return !diags.HasError() && len(raw) > 0 && json.Unmarshal(raw, into) == nil
}

func setMark(ctx context.Context, m marks, key string, v any) diag.Diagnostics {
	raw, err := json.Marshal(v)
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("The provider is broken", err.Error())}
	}
	return m.SetKey(ctx, key, raw)
}

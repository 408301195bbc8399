package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// overTheWire is a configuration as another process reads it.
func overTheWire(t testing.TB, d schema.Desired) schema.Desired {
	t.Helper()
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var read schema.Desired
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// checkSent wants a plan to print the same where it was sent to, and to show nothing on the way.
func checkSent(t testing.TB, p *engine.Plan, document []byte) {
	t.Helper()
	raw, err := plan.Sent(p.Plan)
	if err != nil {
		t.Fatal(err)
	}
	checkHidden(t, "the plan that is sent", string(raw))
	read, err := plan.Received(raw)
	if err != nil {
		t.Fatal(err)
	}
	again, err := plan.JSON(read, "dev", nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the plan prints otherwise where it was sent to", map[string]string{"text": text(p), "JSON": string(document)},
		map[string]string{"text": text(&engine.Plan{Plan: read}), "JSON": string(again)})
}

// checkPast wants the past to read the same where it was sent to, and to show nothing on the way.
func (r *realm) checkPast(snap *store.Snapshot, applies []store.Apply) {
	r.Helper()
	part, some, err := history.Withhold(snap, applies, newSealer(r))
	if err != nil {
		r.Fatal(err)
	}
	sent, err := store.EncodeSnapshot(part, some)
	if err != nil {
		r.Fatal(err)
	}
	raw, err := json.Marshal(sent)
	if err != nil {
		r.Fatal(err)
	}
	checkHidden(r, "the past that is sent", string(raw))
	var read store.SnapshotJSON
	if err := json.Unmarshal(raw, &read); err != nil {
		r.Fatal(err)
	}
	there, commits, err := read.Decode()
	if err != nil {
		r.Fatal(err)
	}
	same(r, "the past reads otherwise where it was sent to", r.told(snap, applies), r.told(there, commits))
}

// told is what is told of a past, by revision.
func (r *realm) told(snap *store.Snapshot, applies []store.Apply) map[string]string {
	r.Helper()
	out := map[string]string{}
	for _, s := range history.Steps(snap, applies) {
		text := &strings.Builder{}
		if err := (history.Text{}).Write(text, s.Changes, s.Outputs); err != nil {
			r.Fatal(err)
		}
		out[fmt.Sprint(s.Revision)] = text.String() + s.Note
	}
	return out
}

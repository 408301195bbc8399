package main

import (
	"strings"
	"testing"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
)

func TestAccountOf(t *testing.T) {
	m := store.NewMemory(nil)
	var writes []store.Write
	for kind, specs := range map[string][]string{
		"tenant": {`{"name":"acme"}`, `{"name":"zeta"}`},
		"user": {`{"tenant":"acme","name":"ana"}`, `{"tenant":"zeta","name":"ana"}`, `{"tenant":"acme","name":"Ann@corp.com"}`,
			`{"name":"root","system":true}`},
	} {
		for _, spec := range specs {
			writes = append(writes, storetest.New(t, kind, spec))
		}
	}
	if _, err := m.Commit(t.Context(), store.Change{Writes: writes}); err != nil {
		t.Fatal(err)
	}
	snap, err := m.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ arg, tenant, want, err string }{
		{"acme/ana", "", "acme/ana", ""},
		{"ana", "ZETA", "zeta/ana", ""},
		{"ANN@corp.com", "", "acme/Ann@corp.com", ""},
		{"root", "", "root", ""},
		{"ana", "", "", "more than one user ana: name one of acme/ana, zeta/ana"},
		{"root", "acme", "", "there is no user acme/root"},
		{"nobody", "", "", "there is no user nobody"},
	} {
		u, err := accountOf(snap, tc.arg, tc.tenant)
		switch {
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
			t.Errorf("%s: %v, want %q", tc.arg, err, tc.err)
		case tc.err == "" && (err != nil || u.String() != tc.want || u.id == ""):
			t.Errorf("%s: %v, %v, want %s", tc.arg, u, err, tc.want)
		}
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0d": 0, "12h": 12 * time.Hour, "1m30s": 90 * time.Second} {
		if at, err := sinceOf(text, now); err != nil || !at.Equal(now.Add(-want)) {
			t.Errorf("since %s: %s, %v", text, at, err)
		}
	}
	if at, err := sinceOf("x", now); err == nil {
		t.Errorf("x: %s", at)
	}
	if at, err := sinceOf("2026-01-30T08:00:00Z", now); err != nil || at.Hour() != 8 {
		t.Errorf("a moment: %s, %v", at, err)
	}
	if at, err := sinceOf("", now); err != nil || !at.IsZero() {
		t.Errorf("none: %s, %v", at, err)
	}
}

func TestPlainText(t *testing.T) {
	if got := plainText("a\x1b[31m\nü\u202e雪"); got != "a?[31m?ü?雪" {
		t.Errorf("plainText = %q", got)
	}
}

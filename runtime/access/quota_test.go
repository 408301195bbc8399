package access

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestQuota(t *testing.T) {
	q := Quota{Most: 2}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []bool{true, true, false, false} {
		if got := q.Take("a", now); got != want {
			t.Errorf("take %d: %t", i, got)
		}
	}
	if !q.Take("b", now) || !q.Take("a", now.Add(time.Minute)) {
		t.Error("another key, or another minute, has no room")
	}
	for i := range 2 * quotaKeys {
		q.Take(fmt.Sprint(i), now)
	}
	if len(q.used) > quotaKeys {
		t.Errorf("%d keys are remembered", len(q.used))
	}
}

func TestPlain(t *testing.T) {
	tests := map[string]struct {
		name string
		want bool
	}{
		"name":         {"sales_2", true},
		"e-mail":       {"ana.o'brien+x@acme.example", true},
		"of a tongue":  {"müller", true},
		"none":         {"", true},
		"control":      {"a\x1b[31m", false},
		"NUL":          {"a\x00", false},
		"not UTF-8":    {"a\xff", false},
		"markup":       {"<b>", false},
		"space":        {"a b", false},
		"hidden signs": {"a\u202eb", false},
		"too long":     {strings.Repeat("x", maxName+1), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Plain(tc.name); got != tc.want {
				t.Errorf("Plain(%q) = %t", tc.name, got)
			}
		})
	}
}

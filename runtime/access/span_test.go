package access

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0d": 0, "12h": 12 * time.Hour, "1m30s": 90 * time.Second} {
		if got, err := Span(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-5m", "1.5d", "x", "99999999999d"} {
		if got, err := Span(text); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}

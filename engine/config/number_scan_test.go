package config

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// What may be a number of too many digits is what a regular expression says, which takes ten times as long.
func TestMayBeLong(t *testing.T) {
	long := regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{4}|[0-9]{1000}`)
	parts := []string{"1", "12", "123", "1234", ".", "e", "E", "+", "-", " ", "x", strings.Repeat("9", 990), strings.Repeat("0", 1000)}
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 100 { // the expression is slow
		text := ""
		for range random.IntN(8) {
			text += parts[random.IntN(len(parts))]
		}
		want := long.MatchString(text)
		if want {
			found++
		}
		if got := mayBeLong([]byte(text)); got != want {
			t.Fatalf("%v for %.1100q, want %v", got, text, want)
		}
	}
	if found < 5 {
		t.Errorf("only %d texts had such a number", found)
	}
}

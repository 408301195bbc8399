package export_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// choices are random numbers: those of a fuzzer first, then those that follow from them.
type choices struct {
	data []byte
	rest *rand.PCG
}

func newChoices(data []byte) *choices {
	var seed [8]byte
	copy(seed[:], data)
	return &choices{data, rand.NewPCG(binary.LittleEndian.Uint64(seed[:]), uint64(len(data)))}
}

// Uint64 has its byte at both ends: what is chosen of few goes by the high bits or by the low ones.
func (c *choices) Uint64() uint64 {
	if len(c.data) == 0 {
		return c.rest.Uint64()
	}
	b := uint64(c.data[0])
	c.data = c.data[1:]
	return b<<56 | b<<24 | b
}

// FuzzExport exports objects of every kind in which any text may stand: what comes out evaluates to them, and
// is formatted.
func FuzzExport(f *testing.F) {
	for i, text := range []string{
		"a.b", "\"q\"", "@", "ann@corp.com", "${x}", "%{if true}", "$${", "%%{", "two\nlines", "\r\n", "naïve", "e\u0301", "日本", "\u2028", "\\", "\\u0041",
		"~}", "${\"", "}", "<<EOT\nEOT\n", "//", "/* */", "#", "\x00", "\x7f", "\ufeff", "𝒳", "1/0", "1e9", "each.key", " a", "a ",
	} {
		f.Add([]byte{byte(i), byte(37 * i), byte(91 * i)}, text, "x"+text+"@corp.com")
	}
	f.Fuzz(func(t *testing.T, data []byte, text, other string) {
		if !utf8.ValidString(text) || !utf8.ValidString(other) {
			t.Skip("no text of a configuration")
		}
		g := newGenerator(newChoices(data), text, other, text, other)
		checkExport(t, g.random(1+g.IntN(3)), g.outputs())
	})
}

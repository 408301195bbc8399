package config

import (
	"bytes"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

const (
	maxSnippetLines = 6
	maskText        = "(sensitive)"
)

// sourceLine is a line of source as it is printed: text, and carets under the place meant.
type sourceLine struct {
	number            int
	text, pad, carets string
}

// snippet returns the lines of subject with masks in place of what must not be shown.
func snippet(src []byte, subject hcl.Range, masks []hcl.Range) []sourceLine {
	from, to := subject.Start.Byte, subject.End.Byte
	if from > len(src) {
		return nil
	}
	to = max(min(to, len(src)), from)
	var lines []sourceLine
	start := bytes.LastIndexByte(src[:from], '\n') + 1
	for number := subject.Start.Line; start <= to; number++ {
		end := len(src)
		if i := bytes.IndexByte(src[start:], '\n'); i >= 0 {
			end = start + i
		}
		if len(lines) == maxSnippetLines {
			return append(lines, sourceLine{number: number, text: "..."})
		}
		if number == subject.Start.Line || to > start {
			lines = append(lines, underlined(src, number, start, end, from, to, masks))
		}
		start = end + 1
	}
	return lines
}

// underlined renders the line src[start:end] with src[from:to] underlined.
func underlined(src []byte, number, start, end, from, to int, masks []hcl.Range) sourceLine {
	from, to = widen(max(from, start), min(to, end), masks)
	from, to = max(from, start), min(to, end)
	if from == start { // the indentation of further lines
		from += len(src[from:to]) - len(bytes.TrimLeft(src[from:to], " \t"))
	}
	before, meant := maskedText(src, start, from, masks), maskedText(src, from, to, masks)
	line := sourceLine{number: number, text: strings.TrimRight(before+meant+maskedText(src, to, end, masks), "\r")}
	line.pad = strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, before)
	line.carets = strings.Repeat("^", max(1, len([]rune(strings.TrimRight(meant, "\r")))))
	return line
}

// widen moves the ends of a place that lie inside a mask to the mask's ends.
func widen(from, to int, masks []hcl.Range) (int, int) {
	for _, m := range masks {
		if m.Start.Byte < from && from < m.End.Byte {
			from = m.Start.Byte
		}
		if m.Start.Byte < to && to < m.End.Byte {
			to = m.End.Byte
		}
	}
	return from, to
}

// maskedText is src[from:to] with each masked stretch replaced. Its length says nothing of theirs.
func maskedText(src []byte, from, to int, masks []hcl.Range) string {
	var b strings.Builder
	inside := false
	for i := from; i < to; i++ {
		masked := false
		for _, m := range masks {
			masked = masked || m.Start.Byte <= i && i < m.End.Byte
		}
		switch {
		case !masked:
			b.WriteByte(src[i])
		case !inside:
			b.WriteString(maskText)
		}
		inside = masked
	}
	return b.String()
}

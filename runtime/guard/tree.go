package guard

import (
	"encoding/json"
	"strings"
)

// reader reads JSON from left to right without building anything, since the tree of a long statement
// is some ten times as long as its text. It is strict: what it does not expect makes it fail for good.
type reader struct {
	text string
	pos  int
	bad  bool
}

// peek returns the byte that comes next, 0 at the end and after a failure.
func (r *reader) peek() byte {
	if r.bad || r.pos >= len(r.text) {
		return 0
	}
	return r.text[r.pos]
}

// accept goes over c if it comes next.
func (r *reader) accept(c byte) bool {
	if r.peek() != c || c == 0 {
		return false
	}
	r.pos++
	return true
}

func (r *reader) expect(c byte) {
	if !r.accept(c) {
		r.bad = true
	}
}

// str reads a string.
func (r *reader) str() string {
	start := r.pos
	if !r.skipString() {
		r.bad = true
		return ""
	}
	raw := r.text[start:r.pos]
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		r.bad = true
	}
	return s
}

// skipString goes over a string and reports whether there was one.
func (r *reader) skipString() bool {
	if !r.accept('"') {
		return false
	}
	for r.pos < len(r.text) {
		switch r.text[r.pos] {
		case '"':
			r.pos++
			return true
		case '\\':
			r.pos++
		}
		r.pos++
	}
	return false
}

// atom goes over a number, true, false, null, or the Infinity and NaN that DuckDB writes.
func (r *reader) atom() string {
	start := r.pos
	for r.pos < len(r.text) && strings.IndexByte(`,]}"[{: `, r.text[r.pos]) < 0 {
		r.pos++
	}
	if r.pos == start {
		r.bad = true
	}
	return r.text[start:r.pos]
}

// skip goes over any value.
func (r *reader) skip() {
	depth := 0
	for !r.bad {
		switch r.peek() {
		case '{', '[':
			depth++
			r.pos++
		case '}', ']':
			depth--
			r.pos++
		case '"':
			r.bad = !r.skipString()
		case ',', ':':
			if depth == 0 {
				r.bad = true
			}
			r.pos++
			continue
		case 0:
			r.bad = true
		default:
			r.atom()
		}
		if depth <= 0 {
			r.bad = r.bad || depth < 0
			return
		}
	}
}

// fields calls f with the name of each field of an object; f reads the value.
func (r *reader) fields(f func(key string)) {
	r.expect('{')
	if r.accept('}') {
		return
	}
	for !r.bad {
		key := r.str()
		r.expect(':')
		f(key)
		if r.accept('}') {
			return
		}
		r.expect(',')
	}
}

// elements calls f for each element of an array; f reads it.
func (r *reader) elements(f func()) {
	r.expect('[')
	if r.accept(']') {
		return
	}
	for !r.bad {
		f()
		if r.accept(']') {
			return
		}
		r.expect(',')
	}
}

package guard

import (
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

// reference is a place of a statement that names a table, a view or a schema.
type reference struct {
	table Table
	at    int    // where its name begins in the statement; -1 where that is not known
	alias string // the name that it has in the query instead of its own
	past  bool   // it has an AT clause
	fixed bool   // it cannot be a common table expression
	shown bool   // DESCRIBE, SUMMARIZE or SHOW is about it
	head  bool   // it stands in the head of a statement, not in a query
	// lowest and highest are the depths of the SELECT lists in which it stands inside an expression
	// without an alias, so that it is in the generated name of a column; 0 if there is none.
	lowest, highest int
}

// unknownDepth is the depth of a SELECT list whose names cannot be kept out of the result's values.
const unknownDepth = 1 << 20

func (r *reference) named(depth int) {
	if r.lowest == 0 || depth < r.lowest {
		r.lowest = depth
	}
	r.highest = max(r.highest, depth)
}

// column is a place of a statement that names a column with a qualifier.
type column struct {
	names []string
	at    int
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

func (s span) holds(at int) bool { return s.from <= at && at < s.to }

// change is what has to be known of a statement that changes something to apply policies to its target.
type change struct {
	target   bool   // the first reference is the table that is changed
	alias    string // of the target
	reads    bool   // it reads the target
	conflict bool   // INSERT may replace or update rows
	rename   string // the new name of the target
	where    span   // the condition; an empty one is where it would have to stand
	targets  span   // what RETURNING says
}

// composition is a text put together from parts of a statement and words of the guard's own.
type composition struct {
	b        strings.Builder
	segments []segment
}

// segment says that the bytes from at on are those of the statement from source on.
type segment struct{ at, source, size int }

// whole is a composition that is a part of the text as it is.
func whole(text string, s span) *composition {
	c := &composition{}
	c.copy(text, s)
	return c
}

func (c *composition) say(words string) { c.b.WriteString(words) }

func (c *composition) copy(text string, s span) {
	if s.empty() {
		return
	}
	c.segments = append(c.segments, segment{at: c.b.Len(), source: s.from, size: s.to - s.from})
	c.b.WriteString(text[s.from:s.to])
}

// origin returns the offset in the statement of an offset in the composition, -1 if it is not of it.
func (c *composition) origin(at int) int {
	for _, s := range c.segments {
		if s.at <= at && at < s.at+s.size {
			return s.source + at - s.at
		}
	}
	return -1
}

// piece is an expression or query of a statement and what is put around it.
type piece struct {
	before string
	span   span
	after  string
}

func (c *composition) piece(text string, p piece) {
	c.say(p.before)
	c.copy(text, p.span)
	c.say(p.after)
}

// words are the tokens of a statement, to be found by their offsets.
type words []sqltext.Token

// at returns the index of the token that begins at the offset, or -1.
func (w words) at(offset int) int {
	lo, hi := 0, len(w)
	for lo < hi {
		if mid := (lo + hi) / 2; w[mid].Start < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(w) || w[lo].Start != offset {
		return -1
	}
	return lo
}

// name returns the indexes of the first token of the qualified name at the offset and of the one after
// it, if the tokens there are exactly that name and no longer one.
func (w words) name(offset int, parts []string) (first, end int, ok bool) {
	first, end, ok = w.prefix(offset, parts)
	return first, end, ok && (end == len(w) || !w[end].IsPunct("."))
}

// prefix is name for what may go on, as a column does in column.function().
func (w words) prefix(offset int, parts []string) (first, end int, ok bool) {
	first = w.at(offset)
	if first < 0 || first+2*len(parts)-1 > len(w) {
		return 0, 0, false
	}
	i := first
	for n, part := range parts {
		if n > 0 {
			if !w[i].IsPunct(".") {
				return 0, 0, false
			}
			i++
		}
		if k := w[i].Kind; k != sqltext.Word && k != sqltext.Quoted || w[i].Name() != part {
			return 0, 0, false
		}
		i++
	}
	return first, i, true
}

// brackets returns the index after ( … ) that begins at i, or -1.
func (w words) brackets(i int) int {
	if i >= len(w) || !w[i].IsPunct("(") {
		return -1
	}
	depth := 0
	for ; i < len(w); i++ {
		if w[i].Kind == sqltext.Punct {
			depth += bracket(w[i])
		}
		if depth == 0 {
			return i + 1
		}
	}
	return -1
}

// quote returns the name in double quotes.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal returns the text as a string literal.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// written returns the parts of a table's name.
func (t Table) written() []string {
	var parts []string
	for _, part := range []string{t.Catalog, t.Schema, t.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

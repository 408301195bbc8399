package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// Formats reports whether a file of that name is one that Format is for: configuration, variables or policy.
func Formats(name string) bool {
	return IsConfig(name) || IsPolicy(name) || strings.HasSuffix(name, ".qodvars.hcl") || strings.HasSuffix(name, ".qodvars.json")
}

// Format returns the file in canonical style: aligned and indented, with at most one blank line between
// items, one between top-level blocks, no space at the end of lines and one newline at the end of the
// file. Only white space changes, and none inside strings; JSON keeps its order and its numbers. A file
// that does not parse is an error, and so is one that cannot be formatted without changing more.
func Format(name string, src []byte) ([]byte, hcl.Diagnostics) {
	if isJSON(name) {
		return formatJSON(name, src)
	}
	if _, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos); diags.HasErrors() {
		return nil, firstOfStrings(diags)
	}
	const most = 5 // each round sees the lines that the one before it made
	out := src
	for range most {
		next := arrange(name, hclwrite.Format(out))
		if bytes.Equal(next, out) {
			break
		}
		out = next
	}
	again := arrange(name, hclwrite.Format(out))
	if !bytes.Equal(again, out) || !slices.Equal(significant(name, src), significant(name, out)) {
		return nil, hcl.Diagnostics{failAt(hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos},
			"File not formatted", "Its layout has no stable form, so it is left as it is: write one item per line.")}
	}
	return out, nil
}

func formatJSON(name string, src []byte) ([]byte, hcl.Diagnostics) {
	if _, diags := hcljson.Parse(src, name); diags.HasErrors() {
		for _, d := range diags {
			if d.Summary == "Invalid JSON keyword" {
				d.Detail = "A string is written in double quotes." // and may be a secret
			}
		}
		return nil, diags
	}
	out := &bytes.Buffer{}
	if err := json.Indent(out, bytes.TrimSpace(src), "", "  "); err != nil {
		return nil, hcl.Diagnostics{failAt(hcl.Range{Filename: name, Start: hcl.InitialPos, End: hcl.InitialPos},
			"File is no JSON", "It cannot be formatted: %s.", err.Error())}
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// significant lists the tokens of a file but for newlines, comments without white space at the ends of
// their lines.
func significant(name string, src []byte) []string {
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	var out []string
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenEOF:
		case hclsyntax.TokenComment:
			out = append(out, string(trimLines(t.Bytes)))
		default:
			out = append(out, string(t.Bytes))
		}
	}
	return out
}

func trimLines(comment []byte) []byte {
	lines := bytes.Split(bytes.TrimRight(comment, "\r\n"), []byte("\n"))
	for i := range lines {
		lines[i] = bytes.TrimRight(lines[i], " \t\r")
	}
	return bytes.Join(lines, []byte("\n"))
}

// arrange decides about blank lines and the ends of lines. The source parses.
func arrange(name string, src []byte) []byte {
	file, _ := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	a := arranger{src: src, lineStart: true, ends: map[int]bool{}}
	for _, b := range file.Body.(*hclsyntax.Body).Blocks {
		a.ends[b.CloseBraceRange.Start.Byte] = true
	}
	for _, t := range tokens {
		a.add(t)
	}
	if !a.lineStart {
		a.out.WriteByte('\n')
	}
	return a.out.Bytes()
}

// arranger writes tokens with the space between them.
type arranger struct {
	src  []byte
	ends map[int]bool // where top-level blocks end
	out  bytes.Buffer

	at        int  // the end of the token before
	lineStart bool // nothing is on the line yet
	blank     bool // a blank line was met, or is wanted, before the next token
	opened    bool // the line before ended with an opening bracket
}

func (a *arranger) add(t hclsyntax.Token) {
	space := a.src[a.at:t.Range.Start.Byte]
	a.at = t.Range.End.Byte
	if t.Type == hclsyntax.TokenEOF {
		return
	}
	if t.Type == hclsyntax.TokenNewline {
		if a.lineStart {
			a.blank = true
			return
		}
		a.out.WriteByte('\n')
		a.lineStart = true
		return
	}
	if a.lineStart && a.blank && a.out.Len() > 0 && !a.opened && nesting(t.Type) >= 0 {
		a.out.WriteByte('\n')
	}
	if a.lineStart {
		a.blank = false
	}
	a.out.Write(space)
	a.opened = nesting(t.Type) > 0
	a.lineStart = false
	if t.Type != hclsyntax.TokenComment {
		a.out.Write(t.Bytes)
		a.blank = a.ends[t.Range.Start.Byte]
		return
	}
	a.out.Write(trimLines(t.Bytes))
	if bytes.HasSuffix(t.Bytes, []byte("\n")) {
		a.out.WriteByte('\n')
		a.lineStart = true
	}
}

// Masked returns the source of a file, for people to look at, without what may be a secret in it.
func Masked(name string, src []byte) []byte {
	c := &Config{root: &module{}}
	c.modules = []*module{c.root}
	hides := c.hides(name)
	m := masker{
		secrets: c.secretNames(), onlyTop: !isConfig(name), broken: !isJSON(name), // which variables are sensitive, other files may say
		hides:     func(name string) bool { return name == "default" || hides(name) },
		sensitive: mayBeSensitive,
	}
	m.run(src, name, nil)
	return []byte(maskedText(src, 0, len(src), m.masks))
}

package config

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/qod-io/qod/schema"
)

// Diagnostics returns what [WriteDiagnostics] prints in the form for programs, under the same conditions.
// The result is never nil.
func Diagnostics(diags hcl.Diagnostics, files map[string]*hcl.File) []schema.Diagnostic {
	out := []schema.Diagnostic{}
	for _, g := range consolidate(diags) {
		d := schema.Diagnostic{
			Severity: "error", Summary: g.Summary, Detail: g.Detail, Address: noteOf(g.Diagnostic), Repeated: g.again,
		}
		if g.Severity == hcl.DiagWarning {
			d.Severity = "warning"
		}
		if s := g.Subject; s != nil {
			file := files[s.Filename]
			d.Range = &schema.SourceRange{
				Filename: s.Filename, Start: position(file, s.Start), End: position(file, s.End),
			}
			d.Snippet = snippetOf(g.Diagnostic, file, files)
		}
		out = append(out, d)
	}
	return out
}

func snippetOf(d *hcl.Diagnostic, file *hcl.File, files map[string]*hcl.File) *schema.Snippet {
	if file == nil || file.Bytes == nil {
		return nil
	}
	var code []string
	for _, line := range snippet(file.Bytes, *d.Subject, masksOf(file)) {
		code = append(code, line.text)
	}
	return &schema.Snippet{
		Context: contextOf(file, d.Subject.Start.Byte), StartLine: d.Subject.Start.Line,
		Code: strings.Join(code, "\n"), Values: valuesOf(d, files),
	}
}

// position keeps a place from telling how long a secret is: where one begins earlier in the line, that is
// the place.
func position(file *hcl.File, pos hcl.Pos) schema.SourcePosition {
	out := schema.SourcePosition{Line: pos.Line, Column: pos.Column}
	if file == nil || pos.Byte > len(file.Bytes) {
		return out
	}
	start := bytes.LastIndexByte(file.Bytes[:pos.Byte], '\n') + 1
	first := pos.Byte
	for _, m := range masksOf(file) {
		if m.Start.Byte < pos.Byte && m.End.Byte > start {
			first = min(first, max(m.Start.Byte, start))
		}
	}
	if first < pos.Byte {
		out.Column = utf8.RuneCount(file.Bytes[start:first]) + 1
	}
	return out
}

// contextOf names the block at an offset of a file: pool "bi".
func contextOf(file *hcl.File, offset int) string {
	if nav, ok := file.Nav.(interface{ ContextString(int) string }); ok {
		return nav.ContextString(offset)
	}
	return ""
}

// valuesOf says what the variables of the expression are that a diagnostic is about.
func valuesOf(d *hcl.Diagnostic, files map[string]*hcl.File) []schema.SnippetValue {
	if d.Expression == nil || d.EvalContext == nil {
		return nil
	}
	var values []schema.SnippetValue
	for _, t := range d.Expression.Variables() {
		value, diags := t.TraverseAbs(d.EvalContext)
		if diags.HasErrors() && len(t) > 2 {
			t = t[:2]
			value, diags = t.TraverseAbs(d.EvalContext)
		}
		if diags.HasErrors() || !value.IsKnown() {
			continue
		}
		v := schema.SnippetValue{Traversal: traversalString(t), Statement: describe(value, inSecret(files, d.Expression.Range()))}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	slices.SortFunc(values, func(a, b schema.SnippetValue) int {
		return cmp.Or(strings.Compare(a.Traversal, b.Traversal), strings.Compare(a.Statement, b.Statement))
	})
	return values
}

package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// WriteDiagnostics prints diagnostics for people: what is wrong, where, the source with the place
// underlined, the values that the expression refers to, and the way out. Equal ones are printed once.
// Secrets are not shown, provided that files come from [Config.Files] or [Desired.Files]. With color
// it uses VT100 sequences. The error is that of w.
func WriteDiagnostics(w io.Writer, diags hcl.Diagnostics, files map[string]*hcl.File, color bool) error {
	r := renderer{files: files}
	if color {
		r.red, r.yellow, r.bold, r.dim, r.reset = "\x1b[1;31m", "\x1b[1;33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
	}
	for _, g := range consolidate(diags) {
		r.write(g)
	}
	_, err := io.WriteString(w, r.out.String())
	return err
}

// group is a diagnostic and how often it was met again.
type group struct {
	*hcl.Diagnostic
	again int
}

// consolidate joins equal diagnostics: a faulty line in a block with for_each is met once per object.
func consolidate(diags hcl.Diagnostics) []*group {
	var groups []*group
	known := map[problem]*group{}
	for _, d := range diags {
		p := problem{severity: d.Severity, summary: d.Summary, detail: d.Detail}
		if d.Subject != nil {
			p.placed, p.at = true, *d.Subject
		}
		if g, again := known[p]; again {
			g.again++
			continue
		}
		known[p] = &group{Diagnostic: d}
		groups = append(groups, known[p])
	}
	return groups
}

// problem is what equal diagnostics have in common.
type problem struct {
	severity        hcl.DiagnosticSeverity
	summary, detail string
	placed          bool
	at              hcl.Range
}

// renderer writes to memory, which does not fail.
type renderer struct {
	out                           strings.Builder
	files                         map[string]*hcl.File
	red, yellow, bold, dim, reset string
}

func (r *renderer) printf(format string, args ...any) {
	fmt.Fprintf(&r.out, format, args...)
}

func (r *renderer) write(g *group) {
	d := g.Diagnostic
	head, color := "Error", r.red
	if d.Severity == hcl.DiagWarning {
		head, color = "Warning", r.yellow
	}
	r.printf("%s%s: %s%s%s%s\n", color, head, r.reset, r.bold, d.Summary, r.reset)
	if d.Subject != nil {
		r.printf("\n")
		r.place(d)
		r.values(d)
	}
	if d.Detail != "" {
		r.printf("\n%s\n", strings.TrimRight(d.Detail, "\n"))
	}
	if g.again > 0 {
		r.printf("\n(%d more like this at the same place.)\n", g.again)
	}
	r.printf("\n")
}

// place prints the file, line and block, and the source.
func (r *renderer) place(d *hcl.Diagnostic) {
	if address := noteOf(d); address != "" {
		r.printf("  with %s,\n", address)
	}
	s := d.Subject
	file := r.files[s.Filename]
	if file == nil || file.Bytes == nil {
		r.printf("  on %s line %d\n", s.Filename, s.Start.Line)
		return
	}
	where := contextOf(file, s.Start.Byte)
	if where != "" {
		where = ", in " + where
	}
	r.printf("  on %s line %d%s:\n", s.Filename, s.Start.Line, where)
	for _, line := range snippet(file.Bytes, *s, masksOf(file)) {
		r.printf("%4d: %s\n", line.number, line.text)
		if line.carets != "" {
			r.printf("      %s%s%s%s\n", line.pad, r.red, line.carets, r.reset)
		}
	}
}

func masksOf(file *hcl.File) []hcl.Range {
	if nav, ok := file.Nav.(*navigation); ok {
		masks, _ := nav.find()
		return masks
	}
	return nil
}

func noteOf(d *hcl.Diagnostic) string {
	note, _ := hcl.DiagnosticExtra[instanceNote](d)
	return note.address
}

// values prints what the variables of the expression are.
func (r *renderer) values(d *hcl.Diagnostic) {
	for i, v := range valuesOf(d, r.files) {
		if i == 0 {
			r.printf("    %s├────────────────%s\n", r.dim, r.reset)
		}
		r.printf("    %s│%s %s %s\n", r.dim, r.reset, v.Traversal, v.Statement)
	}
}

func describe(v cty.Value, secret bool) string {
	if secret && !v.Type().IsObjectType() || isSensitive(v) {
		return "has a sensitive value"
	}
	return "is " + valueString(v)
}

// valueString prints a value for people: in full when it is short, else what kind of thing it is.
func valueString(v cty.Value) string {
	if isSensitive(v) {
		return "a sensitive value"
	}
	v, _ = v.Unmark()
	t := v.Type()
	switch {
	case v == cty.NilVal || v.IsNull():
		return "null"
	case !v.IsKnown():
		return "not known"
	case t == cty.Bool:
		return fmt.Sprint(v.True())
	case t == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case t == cty.String:
		return quoted(v.AsString())
	case t.IsObjectType():
		return fmt.Sprintf("object with %s", counted(len(t.AttributeTypes()), "attribute"))
	case t.IsCollectionType() || t.IsTupleType():
		if length := v.Length(); length.IsKnown() {
			length, _ = length.Unmark()
			n, _ := length.AsBigFloat().Int64()
			return fmt.Sprintf("%s with %s", t.FriendlyName(), counted(int(n), "element"))
		}
	}
	return t.FriendlyName()
}

func quoted(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return fmt.Sprintf("%q...", string(r[:most]))
	}
	return fmt.Sprintf("%q", s)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func traversalString(t hcl.Traversal) string {
	var b strings.Builder
	for _, step := range t {
		switch s := step.(type) {
		case hcl.TraverseRoot:
			b.WriteString(s.Name)
		case hcl.TraverseAttr:
			b.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			b.WriteString("[" + valueString(s.Key) + "]")
		}
	}
	return b.String()
}

package plan

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Text is how a plan is printed.
type Text struct {
	Color bool
}

var symbols = map[Action]string{Create: "+", Update: "~", Replace: "-/+", Delete: "-", Forget: "."}

// Write prints the plan for people: drift, changes in the order of doing, what live work they end, outputs,
// what the live world lacks, and a line of counts.
func (t Text) Write(w io.Writer, p *Plan) error {
	out := &strings.Builder{}
	t.drift(out, p)
	t.changes(out, p)
	t.draining(out, p)
	t.live(out, p)
	t.summary(out, p)
	_, err := io.WriteString(w, out.String())
	return err
}

func (t Text) drift(out *strings.Builder, p *Plan) {
	if len(p.Drift) == 0 {
		return
	}
	out.WriteString("Changed outside of this configuration since it was applied:\n\n")
	for i, d := range p.Drift {
		if d.Deleted || i == 0 || p.Drift[i-1].Addr != d.Addr {
			fmt.Fprintf(out, "  # %s %s\n", t.Bold(d.Addr.String()), fate(d))
		}
		if d.Deleted {
			continue
		}
		fmt.Fprintf(out, "      %s %s = %s\n", t.Paint("~"), d.Attr.Name, t.moved(d.Attr))
	}
	out.WriteString("\n")
}

// fate says what somebody did to an object.
func fate(d Drift) string {
	if d.Deleted {
		return "has been deleted"
	}
	return "has changed"
}

func (t Text) changes(out *strings.Builder, p *Plan) {
	if len(p.Changes) == 0 || p.Mode == RefreshOnly { // then the drift says all
		return
	}
	if p.Failed() {
		fmt.Fprintf(out, "qod planned the following for stack %q, and refuses to do it for the errors below:\n\n", p.Stack)
	} else {
		fmt.Fprintf(out, "qod will do the following for stack %q:\n\n", p.Stack)
	}
	for _, c := range p.Changes {
		t.change(out, c)
	}
}

func (t Text) change(out *strings.Builder, c Change) {
	fmt.Fprintf(out, "  # %s %s\n", t.Bold(c.Addr.String()), verb(c))
	for _, line := range remarks(c) {
		fmt.Fprintf(out, "  # %s\n", line)
	}
	fmt.Fprintf(out, "%s%s %s {\n", strings.Repeat(" ", 3-len(symbols[c.Action])), t.Paint(symbols[c.Action]), Header(c.Addr, c.Address))
	width := 0
	for _, a := range c.Attrs {
		if !Nested(a.After.Type()) {
			width = max(width, len(a.Name))
		}
	}
	for _, a := range c.Attrs {
		t.attr(out, c.Action, a, width)
	}
	t.lifecycle(out, c)
	if hidden := t.hidden(c); hidden > 0 {
		fmt.Fprintf(out, "        # (%s unchanged)\n", Plural(hidden, "attribute"))
	}
	out.WriteString("    }\n\n")
}

// remarks are the lines under the first: why, and from where.
func remarks(c Change) []string {
	var lines []string
	if c.Detail != "" {
		lines = append(lines, "("+c.Detail+")")
	}
	if c.Moved != "" && (c.changes() || c.Action != Update) {
		lines = append(lines, "(moved from "+c.Moved+")")
	}
	if c.Import {
		lines = append(lines, "("+origin(c)+")")
	}
	if c.Kind.Name == "user" && c.Spec != cty.NilVal && isTrue(c.Spec.GetAttr("system")) {
		lines = append(lines, "a SYSTEM ADMINISTRATOR: may enter every pool of every tenant")
	}
	return lines
}

func origin(c Change) string {
	if c.From == "" {
		return "imported; it had no owner"
	}
	return fmt.Sprintf("imported from stack %q", c.From)
}

// lifecycle prints what becomes of the protection.
func (t Text) lifecycle(out *strings.Builder, c Change) {
	symbol, arrow := "~", fmt.Sprintf("%t -> %t", c.WasProtected, c.Protected)
	switch {
	case c.Action == Delete || c.Action == Forget || c.Protected == c.WasProtected:
		return
	case c.Action == Create:
		symbol, arrow = "+", "true"
	}
	note := ""
	if c.Action == Update {
		note = "  # " + effects[schema.Row]
	}
	fmt.Fprintf(out, "      %s lifecycle {%s\n", t.Paint(symbol), note)
	fmt.Fprintf(out, "          %s prevent_destroy = %s\n        }\n", t.Paint(symbol), arrow)
}

func (t Text) hidden(c Change) int {
	if c.Action != Update && c.Action != Replace && c.Action != Forget {
		return 0
	}
	count := 0
	for _, name := range c.Kind.Names() {
		if !absent(c.Spec.GetAttr(name)) {
			count++
		}
	}
	for _, a := range c.Attrs {
		if !absent(a.After) {
			count--
		}
	}
	return count
}

func isTrue(v cty.Value) bool { return !v.IsNull() && v.True() }

func verb(c Change) string {
	switch {
	case c.Action == Create:
		return "will be created"
	case c.Action == Replace:
		return "must be replaced"
	case c.Action == Delete:
		return "will be destroyed"
	case c.Action == Forget:
		return "will no longer be managed by qod; it stays as it is"
	case c.Was.Kind != "":
		return "will be renamed from " + c.Was.String()
	case c.changes():
		return "will be updated in place"
	case c.Import:
		return "will be imported"
	case c.Moved != "":
		return "has moved from " + c.Moved + " to " + c.Address
	}
	return "will be updated in place"
}

// Header is how the configuration begins the object: pool "bi", or its address where it has a key or is in
// a module. One without an address has its name.
func Header(object schema.Addr, address string) string {
	label, plain := strings.CutPrefix(address, object.Kind+".")
	switch {
	case address == "":
		label = object.Name()
	case !plain || !hclsyntax.ValidIdentifier(label):
		return address
	}
	return fmt.Sprintf("%s %q", object.Kind, label)
}

func (t Text) attr(out *strings.Builder, action Action, a Attr, width int) {
	symbol := "~"
	switch {
	case absent(a.Before):
		symbol = "+"
	case absent(a.After):
		symbol = "-"
	}
	note := ""
	switch {
	case a.Note != "":
		note = "  # " + a.Note
	case action == Update, action == Replace && a.Effect == schema.Replace:
		note = "  # " + effects[a.Effect]
	}
	if a.Note == "" && !a.Sensitive && !absent(a.Before) && a.Before.RawEquals(a.After) {
		note = cmp.Or(note, "  #") + " (the name means another one now)" // of another tenant, or of a swap
	}
	if Nested(a.After.Type()) && !a.Sensitive {
		t.Blocks(out, a.Name, a.Before, a.After, note)
		return
	}
	fmt.Fprintf(out, "      %s %-*s = %s%s\n", t.Paint(symbol), width, a.Name, t.arrow(a, action), note)
}

var effects = map[schema.Effect]string{
	schema.Replace: "forces replacement",
	schema.Roll:    "rolls: new nodes take over from the old, one at a time",
	schema.Live:    "takes effect at once",
	schema.Row:     "only recorded",
}

// arrow prints a value, or what it changes from and to.
func (t Text) arrow(a Attr, action Action) string {
	if a.Sensitive {
		return Hidden
	}
	before, after := Literal(a.Before), Literal(a.After)
	switch {
	case absent(a.Before):
		return after
	case absent(a.After) && action == Update && a.Default != cty.NilVal:
		return before + " -> " + Literal(a.Default) + " (default)"
	case absent(a.After):
		return before
	case before == after:
		return after
	}
	return before + " -> " + after
}

// moved prints what an attribute was applied as, and what it is now.
func (t Text) moved(a Attr) string {
	if a.Sensitive {
		return Hidden
	}
	words := func(v cty.Value) string {
		if absent(v) {
			return "(unset)"
		}
		return Literal(withoutNulls(v))
	}
	return words(a.Before) + " -> " + words(a.After)
}

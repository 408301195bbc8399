package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Text is how a plan is printed.
type Text struct {
	Color bool
}

var symbols = map[Action]string{Create: "+", Update: "~", Replace: "-/+", Delete: "-"}

// Write prints the plan for people: drift, changes in the order of doing, what the live world lacks,
// and a line of counts.
func (t Text) Write(w io.Writer, p *Plan) error {
	out := &strings.Builder{}
	t.drift(out, p)
	t.changes(out, p)
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
		if i == 0 || p.Drift[i-1].Addr != d.Addr {
			fmt.Fprintf(out, "  # %s has changed\n", t.bold(d.Addr.String()))
		}
		fmt.Fprintf(out, "      %s %s = %s\n", t.paint("~"), d.Attr.Name, t.moved(d.Attr))
	}
	out.WriteString("\n")
}

func (t Text) changes(out *strings.Builder, p *Plan) {
	if len(p.Changes) == 0 {
		return
	}
	fmt.Fprintf(out, "qod will do the following for stack %q:\n\n", p.Stack)
	for _, c := range p.Changes {
		t.change(out, c)
	}
}

func (t Text) change(out *strings.Builder, c Change) {
	fmt.Fprintf(out, "  # %s %s\n", t.bold(c.Addr.String()), verb(c))
	if c.Detail != "" {
		fmt.Fprintf(out, "  # (%s)\n", c.Detail)
	}
	if c.Kind.Name == "user" && c.Spec != cty.NilVal && isTrue(c.Spec.GetAttr("system")) {
		out.WriteString("  # a SYSTEM ADMINISTRATOR: may enter every pool of every tenant\n")
	}
	symbol := symbols[c.Action]
	fmt.Fprintf(out, "%3s %s %q {\n", t.paint(symbol), c.Kind.Name, label(c))
	width := 0
	for _, a := range c.Attrs {
		if !nested(a) {
			width = max(width, len(a.Name))
		}
	}
	for _, a := range c.Attrs {
		t.attr(out, c.Action, a, width)
	}
	if hidden := t.hidden(c); hidden > 0 {
		fmt.Fprintf(out, "        # (%s unchanged)\n", plural(hidden, "attribute"))
	}
	out.WriteString("    }\n\n")
}

func (t Text) hidden(c Change) int {
	if c.Action != Update {
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
	words := map[Action]string{
		Create: "will be created", Update: "will be updated in place", Replace: "must be replaced", Delete: "will be destroyed",
	}[c.Action]
	switch {
	case c.Was.Kind != "" && c.Action == Update:
		words = "will be renamed from " + c.Was.String()
	case c.Moved != "" && len(c.Attrs) == 0:
		words = "has moved from " + c.Moved + " to " + c.Address
	}
	return words
}

func label(c Change) string {
	if c.Address == "" {
		return c.Addr.Name()
	}
	return strings.TrimPrefix(c.Address, c.Kind.Name+".")
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
	if nested(a) && !a.Sensitive {
		t.block(out, a, note)
		return
	}
	fmt.Fprintf(out, "      %s %-*s = %s%s\n", t.paint(symbol), width, a.Name, t.arrow(a, action), note)
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
		return "(sensitive value)"
	}
	before, after := literal(a.Before), literal(a.After)
	switch {
	case absent(a.Before):
		return after
	case absent(a.After) && action == Update && a.Default != cty.NilVal:
		return before + " -> " + literal(a.Default) + " (default)"
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
		return "(sensitive value)"
	}
	words := func(v cty.Value) string {
		if absent(v) {
			return "(unset)"
		}
		return literal(v)
	}
	return words(a.Before) + " -> " + words(a.After)
}

func nested(a Attr) bool {
	t := a.After.Type()
	return t.IsObjectType() || t.IsSetType() && t.ElementType().IsObjectType()
}

func (t Text) block(out *strings.Builder, a Attr, note string) {
	before, after := blocks(a.Before), blocks(a.After)
	for _, b := range before {
		if !contains(after, b) {
			t.nestedBlock(out, "-", a.Name, b, note)
		}
	}
	for _, b := range after {
		if !contains(before, b) {
			t.nestedBlock(out, "+", a.Name, b, note)
		}
	}
}

func (t Text) nestedBlock(out *strings.Builder, symbol, name string, v cty.Value, note string) {
	fmt.Fprintf(out, "      %s %s {%s\n", t.paint(symbol), name, note)
	attrs := v.AsValueMap()
	for _, attr := range sortedKeys(attrs) {
		if !absent(attrs[attr]) {
			fmt.Fprintf(out, "          %s %s = %s\n", t.paint(symbol), attr, literal(attrs[attr]))
		}
	}
	out.WriteString("        }\n")
}

func blocks(v cty.Value) []cty.Value {
	switch {
	case absent(v):
		return nil
	case v.Type().IsSetType():
		return v.AsValueSlice()
	}
	return []cty.Value{v}
}

func contains(list []cty.Value, v cty.Value) bool {
	for _, have := range list {
		if have.RawEquals(v) {
			return true
		}
	}
	return false
}

// literal prints a value as HCL.
func literal(v cty.Value) string {
	switch {
	case v == cty.NilVal || v.IsNull():
		return "null"
	case v.Type() == cty.String:
		return fmt.Sprintf("%q", v.AsString())
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	}
	var items []string
	for it := v.ElementIterator(); it.Next(); {
		_, ev := it.Element()
		items = append(items, literal(ev))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func (t Text) live(out *strings.Builder, p *Plan) {
	if len(p.Live) == 0 {
		return
	}
	out.WriteString("The live world differs, and apply will mend it:\n\n")
	for _, f := range p.Live {
		fmt.Fprintf(out, "  %s %s: %s\n", t.paint("~"), t.bold(f.Addr.String()), f.Message)
	}
	out.WriteString("\n")
}

func (t Text) summary(out *strings.Builder, p *Plan) {
	if p.Empty() {
		fmt.Fprintf(out, "No changes. Stack %q is as its configuration says (%s).\n", p.Stack, plural(p.Unchanged, "object"))
		return
	}
	add, change, destroy := p.Counts()
	fmt.Fprintf(out, "Plan: %d to add, %d to change, %d to destroy", add, change, destroy)
	if len(p.Live) > 0 {
		fmt.Fprintf(out, "; %d to mend in the live world", len(p.Live))
	}
	out.WriteString(".\n")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (t Text) paint(symbol string) string {
	code := map[string]string{"+": "32", "~": "33", "-": "31", "-/+": "31"}[symbol]
	if !t.Color {
		return symbol
	}
	return "\x1b[" + code + "m" + symbol + "\x1b[0m"
}

func (t Text) bold(s string) string {
	if !t.Color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

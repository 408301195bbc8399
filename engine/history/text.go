package history

import (
	"fmt"
	"io"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// Text is how changes of the past are printed. It looks like the text of a plan.
type Text struct {
	Color bool
}

// Write prints changes for people, or that there are none.
func (t Text) Write(w io.Writer, changes []Change, outputs []OutputChange) error {
	out := &strings.Builder{}
	for _, c := range changes {
		t.change(out, c)
	}
	t.outputs(out, outputs)
	if len(changes) == 0 && len(outputs) == 0 {
		out.WriteString("Nothing differs.\n")
	} else {
		fmt.Fprintf(out, "%s.\n", Summary(changes, outputs))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Summary says in a line how much there is of changes: +2 ~1 -0.
func Summary(changes []Change, outputs []OutputChange) string {
	add, change, destroy := Counts(changes)
	words := fmt.Sprintf("+%d ~%d -%d", add, change, destroy)
	if n := len(outputs); n > 0 {
		words += fmt.Sprintf(", %s", plan.Plural(n, "output"))
	}
	return words
}

func (t Text) change(out *strings.Builder, c Change) {
	o := c.Object()
	fmt.Fprintf(out, "  # %s %s\n", plan.Text(t).Bold(o.Addr().String()), verb(c))
	for _, note := range notes(c) {
		fmt.Fprintf(out, "  # (%s)\n", note)
	}
	attrs := c.Attrs()
	if len(attrs) == 0 || c.Action == Ended {
		out.WriteString("\n")
		return
	}
	fmt.Fprintf(out, "%3s %s {\n", plan.Text(t).Paint(symbol(c.Action)), plan.Header(o.Addr(), o.Address))
	width := 0
	for _, a := range attrs {
		if !plan.Nested(a.After.Type()) || a.Hidden {
			width = max(width, len(a.Name))
		}
	}
	for _, a := range attrs {
		t.attr(out, a, width)
	}
	out.WriteString("    }\n\n")
}

func verb(c Change) string {
	switch c.Action {
	case Created:
		return "was created"
	case Changed:
		if was := c.Before.Addr(); was != c.After.Addr() {
			return "was renamed from " + was.String()
		}
		return "was changed"
	case Moved:
		return fmt.Sprintf("moved from %s to %s", c.Before.Address, c.After.Address)
	case TakenOver:
		if c.Before.Stack == "" {
			return fmt.Sprintf("was taken over by stack %q", c.After.Stack)
		}
		return fmt.Sprintf("was taken over by stack %q from stack %q", c.After.Stack, c.Before.Stack)
	case Forgotten:
		return fmt.Sprintf("was forgotten by stack %q: it stays, without an owner", c.Before.Stack)
	case Destroyed:
		return "was destroyed"
	case Ended:
		return "is gone: what it had outside the store has been taken away"
	}
	return "differs"
}

// notes say what differs beside the value.
func notes(c Change) []string {
	if c.Before == nil || c.After == nil || c.After.Tombstone {
		return nil
	}
	var out []string
	if c.Action == Changed && c.Before.Address != c.After.Address {
		out = append(out, fmt.Sprintf("moved from %s to %s", c.Before.Address, c.After.Address))
	}
	switch {
	case c.After.Protected && !c.Before.Protected:
		out = append(out, "protected since")
	case c.Before.Protected && !c.After.Protected:
		out = append(out, "no longer protected")
	}
	if c.Action == Changed && c.Before.Spec.RawEquals(c.After.Spec) && len(out) == 0 {
		out = append(out, "its value is the same; what its owner wrote of it is not")
	}
	return out
}

func symbol(a Action) string {
	switch a {
	case Created:
		return "+"
	case Destroyed, Ended:
		return "-"
	case Changed, Moved, TakenOver, Forgotten:
	}
	return "~"
}

func (t Text) attr(out *strings.Builder, a Attr, width int) {
	mark := "~"
	switch {
	case absent(a.Before):
		mark = "+"
	case absent(a.After):
		mark = "-"
	}
	switch {
	case a.Hidden:
		fmt.Fprintf(out, "      %s %-*s = %s\n", plan.Text(t).Paint(mark), width, a.Name, plan.Hidden)
	case plan.Nested(a.After.Type()):
		plan.Text(t).Blocks(out, a.Name, a.Before, a.After, "")
	default:
		fmt.Fprintf(out, "      %s %-*s = %s\n", plan.Text(t).Paint(mark), width, a.Name, arrow(a.Before, a.After))
	}
}

func arrow(before, after cty.Value) string {
	switch {
	case absent(before):
		return plan.Literal(after)
	case absent(after):
		return plan.Literal(before)
	}
	return plan.Literal(before) + " -> " + plan.Literal(after)
}

func (t Text) outputs(out *strings.Builder, changes []OutputChange) {
	if len(changes) == 0 {
		return
	}
	out.WriteString("Changes to outputs:\n")
	width := 0
	for _, c := range changes {
		width = max(width, len(c.Name))
	}
	for _, c := range changes {
		mark, words := "~", ""
		switch {
		case c.Before == nil:
			mark, words = "+", outputText(*c.After)
		case c.After == nil:
			mark, words = "-", outputText(*c.Before)
		default:
			words = outputText(*c.Before) + " -> " + outputText(*c.After)
		}
		fmt.Fprintf(out, "  %s %-*s = %s\n", plan.Text(t).Paint(mark), width, c.Name, words)
	}
	out.WriteString("\n")
}

// outputText prints the value of an output as a snapshot has it.
func outputText(o schema.Output) string {
	if o.Sensitive {
		return plan.Hidden
	}
	return plan.Literal(o.Value)
}

package plan

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

func (t Text) live(out *strings.Builder, p *Plan) {
	if len(p.Live) == 0 {
		return
	}
	out.WriteString("The live world differs, and apply will mend it:\n\n")
	for _, f := range p.Live {
		fmt.Fprintf(out, "  %s %s: %s\n", t.Paint("~"), t.Bold(f.Addr.String()), f.Message)
	}
	out.WriteString("\n")
}

func (t Text) draining(out *strings.Builder, p *Plan) {
	if len(p.Draining) == 0 {
		return
	}
	out.WriteString("Live work ends with these changes:\n\n")
	for _, f := range p.Draining {
		fmt.Fprintf(out, "  before %s goes: %s\n", t.Bold(f.Addr.String()), f.Message)
	}
	out.WriteString("\n")
}

func (t Text) summary(out *strings.Builder, p *Plan) {
	switch {
	case p.Empty():
		out.WriteString(nothing(p) + "\n")
		return
	case p.Mode == RefreshOnly:
		t.refreshed(out, p)
	case len(p.Changes)+len(p.Live) > 0:
		out.WriteString(counts(p) + "\n")
	}
	if len(p.Outputs) == 0 {
		return
	}
	if len(p.Changes)+len(p.Live) > 0 {
		out.WriteString("\n")
	}
	t.outputs(out, p)
	if len(p.Changes)+len(p.Live) == 0 {
		out.WriteString("\nThe outputs change, and nothing else does.\n")
	}
}

// nothing says that there is nothing to do, in the words of the plan's mode.
func nothing(p *Plan) string {
	switch {
	case p.Failed():
		return "There is no plan: see the errors below."
	case p.Mode == Destroy && p.Unchanged > 0:
		return fmt.Sprintf("No changes. Nothing of what was selected of stack %q is left to destroy.", p.Stack)
	case p.Mode == Destroy:
		return fmt.Sprintf("No changes. Stack %q owns nothing that could be destroyed.", p.Stack)
	case p.Mode == RefreshOnly:
		return fmt.Sprintf("No changes. Nobody changed what stack %q has applied (%s).", p.Stack, Plural(p.Unchanged, "object"))
	case p.Partial:
		return fmt.Sprintf("No changes. What was selected of stack %q is as its configuration says.", p.Stack)
	}
	return fmt.Sprintf("No changes. Stack %q is as its configuration says (%s).", p.Stack, Plural(p.Unchanged, "object"))
}

func counts(p *Plan) string {
	add, change, destroy := p.Counts()
	line := "Plan: "
	if n := p.Imported(); n > 0 {
		line += fmt.Sprintf("%d to import, ", n)
	}
	line += fmt.Sprintf("%d to add, %d to change, %d to destroy", add, change, destroy)
	if n := p.Forgotten(); n > 0 {
		line += fmt.Sprintf(", %d to forget", n)
	}
	if len(p.Live) > 0 {
		line += fmt.Sprintf("; %d to mend in the live world", len(p.Live))
	}
	return line + "."
}

func (t Text) refreshed(out *strings.Builder, p *Plan) {
	objects := len(p.Changes) + p.accepts()
	if objects == 0 {
		out.WriteString("Nobody changed what was applied. Only the live world differs.\n")
		return
	}
	mends := ""
	if len(p.Live) > 0 {
		mends = ", mends the live world"
	}
	fmt.Fprintf(out, "Refresh only: apply takes this as applied (%s)%s, and changes nothing else.\n", Plural(objects, "object"), mends)
}

// outputs prints what becomes of the outputs.
func (t Text) outputs(out *strings.Builder, p *Plan) {
	out.WriteString("Changes to outputs:\n")
	width := 0
	for _, o := range p.Outputs {
		width = max(width, len(o.Name))
	}
	for _, o := range p.Outputs {
		symbol, words := "~", Literal(o.Before)+" -> "+Literal(o.After)
		switch {
		case o.Before == cty.NilVal:
			symbol, words = "+", Literal(o.After)
		case o.After == cty.NilVal:
			symbol = "-"
		}
		if o.Sensitive {
			words = Hidden
		}
		fmt.Fprintf(out, "  %s %-*s = %s\n", t.Paint(symbol), width, o.Name, words)
	}
}

// Plural counts things: "1 output", "2 outputs".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Paint returns a symbol of a change in its colour.
func (t Text) Paint(symbol string) string {
	code := map[string]string{"+": "32", "~": "33", "-": "31", "-/+": "31", ".": "36"}[symbol]
	if !t.Color {
		return symbol
	}
	return "\x1b[" + code + "m" + symbol + "\x1b[0m"
}

// Bold returns text that stands out.
func (t Text) Bold(s string) string {
	if !t.Color {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

package schema

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// Markdown returns the kind's reference page.
func (k *Kind) Markdown() string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "# %s\n\n%s\n\nAddress: `%s.%s`.\n\n", k.Name, k.Doc, k.Name, strings.ToUpper(strings.Join(k.Key, "/")))
	out.WriteString("## Arguments\n\n")
	table(out, k.Attrs)
	for _, b := range k.Blocks {
		times := "any number of times"
		if b.Single {
			times = "at most once"
		}
		fmt.Fprintf(out, "\n## Block `%s`\n\n%s It may be written %s. A change %s.\n\n", b.Name, b.Doc, times, effectWords[b.Effect])
		table(out, b.Attrs)
	}
	return out.String()
}

var effectWords = map[Effect]string{
	Replace: "makes the object anew",
	Roll:    "rolls new nodes in, one at a time",
	Live:    "takes effect with the next statement",
	Row:     "is only recorded",
}

func table(out *strings.Builder, attrs []Attr) {
	out.WriteString("| argument | type | default | a change | meaning |\n|---|---|---|---|---|\n")
	for _, a := range attrs {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", a.Name, a.typeWords(), a.defaultWords(), effectWords[a.Effect], a.docWords())
	}
}

func (a *Attr) typeWords() string {
	words := a.Type.FriendlyName()
	if a.Ref != "" {
		words = "reference to a " + a.Ref
	}
	if a.Ref != "" && a.Set() {
		words = "set of references to a " + a.Ref
	}
	if a.Set() && a.Ref == "" {
		words = "set of strings"
	}
	return words
}

func (a *Attr) defaultWords() string {
	switch {
	case a.Default == cty.NilVal && a.Mode == Required:
		return "required"
	case a.Default == cty.NilVal:
		return ""
	case a.Default.Type() == cty.String:
		return fmt.Sprintf("`%q`", a.Default.AsString())
	case a.Default.Type() == cty.Number:
		return fmt.Sprintf("`%s`", a.Default.AsBigFloat().Text('f', -1))
	}
	return fmt.Sprintf("`%t`", a.Default.True())
}

func (a *Attr) docWords() string {
	return strings.ReplaceAll(a.writtenDoc(), "|", "\\|") + a.notes()
}

// writtenDoc is what the attribute means to those who write it in qod's language.
func (a *Attr) writtenDoc() string {
	if a.Written == "" {
		return a.Doc
	}
	return a.Doc + " " + a.Written
}

// Summary is what the attribute means, its default and what a change of it does, for surfaces other than qod's own
// language.
func (a *Attr) Summary() string {
	words := a.Doc + a.notes()
	if a.Default != cty.NilVal {
		words += " Default: " + a.defaultWords() + "."
	}
	return words + " A change " + a.Effect.Words() + "."
}

// Words say what a change does: "makes the object anew".
func (e Effect) Words() string { return effectWords[e] }

// notes say who may set the attribute and see it.
func (a *Attr) notes() string {
	words := ""
	if a.Secret {
		words += " Secret: it is never shown."
	}
	if a.Host {
		words += " Only system administrators may set it."
	}
	return words
}

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// generator makes values and configurations of the bytes of a fuzzer. Two generators of the same bytes
// and of other variants make the same, but for the values of secrets.
type generator struct {
	data    []byte
	variant int
}

func (g *generator) next() byte {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return b
}

func (g *generator) pick(n int) int { return int(g.next()) % n }

// arguments are those of the function's example, changed, or any others.
func (g *generator) arguments(t *testing.T, name string) []cty.Value {
	args := exampleArgs(t, examples()[name])
	if g.pick(8) == 7 {
		args = append(args, cty.NilVal)
	}
	for i := range args {
		how := g.pick(6)
		if args[i] == cty.NilVal {
			how = 5
		}
		switch how {
		case 0:
		case 1:
			args[i] = args[i].Mark(sensitiveMark{})
		case 2:
			args[i] = nested(args, i)[i]
		case 3:
			args[i] = cty.UnknownVal(args[i].Type())
		default:
			args[i] = g.value(3)
		}
	}
	return args
}

// value is anything: known or not, null, sensitive as a whole or in parts.
func (g *generator) value(depth int) cty.Value {
	v := g.plain(depth)
	switch g.pick(12) {
	case 1:
		return v.Mark(sensitiveMark{})
	case 2:
		return v.Mark(objectMark{kind: "tenant", block: "tenant.a", address: "tenant.a"})
	}
	return v
}

func (g *generator) plain(depth int) cty.Value {
	choice := g.pick(16)
	if depth == 0 && choice > 9 {
		choice -= 8
	}
	switch choice {
	case 0, 1:
		return g.text()
	case 2:
		return g.number()
	case 3:
		return cty.BoolVal(g.next()%2 == 0)
	case 4:
		return g.secret()
	case 5:
		return cty.NullVal(cty.DynamicPseudoType)
	case 6:
		return cty.NullVal(cty.String)
	case 7:
		return cty.UnknownVal([]cty.Type{cty.String, cty.Number, cty.List(cty.String), cty.Map(cty.Bool)}[g.pick(4)])
	case 8, 9:
		return cty.DynamicVal
	case 10, 11:
		return cty.TupleVal(g.several(depth))
	case 12:
		return cty.ObjectVal(g.named(g.several(depth)))
	}
	return g.collection(choice)
}

// collection has elements of one type, some of them secret.
func (g *generator) collection(choice int) cty.Value {
	elements := make([]cty.Value, 1+g.pick(4))
	for i := range elements {
		elements[i] = []func() cty.Value{
			g.text, g.secret, func() cty.Value { return cty.NullVal(cty.String) }, func() cty.Value { return cty.UnknownVal(cty.String) },
		}[g.pick(4)]()
	}
	switch choice {
	case 13:
		return cty.ListVal(elements)
	case 14:
		return cty.SetVal(elements)
	}
	return cty.MapVal(g.named(elements))
}

func (g *generator) several(depth int) []cty.Value {
	out := make([]cty.Value, g.pick(4))
	for i := range out {
		out[i] = g.value(depth - 1)
	}
	return out
}

func (g *generator) named(values []cty.Value) map[string]cty.Value {
	out := map[string]cty.Value{}
	for i, v := range values {
		out[string(rune('a'+i))] = v
	}
	return out
}

func (g *generator) text() cty.Value {
	texts := []string{
		"", "a", "é\n b", "%s %d", "[a-z]+", "/(.*)/", "10.0.0.0/8", "2020-01-02T00:00:00Z", `{"a": [1, null]}`, "a: &x [1]\nb: *x",
		"${a}", "../x", "a.txt", "YQ==", "1e9", "true", "a,b\n1,2", "**/*", "1h", "%[2]*d",
	}
	if i := g.pick(len(texts) + 4); i < len(texts) {
		return cty.StringVal(texts[i])
	}
	n := min(g.pick(20), len(g.data))
	text := string(g.data[:n])
	g.data = g.data[n:]
	return cty.StringVal(text)
}

func (g *generator) number() cty.Value {
	numbers := []string{"0", "1", "-1", "2", "0.5", "16", "1e30", "-1e30", "9007199254740993", "1024", "1e-30", "65"}
	return cty.MustParseNumberVal(numbers[g.pick(len(numbers))])
}

// secret is a sensitive string that only its variant tells from others.
func (g *generator) secret() cty.Value {
	texts := [][2]string{
		{"hunter2 a", "Hunter2 bb"}, {"{\"hunter2\": 1}", "[\"hunter2\", 2]"}, {"hunter2", "hunter2 ["}, {"a: hunter2", "b: [hunter2]"},
		{"%s hunter2", "%d hunter2"}, {"/hunter2/", "/(hunter2/"},
	}
	return cty.StringVal(texts[g.pick(len(texts))][g.variant]).Mark(sensitiveMark{})
}

// config is a configuration of locals and objects that refer to each other and to var.secret.
func (g *generator) config() string {
	out := &strings.Builder{}
	for i := range g.pick(4) {
		fmt.Fprintf(out, "locals {\n  l%d = %s\n}\n", i, g.expression(3))
	}
	kinds := schema.Kinds()
	for i := range g.pick(5) {
		k := kinds[g.pick(len(kinds))]
		fmt.Fprintf(out, "%s \"b%d\" {\n", k.Name, i)
		if g.pick(4) == 0 {
			fmt.Fprintf(out, "  for_each = %s\n", g.expression(2))
		}
		for _, a := range k.Attrs {
			if g.pick(2) == 0 {
				fmt.Fprintf(out, "  %s = %s\n", a.Name, g.expression(2))
			}
		}
		for _, b := range k.Blocks {
			if g.pick(3) == 0 {
				fmt.Fprintf(out, "  %s {\n    %s = %s\n  }\n", b.Name, b.Attrs[0].Name, g.expression(2))
			}
		}
		out.WriteString("}\n")
	}
	fmt.Fprintf(out, "output \"made\" {\n  sensitive = true\n  value     = %s\n}\n", g.expression(2))
	return out.String()
}

func (g *generator) expression(depth int) string {
	kinds := schema.Kinds()
	leaves := []string{
		`"a"`, "1", "null", "true", "var.secret", "var.secret", "var.open", "local.l0", "local.l1", "each.key", "each.value", "[]", "{}",
		fmt.Sprintf("%s.b%d", kinds[g.pick(len(kinds))].Name, g.pick(5)), "var.secret[0]", "var.secret.x", "var.none", "0", `"inf"`,
	}
	inner := func() string { return g.expression(depth - 1) }
	choice := g.pick(18)
	if depth == 0 || choice < 7 {
		return leaves[g.pick(len(leaves))]
	}
	switch choice {
	case 7, 8, 9, 10:
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(examples())), func(name string) bool {
			return name == "nonsensitive" || name == "convert"
		})
		name := names[g.pick(len(names))]
		if g.pick(3) == 0 {
			return fmt.Sprintf("%s(%s)", name, inner())
		}
		return fmt.Sprintf("%s(%s, %s)", name, inner(), inner())
	case 11:
		return fmt.Sprintf("[%s, %s]", inner(), inner())
	case 12:
		return fmt.Sprintf("{ a = %s, (%s) = %s }", inner(), inner(), inner())
	case 13:
		return fmt.Sprintf(`"x${%s}%%{if %s}y%%{endif}"`, inner(), inner())
	case 14:
		return fmt.Sprintf("(%s ? %s : %s)", inner(), inner(), inner())
	case 15:
		return fmt.Sprintf("[for k, v in %s : %s if %s]", inner(), inner(), inner())
	case 16:
		return fmt.Sprintf("{for v in %s : %s => v...}", inner(), inner())
	}
	return fmt.Sprintf("(%s %s %s)", inner(), []string{"+", "==", "&&", "<", "%", "/", "-", "*"}[g.pick(8)], inner())
}

package export_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/schema"
)

// generator makes random objects of every kind that pass the kinds' own checks.
type generator struct {
	*rand.Rand
	objects []export.Object
	keys    map[schema.Addr]bool
	taken   map[string]bool // addresses
	count   int
	more    []string // what text may be too
}

// odd is what text may be; those that an attribute's check refuses are not taken for it.
func (g *generator) odd() []string {
	g.count++
	n := g.count
	return append([]string{
		fmt.Sprintf("n%d", n), fmt.Sprintf("a-b_%d", n), fmt.Sprintf("o'neil.%d@corp.com", n), fmt.Sprintf("${x}%%{y}%d@corp.com", n),
		fmt.Sprintf(`"q"\%d@corp.com`, n), fmt.Sprintf("naïve%d@corp.com", n), "local", "ducklake", "1GiB", "512MiB", "30m", "0s", "all", "*",
		"", " ", "two\nlines", "tab\t", "$${x}", "$", "%", "%%{if}", "ends with $", `back\slash`, "日本語", "\u200b", "#//", "null", "true", "1e3",
		"<<EOT\nx\nEOT\n", "\x01", "a.b/c:d%", "https://login.corp.com/${x}/é", "$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$aGFzaA", "password",
	}, g.more...)
}

func (g *generator) value(k *schema.Kind, a *schema.Attr, tenant string) cty.Value {
	ok := func(v cty.Value) bool { return a.Check == nil || a.Check(v) == nil }
	switch {
	case a.Set():
		n := g.IntN(4)
		if none := cty.SetValEmpty(cty.String); n == 0 && ok(none) {
			return none
		}
		var items []cty.Value
		for range max(n, 1) {
			items = append(items, cty.StringVal(g.text(a, tenant, func(v cty.Value) bool { return ok(cty.SetVal([]cty.Value{v})) })))
		}
		return cty.SetVal(items)
	case a.Type == cty.Bool:
		return cty.BoolVal(g.IntN(2) == 0)
	case a.Type == cty.Number:
		for _, i := range g.Perm(6) {
			v := cty.NumberIntVal([]int64{0, 1, 2, 7, 64, 9007199254740991}[i])
			if ok(v) {
				return v
			}
		}
	}
	return cty.StringVal(g.text(a, tenant, ok))
}

// text returns a text for an attribute: for references mostly the name of an object of the tenant.
func (g *generator) text(a *schema.Attr, tenant string, ok func(cty.Value) bool) string {
	if a.Ref != "" && g.IntN(5) > 0 {
		var names []string
		for _, o := range g.objects {
			if o.Kind.Name == a.Ref && (a.Ref == "tenant" || tenantOf(o.Value) == tenant) {
				names = append(names, o.Value.GetAttr("name").AsString())
			}
		}
		if len(names) > 0 {
			return names[g.IntN(len(names))]
		}
	}
	candidates := g.odd()
	switch {
	case len(a.OneOf) > 0:
		candidates = a.OneOf
	case len(a.Literal) > 0 && g.IntN(3) == 0:
		candidates = a.Literal
	}
	for _, i := range g.Perm(len(candidates)) {
		if v := cty.StringVal(candidates[i]); ok(v) {
			return v.AsString()
		}
	}
	panic("no text fits " + a.Name + ": add one to odd")
}

func tenantOf(v cty.Value) string {
	if !v.Type().HasAttribute("tenant") || v.GetAttr("tenant").IsNull() {
		return ""
	}
	return v.GetAttr("tenant").AsString()
}

// object returns a new object of the kind, or false when its key is taken.
func (g *generator) object(k *schema.Kind) (cty.Value, bool) {
	for {
		attrs, tenant := map[string]cty.Value{}, ""
		for i := range k.Attrs {
			a := &k.Attrs[i]
			attrs[a.Name] = cty.NullVal(a.Type)
			if a.Mode == schema.Required || g.IntN(2) == 0 {
				attrs[a.Name] = g.value(k, a, tenant)
			}
			if a.Name == "tenant" && !attrs[a.Name].IsNull() {
				tenant = attrs[a.Name].AsString()
			}
		}
		for i := range k.Blocks {
			attrs[k.Blocks[i].Name] = g.blocks(k, &k.Blocks[i], tenant)
		}
		v := cty.ObjectVal(attrs)
		if _, problems := k.Complete(v); len(problems) == 0 {
			addr := k.Addr(v)
			fresh := !g.keys[addr]
			g.keys[addr] = true
			return v, fresh
		}
	}
}

func (g *generator) blocks(k *schema.Kind, b *schema.Block, tenant string) cty.Value {
	t := k.Type().AttributeType(b.Name)
	n := g.IntN(4)
	if n == 0 {
		return cty.NullVal(t)
	}
	var items []cty.Value
	for len(items) < n {
		attrs := map[string]cty.Value{}
		for i := range b.Attrs {
			a := &b.Attrs[i]
			attrs[a.Name] = cty.NullVal(a.Type)
			if a.Mode == schema.Required || g.IntN(2) == 0 {
				attrs[a.Name] = g.value(k, a, tenant)
			}
		}
		item := cty.ObjectVal(attrs)
		whole := k.Empty().AsValueMap()
		whole[b.Name] = item
		if !b.Single {
			whole[b.Name] = cty.SetVal([]cty.Value{item})
		}
		_, problems := k.Complete(cty.ObjectVal(whole))
		if !slices.ContainsFunc(problems, func(p schema.Problem) bool {
			step, ok := p.Path[0].(cty.GetAttrStep)
			return ok && step.Name == b.Name
		}) {
			items = append(items, item)
		}
	}
	if b.Single {
		return items[0]
	}
	return cty.SetVal(items)
}

// address returns a free address for an object: its own label, another, or one of for_each.
func (g *generator) address(k *schema.Kind, v cty.Value) string {
	name := fmt.Sprintf("x%d", g.count)
	if v.Type().HasAttribute("name") {
		name = v.GetAttr("name").AsString()
	}
	a := schema.Address{Kind: k.Name}
	for {
		switch g.count++; g.IntN(4) {
		case 0:
			a.Step = schema.Step{Name: fmt.Sprintf("label_%d", g.count)}
		case 1:
			a.Step = schema.Step{Name: "every", Key: name, Keyed: true}
		case 2:
			a.Step = schema.Step{Name: "odd", Key: g.oddText(), Keyed: true}
		default:
			a.Step = schema.Step{Name: name}
		}
		s := a.String()
		if parsed, err := schema.ParseAddress(s); err == nil && parsed.Step == a.Step && !g.taken[s] {
			g.taken[s] = true
			return s
		}
	}
}

func (g *generator) oddText() string {
	all := g.odd()
	return all[g.IntN(len(all))]
}

// outputs have values of any type.
func (g *generator) outputs() []schema.Output {
	var out []schema.Output
	for _, name := range []string{"a", "b-c", "naïve"} {
		if g.IntN(2) == 0 {
			out = append(out, schema.Output{Name: name, Value: g.any(3)})
		}
	}
	return out
}

func (g *generator) any(depth int) cty.Value {
	n := 9
	if depth == 0 {
		n = 5
	}
	switch g.IntN(n) {
	case 0:
		return cty.NullVal(cty.DynamicPseudoType)
	case 1:
		return cty.BoolVal(g.IntN(2) == 0)
	case 2:
		return cty.MustParseNumberVal([]string{"0", "-1", "0.1", "1e30", "-1e-7", "9007199254740993", "12345678901234567890.125"}[g.IntN(7)])
	case 3, 4:
		return cty.StringVal(g.oddText())
	case 5:
		return cty.SetVal([]cty.Value{cty.StringVal(g.oddText()), cty.StringVal(g.oddText())})
	case 6:
		return cty.MapVal(map[string]cty.Value{g.oddText(): cty.StringVal(g.oddText()), g.oddText(): cty.StringVal("")})
	case 7:
		return cty.ObjectVal(map[string]cty.Value{g.oddText(): g.any(depth - 1), g.oddText(): g.any(depth - 1)})
	}
	return cty.TupleVal([]cty.Value{g.any(depth - 1), g.any(depth - 1)})
}

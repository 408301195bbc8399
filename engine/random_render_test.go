package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// writer writes a sketch down in one of many ways. All of them mean the same.
type writer struct {
	*rand.Rand
	*sketch
	inputs map[string]map[int]bool // by module: items that its arguments carry in
	files  map[string]string
}

// written returns the files of a configuration by name.
func (s *sketch) written(seed uint64) map[string]string {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 11)), sketch: s, inputs: map[string]map[int]bool{}, files: map[string]string{}}
	root := &strings.Builder{}
	root.WriteString("qod {\n  stack = \"s\"\n}\n")
	modules := map[string]bool{}
	for _, it := range s.items {
		if len(it.modules) > 0 {
			modules[it.modules[0].Name] = it.modules[0].Keyed
		}
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		w.module(root, name, modules[name])
	}
	w.blocks(root, nil, func(it *item) bool { return len(it.modules) == 0 })
	for _, name := range slices.Sorted(maps.Keys(s.outputs)) {
		fmt.Fprintf(root, "output %q {\n  value = %s\n}\n", name, s.outputs[name])
	}
	for _, m := range s.moved {
		fmt.Fprintf(root, "moved {\n  from = %s\n  to   = %s\n}\n", m[0], m[1])
	}
	for _, at := range slices.Sorted(maps.Keys(s.removed)) {
		fmt.Fprintf(root, "removed {\n  from = %s\n  lifecycle {\n    destroy = %t\n  }\n}\n", at, s.removed[at])
	}
	for _, at := range slices.Sorted(maps.Keys(s.imports)) {
		fmt.Fprintf(root, "import {\n  to = %s\n  id = %s\n}\n", at, quoted(s.imports[at]))
	}
	w.files["main.qod.hcl"] = root.String()
	return w.files
}

func quoted(s string) string { return literal(cty.StringVal(s)) }

func literal(v cty.Value) string { return string(hclwrite.TokensForValue(v).Bytes()) }

// scope is where an expression stands: at the root, or in a module without for_each.
type scope struct{ module string }

// blocks writes the blocks of items, those with for_each together. in is nil at the root.
func (w *writer) blocks(out *strings.Builder, in *schema.Step, belongs func(*item) bool) {
	here := scope{}
	if in != nil {
		here.module = in.Name
	}
	groups := map[string][]*item{}
	var order []string
	for _, it := range w.items {
		if !belongs(it) {
			continue
		}
		name := it.kind.Name + "." + it.at.Name
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], it)
	}
	w.Rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, name := range order {
		if group := groups[name]; group[0].at.Keyed {
			w.each(out, group, w.elements(group, here))
		} else {
			w.single(out, group[0], here)
		}
		if in != nil {
			fmt.Fprintf(out, "output %q {\n  value = %s\n}\n", strings.ReplaceAll(name, ".", "_"), name)
		}
	}
}

// module writes a call and the directory that it calls. Objects of a module with for_each are data of the call.
func (w *writer) module(root *strings.Builder, name string, keyed bool) {
	out, in := &strings.Builder{}, &schema.Step{Name: name}
	w.inputs[name] = map[int]bool{}
	fmt.Fprintf(root, "module %q {\n  source = \"./modules/%s\"\n", name, name)
	if keyed {
		w.keyedModule(root, out, name)
	} else {
		w.blocks(out, in, func(it *item) bool { return len(it.modules) > 0 && it.modules[0].Name == name })
	}
	for _, number := range slices.Sorted(maps.Keys(w.inputs[name])) {
		fmt.Fprintf(root, "  in%d = %s\n", number, symbol(w.item(number)))
		fmt.Fprintf(out, "variable \"in%d\" {}\n", number)
	}
	root.WriteString("}\n")
	w.files["modules/"+name+"/main.qod.hcl"] = out.String()
}

func (w *writer) keyedModule(root, out *strings.Builder, name string) {
	blocks := map[string][]*item{}
	keys := map[string]bool{}
	for _, it := range w.items {
		if len(it.modules) > 0 && it.modules[0].Name == name {
			block := it.kind.Name + "_" + it.at.Name
			blocks[block] = append(blocks[block], it)
			keys[it.modules[0].Key] = true
		}
	}
	root.WriteString("  for_each = {\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(root, "    %s = {\n", quoted(key))
		for _, block := range slices.Sorted(maps.Keys(blocks)) {
			var here []*item
			for _, it := range blocks[block] {
				if it.modules[0].Key == key {
					here = append(here, it)
				}
			}
			fmt.Fprintf(root, "%s = %s\n", block, w.elements(here, scope{}))
		}
		root.WriteString("    }\n")
	}
	root.WriteString("  }\n")
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		first := blocks[block][0]
		fmt.Fprintf(root, "  %s = each.value.%s\n", block, block)
		fmt.Fprintf(out, "variable %q {}\n", block)
		w.each(out, blocks[block], "var."+block)
		fmt.Fprintf(out, "output %q {\n  value = %s.%s\n}\n", block, first.kind.Name, first.at.Name)
	}
}

// symbol is how an item is called in its own module.
func symbol(it *item) string { return it.kind.Name + "." + it.at.String() }

// reference names an item from a place: as an object where that is possible, or by its name.
func (w *writer) reference(it *item, here scope, from *item) (string, bool) {
	name := quoted(it.name())
	there := ""
	if len(it.modules) > 0 {
		there = it.modules[0].Name
	}
	switch {
	case w.Rand.IntN(3) == 0 || from.inKeyed() && (there != "" || w.outward || it.kind.Name != "tenant"):
		return name, false // what a call with for_each refers to, all objects of the module need
	case here.module == there:
		return symbol(it), true
	case here.module == "" && w.outward:
		at := "module." + it.modules[0].String() + "." + it.kind.Name + "_" + it.at.Name
		if it.at.Keyed {
			at += "[" + quoted(it.at.Key) + "]"
		}
		return at, true
	case there == "" && !w.outward:
		w.inputs[here.module][it.number] = true
		return fmt.Sprintf("var.in%d", it.number), true
	}
	return name, false
}

// arguments are the written attributes of an item, references included.
func (w *writer) arguments(it *item, here scope) map[string]string {
	args := map[string]string{}
	implied := false
	for name, v := range it.attrs {
		if _, block := it.kind.Block(name); !block {
			args[name] = literal(v)
		}
	}
	for name, to := range it.refs {
		var list []string
		for _, number := range to {
			text, object := w.reference(w.item(number), here, it)
			list = append(list, text)
			implied = implied || object && name != "tenant"
		}
		a, _ := it.kind.Attr(name)
		switch {
		case a.Set() && len(list) > 0:
			args[name] = "[" + strings.Join(list, ", ") + "]"
		case len(list) > 0:
			args[name] = list[0]
		}
	}
	if implied && w.Rand.IntN(2) == 0 {
		delete(args, "tenant")
	}
	return args
}

func (w *writer) single(out *strings.Builder, it *item, here scope) {
	fmt.Fprintf(out, "%s %q {\n", it.kind.Name, it.at.Name)
	args := w.arguments(it, here)
	if args["name"] == quoted(it.at.Name) && w.Rand.IntN(2) == 0 {
		delete(args, "name")
	}
	for _, a := range it.kind.Attrs {
		if text, ok := args[a.Name]; ok {
			fmt.Fprintf(out, "  %s = %s\n", a.Name, text)
		} else if w.Rand.IntN(8) == 0 && a.Name != "name" {
			fmt.Fprintf(out, "  %s = null\n", a.Name)
		}
	}
	for _, b := range it.kind.Blocks {
		for _, v := range nested(it, b) {
			fmt.Fprintf(out, "  %s {\n", b.Name)
			for _, a := range b.Attrs {
				if av := v.GetAttr(a.Name); !av.IsNull() {
					fmt.Fprintf(out, "    %s = %s\n", a.Name, literal(av))
				}
			}
			out.WriteString("  }\n")
		}
	}
	if it.protect || len(it.ignore) > 0 {
		fmt.Fprintf(out, "  lifecycle {\n    prevent_destroy = %t\n    ignore_changes = [%s]\n  }\n", it.protect, strings.Join(it.ignore, ", "))
	}
	out.WriteString("}\n")
}

// nested lists the blocks of an item.
func nested(it *item, b schema.Block) []cty.Value {
	v, ok := it.attrs[b.Name]
	switch {
	case !ok:
		return nil
	case b.Single:
		return []cty.Value{v}
	}
	return v.AsValueSlice()
}

// elements is what for_each goes over.
func (w *writer) elements(group []*item, here scope) string {
	out := &strings.Builder{}
	out.WriteString("{\n")
	for _, it := range group {
		args := w.arguments(it, here)
		fmt.Fprintf(out, "%s = {", quoted(it.at.Key))
		for _, a := range it.kind.Attrs {
			text, ok := args[a.Name]
			if !ok {
				text = "null"
			}
			fmt.Fprintf(out, " %s = %s,", a.Name, text)
		}
		for _, b := range it.kind.Blocks {
			var list []string
			for _, v := range nested(it, b) {
				list = append(list, literal(v))
			}
			fmt.Fprintf(out, " %s = [%s],", b.Name, strings.Join(list, ", "))
		}
		out.WriteString(" }\n")
	}
	out.WriteString("}")
	return out.String()
}

// each writes a block with for_each over such elements.
func (w *writer) each(out *strings.Builder, group []*item, elements string) {
	k := group[0].kind
	fmt.Fprintf(out, "%s %q {\n  for_each = %s\n", k.Name, group[0].at.Name, elements)
	for _, a := range k.Attrs {
		fmt.Fprintf(out, "  %s = each.value.%s\n", a.Name, a.Name)
	}
	for _, b := range k.Blocks {
		fmt.Fprintf(out, "  dynamic %q {\n    for_each = each.value.%s\n    content {\n", b.Name, b.Name)
		for _, a := range b.Attrs {
			fmt.Fprintf(out, "      %s = %s.value.%s\n", a.Name, b.Name, a.Name)
		}
		out.WriteString("    }\n  }\n")
	}
	out.WriteString("}\n")
}

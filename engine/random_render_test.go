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
	inputs map[string]map[int]bool    // by module: items that its arguments carry in
	hidden map[string]map[string]bool // by module: names of sensitive variables, with the root's own as those of ""
	files  map[string]string
}

// written returns the files of a configuration by name.
func (s *sketch) written(seed uint64) map[string]string {
	w := &writer{
		Rand: rand.New(rand.NewPCG(seed, 11)), sketch: s, inputs: map[string]map[int]bool{},
		hidden: map[string]map[string]bool{"": {}}, files: map[string]string{},
	}
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
	if s.secretive {
		fmt.Fprintf(root, "output \"hush\" {\n  value = [%s]\n  sensitive = true\n}\n", w.hide(s.hush, scope{}))
	}
	for _, name := range slices.Sorted(maps.Keys(w.hidden[""])) {
		fmt.Fprintf(root, "variable %q {\n  default = %q\n  sensitive = true\n}\n", name, secretWords+strings.TrimPrefix(name, "hidden"))
	}
	w.file("main", root.String())
	return w.files
}

// file keeps a file in one of the two syntaxes.
func (w *writer) file(name, src string) {
	if w.Rand.IntN(3) == 0 {
		w.files[name+".qod.json"] = inJSON(src)
	} else {
		w.files[name+".qod.hcl"] = src
	}
}

// hide writes a value as one that comes from a sensitive variable.
func (w *writer) hide(v cty.Value, here scope) string {
	name := "hidden" + strings.TrimPrefix(v.AsString(), secretWords)
	w.hidden[""][name] = true
	if here.module != "" {
		w.hidden[here.module][name] = true
	}
	return fmt.Sprintf([]string{"var.%s", "\"${var.%s}\"", "lower(var.%s)", "[var.%s][0]"}[w.Rand.IntN(4)], name)
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
	w.inputs[name], w.hidden[name] = map[int]bool{}, map[string]bool{}
	fmt.Fprintf(root, "module %q {\n  source = \"./modules/%s\"\n", name, name)
	if keyed {
		w.keyedModule(root, out, []string{name})
	} else {
		w.blocks(out, in, func(it *item) bool { return len(it.modules) == 1 && it.modules[0].Name == name })
		w.innerModules(out, name)
	}
	for _, variable := range slices.Sorted(maps.Keys(w.hidden[name])) {
		fmt.Fprintf(root, "  %s = var.%s\n", variable, variable)
		fmt.Fprintf(out, "variable %q {}\n", variable)
	}
	for _, number := range slices.Sorted(maps.Keys(w.inputs[name])) {
		fmt.Fprintf(root, "  in%d = %s\n", number, symbol(w.item(number)))
		fmt.Fprintf(out, "variable \"in%d\" {}\n", number)
	}
	root.WriteString("}\n")
	w.file("modules/"+name+"/main", out.String())
}

// innerModules writes the calls in a module of others with for_each, and outputs for what each has. An output of
// a whole call would make whatever refers to it need all of the call.
func (w *writer) innerModules(out *strings.Builder, of string) {
	names, outputs := map[string]bool{}, map[string]string{}
	for _, it := range w.items {
		if len(it.modules) == 2 && it.modules[0].Name == of {
			names[it.modules[1].Name] = true
			outputs[passed(it)] = "module." + it.modules[1].String() + "." + exported(it)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		inner := &strings.Builder{}
		fmt.Fprintf(out, "module %q {\n  source = \"./%s\"\n", name, name)
		w.keyedModule(out, inner, []string{of, name})
		out.WriteString("}\n")
		w.file("modules/"+of+"/"+name+"/main", inner.String())
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		fmt.Fprintf(out, "output %q {\n  value = %s\n}\n", name, outputs[name])
	}
}

// exported is the output that has the block of an item, in the item's own module.
func exported(it *item) string { return it.kind.Name + "_" + it.at.Name }

// passed is that output in the module which calls the item's own one.
func passed(it *item) string {
	letters := strings.NewReplacer(".", "", "$", "", "{", "", "}", "")
	return it.modules[1].Name + "_" + letters.Replace(it.modules[1].Key) + "_" + exported(it)
}

// keyedModule writes the arguments of a call with for_each, and what it calls. path has the names of the modules
// from the root to there.
func (w *writer) keyedModule(root, out *strings.Builder, path []string) {
	blocks := map[string][]*item{}
	keys := map[string]bool{}
	last := len(path) - 1
	here := scope{}
	if last > 0 {
		here.module = path[0]
	}
	for _, it := range w.items {
		if slices.EqualFunc(it.modules, path, func(s schema.Step, name string) bool { return s.Name == name }) {
			block := exported(it)
			blocks[block] = append(blocks[block], it)
			keys[it.modules[last].Key] = true
		}
	}
	root.WriteString("  for_each = {\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(root, "    %s = {\n", quoted(key))
		for _, block := range slices.Sorted(maps.Keys(blocks)) {
			var group []*item
			for _, it := range blocks[block] {
				if it.modules[last].Key == key {
					group = append(group, it)
				}
			}
			fmt.Fprintf(root, "%s = %s\n", block, w.elements(group, here))
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
	case here.module == there && len(it.modules) == 2:
		return "module." + it.modules[1].String() + "." + element(it, exported(it)), true
	case here.module == there:
		return symbol(it), true
	case here.module == "" && w.outward && len(it.modules) == 2:
		return "module." + there + "." + element(it, passed(it)), true
	case here.module == "" && w.outward:
		return "module." + it.modules[0].String() + "." + element(it, exported(it)), true
	case there == "" && !w.outward:
		w.inputs[here.module][it.number] = true
		return fmt.Sprintf("var.in%d", it.number), true
	}
	return name, false
}

// element is the item in the output of that name.
func element(it *item, output string) string {
	return schema.Step{Name: output, Key: it.at.Key, Keyed: it.at.Keyed}.String()
}

// arguments are the written attributes of an item, references included.
func (w *writer) arguments(it *item, here scope) map[string]string {
	args := map[string]string{}
	implied := false
	for name, v := range it.attrs {
		if _, block := it.kind.Block(name); block {
			continue
		}
		if args[name] = literal(v); it.hidden[name] {
			args[name] = w.hide(v, here)
		}
	}
	for name, to := range it.refs {
		a, _ := it.kind.Attr(name)
		var list []string
		for _, word := range a.Literals(it.attrs[name]) {
			list = append(list, quoted(word))
		}
		for _, number := range to {
			text, object := w.reference(w.item(number), here, it)
			list = append(list, text)
			implied = implied || object && name != "tenant"
		}
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

package config

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// importBlock is an import block.
type importBlock struct {
	to      staticRef
	id      hcl.Expression
	forEach hcl.Expression // nil without it
	rng     hcl.Range      // of the block's header
}

func (m *module) addImport(b *hcl.Block) hcl.Diagnostics {
	if m != m.config.root {
		return hcl.Diagnostics{failAt(header(b), "Import in a module", "What exists already is imported by the configuration that "+
			"calls the module: write the import block there, with to = module.NAME.KIND.LABEL.")}
	}
	content, diags := b.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "to", Required: true}, {Name: "id", Required: true}, {Name: "for_each"},
	}})
	im := &importBlock{rng: header(b)}
	if attr, ok := content.Attributes["to"]; ok {
		ref, more := readStatic(attr.Expr, wantObject)
		im.to, diags = ref, append(diags, more...)
	}
	if attr, ok := content.Attributes["id"]; ok {
		im.id = attr.Expr
	}
	if attr, ok := content.Attributes["for_each"]; ok {
		im.forEach = attr.Expr
	}
	if !diags.HasErrors() {
		m.imports = append(m.imports, im)
	}
	return diags
}

// adopt evaluates the import blocks, each by itself: what else is unknown does not matter.
func (e *evaluation) adopt() {
	var imports []schema.Import
	for _, im := range e.module.imports {
		imports = append(imports, e.evaluateImport(im)...)
	}
	to, id := map[string]schema.Import{}, map[schema.Addr]schema.Import{}
	for _, im := range imports {
		if before, taken := to[im.To.String()]; taken {
			e.report(hcl.Diagnostics{failAt(im.Range, "Two imports to one place",
				"%s is imported already at %s, as %s: remove one of them.", im.To, before.Range, before.ID.Path)})
		} else if before, taken := id[im.ID]; taken {
			e.report(hcl.Diagnostics{failAt(im.Range, "Two imports of one object",
				"The %s %s is imported already at %s, to %s: an object has one block.", im.ID.Kind, im.ID.Path, before.Range, before.To)})
		}
		to[im.To.String()], id[im.ID] = im, im
	}
	e.imports = append(e.imports, imports...)
}

func (e *evaluation) evaluateImport(im *importBlock) []schema.Import {
	in := scope{each: im.forEach != nil}
	refs, diags := e.module.references(append(im.id.Variables(), im.to.variables()...), in)
	if im.forEach != nil {
		more, problems := e.module.references(im.forEach.Variables(), scope{})
		refs, diags = append(refs, more...), append(diags, problems...)
	}
	e.report(diags)
	if diags.HasErrors() {
		return nil
	}
	ctx := e.context(refs)
	if im.forEach == nil {
		return e.importOne(im, ctx)
	}
	items, diags := e.expand(im.forEach, ctx)
	e.report(diags)
	var out []schema.Import
	for _, key := range slices.Sorted(maps.Keys(items)) {
		out = append(out, e.importOne(im, e.each(ctx, node{}, key, items[key]))...)
	}
	return out
}

// importOne returns the import of one object, or nothing when something is wrong with it.
func (e *evaluation) importOne(im *importBlock, ctx *hcl.EvalContext) []schema.Import {
	ref, known, diags := im.to.withKeys(e, ctx)
	id, more := e.plainString(im.id, ctx, "id")
	e.report(append(diags, more...))
	if !known {
		return nil
	}
	to, diags := ref.whole()
	e.report(diags)
	if diags.HasErrors() || id == cty.NilVal {
		return nil
	}
	if problem := e.checkTarget(to, im.to.rng); problem != nil {
		e.report(hcl.Diagnostics{problem})
		return nil
	}
	kind, _ := schema.Lookup(to.Kind)
	addr, err := kind.ParseKey(id.AsString())
	if err != nil {
		d := failAt(im.id.Range(), "Invalid id", "%s", sentence(err.Error()))
		d.Expression, d.EvalContext = im.id, ctx
		e.report(hcl.Diagnostics{d})
		return nil
	}
	return []schema.Import{{To: to, ID: addr, Range: im.rng}}
}

// checkTarget looks at whether an address is of one declared object.
func (e *evaluation) checkTarget(to schema.Address, rng hcl.Range) *hcl.Diagnostic {
	if to.Kind == "" {
		return failAt(rng, "Invalid import", "%s is a module, and an import takes over one object: write %s.KIND.LABEL.", to, to)
	}
	if target, problem := e.module.target(to, rng); problem != nil || target == nil {
		return problem
	}
	for _, step := range to.Modules {
		n := node{"module", step.Name}
		next := e.children[n][step.Key]
		if next == nil && e.values[n] == cty.DynamicVal {
			return nil
		}
		if next == nil {
			return unknownKey(n, step.Key, slices.Sorted(maps.Keys(e.children[n])), rng)
		}
		e = next
	}
	return e.checkKey(to, rng, true)
}

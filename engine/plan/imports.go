package plan

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// imports finds what import blocks take over.
func (b *builder) imports() {
	taken := map[*pair]schema.Import{}
	for i := range b.in.Desired.Imports {
		im := &b.in.Desired.Imports[i]
		if b.in.Mode != Normal {
			return
		}
		to := im.To.String()
		have, want := b.byAddr[im.ID], b.wantAt[to]
		if b.inPlace(im, to, have) {
			continue
		}
		if p, ok := b.refuse(im, have, want); ok {
			p.Range, p.Address = &im.Range, to
			b.problem(want, p)
			continue
		}
		if first, ok := taken[have]; ok || want.takes != nil {
			b.problem(want, Problem{
				Address: to, Range: &im.Range, Summary: fmt.Sprintf("%s is imported twice", im.ID),
				Detail: fmt.Sprintf("Another import block takes over %s as %s. One object has one address: remove one of them.",
					first.ID, first.To),
			})
			continue
		}
		taken[have], want.takes = *im, have
	}
}

// inPlace reports whether an import was applied before: it is kept in the file and says nothing more. It
// warns where the address has another object than the one to be imported.
func (b *builder) inPlace(im *schema.Import, to string, have *pair) bool {
	there := b.byBlock[to]
	if there == nil || there.kind.Name != im.To.Kind {
		return false
	}
	if have != nil && have != there {
		b.problem(there, Problem{
			Warning: true, Address: to, Range: &im.Range,
			Summary: fmt.Sprintf("%s is not imported", im.ID),
			Detail:  fmt.Sprintf("%s has an object already, %s. Import %s at another address, or remove the import block.", to, there.addr, im.ID),
		})
	}
	return true
}

// refuse says why an object cannot be imported.
func (b *builder) refuse(im *schema.Import, have, want *pair) (Problem, bool) {
	switch {
	case im.To.Kind != im.ID.Kind:
		return Problem{
			Summary: fmt.Sprintf("%s is not a %s", im.ID, im.To.Kind),
			Detail:  fmt.Sprintf("An import to %s takes the address of a %s.", im.To, im.To.Kind),
		}, true
	case have == nil:
		return Problem{
			Summary: fmt.Sprintf("%s does not exist", im.ID),
			Detail:  fmt.Sprintf("There is nothing of that name to import.%s", b.nearest(im.ID)),
		}, true
	case have.have.Stack == SystemStack:
		return Problem{
			Conflict: true,
			Summary:  fmt.Sprintf("%s belongs to qod itself", im.ID),
			Detail:   "What qod made by itself has no other owner. Write a new object of another name.",
		}, true
	case have.own:
		return Problem{
			Summary: fmt.Sprintf("%s belongs to this stack already", im.ID),
			Detail: fmt.Sprintf("It is at %s. To give it another address, write a moved block in place of the import:\n\n%s",
				have.at, movedBlock(have.at, im.To.String())),
		}, true
	case want == nil:
		return Problem{
			Summary: fmt.Sprintf("%s is not in the configuration", im.To),
			Detail: fmt.Sprintf("An object is imported to a block that describes it. For %s as it is now, write:\n\n%s",
				im.ID, blockOf(im.To, have)),
		}, true
	}
	return Problem{}, false
}

// nearest suggests an address of the same kind.
func (b *builder) nearest(addr schema.Addr) string {
	if hint := schema.DidYouMean(addr.Name(), b.siblings(addr)); hint != "" {
		return hint
	}
	var known []string
	for _, p := range b.stored {
		if p.kind.Name == addr.Kind {
			known = append(known, p.addr.String())
		}
	}
	return schema.DidYouMean(addr.String(), known)
}

// blockOf writes the block that describes a stored object, without what must not be shown.
func blockOf(to schema.Address, p *pair) string {
	file := hclwrite.NewEmptyFile()
	body := file.Body().AppendNewBlock(to.Kind, []string{to.Name}).Body()
	for _, a := range p.kind.Attrs {
		v := p.have.Spec.GetAttr(a.Name)
		if absent(v) || p.conceals(a.Name) || a.Name == "name" && v.AsString() == to.Name {
			continue
		}
		body.SetAttributeValue(a.Name, v)
	}
	for _, block := range p.kind.Blocks {
		if p.conceals(block.Name) {
			continue
		}
		for _, v := range Blocks(p.have.Spec.GetAttr(block.Name)) {
			nested := body.AppendNewBlock(block.Name, nil).Body()
			for _, a := range block.Attrs {
				if av := v.GetAttr(a.Name); !absent(av) {
					nested.SetAttributeValue(a.Name, av)
				}
			}
		}
	}
	return string(hclwrite.Format(file.Bytes()))
}

// conceals reports whether a stored attribute or block must not be shown.
func (p *pair) conceals(name string) bool {
	return p.kind.Secret(name) || slices.Contains(p.have.Sensitive, name)
}

// movedBlock writes a moved block.
func movedBlock(from, to string) string {
	return fmt.Sprintf("moved {\n  from = %s\n  to   = %s\n}\n", from, to)
}

// cannotImport refuses an import that would destroy what it takes over.
func (b *builder) cannotImport(p *pair) {
	b.problem(p, Problem{
		Address: p.at, Path: cty.GetAttrPath(p.diff.replaces[0]),
		Summary: fmt.Sprintf("%s cannot be imported as it is written", p.takes.addr),
		Detail: fmt.Sprintf("A change of %s would destroy it and make it anew. An import keeps what exists: write the value that it has.",
			listed(p.diff.replaces)),
	})
}

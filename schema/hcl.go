package schema

import (
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"
)

// Spec returns how a block body of this kind is decoded. References have any type here, since an
// author may give the referenced object itself; required attributes are not, since a reference may
// imply them. [Kind.Complete] judges both.
func (k *Kind) Spec() hcldec.ObjectSpec {
	spec := attrSpecs(k.Attrs)
	for _, b := range k.Blocks {
		nested := attrSpecs(b.Attrs)
		if b.Single {
			spec[b.Name] = &hcldec.BlockSpec{TypeName: b.Name, Nested: nested}
		} else {
			spec[b.Name] = &hcldec.BlockSetSpec{TypeName: b.Name, Nested: nested}
		}
	}
	return spec
}

func attrSpecs(attrs []Attr) hcldec.ObjectSpec {
	spec := hcldec.ObjectSpec{}
	for _, a := range attrs {
		t := a.Type
		if a.Ref != "" {
			t = cty.DynamicPseudoType
		}
		spec[a.Name] = &hcldec.AttrSpec{Name: a.Name, Type: t}
	}
	return spec
}

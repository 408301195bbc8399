package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	rs "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/numberdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Attributes that resources have beside those of their kind.
const (
	attrID        = "id"
	attrStack     = "stack"
	attrProtected = "protected"
	attrTimeouts  = "timeouts"
)

// digestOf names the attribute that tells that a secret changed, for those that have no version for it.
func digestOf(a *schema.Attr) string { return a.Name + "_digest" }

// digested reports whether a secret has such an attribute.
func digested(a *schema.Attr) bool { return a.Secret && a.Version == "" }

// tfSchema returns the schema of the resource of a kind.
func tfSchema(ctx context.Context, k *schema.Kind) rs.Schema {
	attrs := resourceAttrs(k.Attrs, true)
	for i := range k.Blocks {
		attrs[k.Blocks[i].Name] = resourceBlock(&k.Blocks[i])
	}
	for i := range k.Attrs {
		if a := &k.Attrs[i]; digested(a) {
			attrs[digestOf(a)] = rs.StringAttribute{
				Computed: true, MarkdownDescription: "SHA-256 of `" + a.Name + "`, which itself is not kept, to see that it changed.",
			}
		}
	}
	attrs[attrID] = rs.StringAttribute{
		Computed: true, MarkdownDescription: "The id. It never changes.",
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
	attrs[attrStack] = rs.StringAttribute{
		Computed: true, MarkdownDescription: "The stack that owns the " + k.Name + ": that of the provider.",
	}
	attrs[attrProtected] = rs.BoolAttribute{
		Optional: true, Computed: true, Default: booldefault.StaticBool(false),
		MarkdownDescription: "Refuses everybody to destroy the " + k.Name + ", until `false` was applied. Default: `false`.",
	}
	attrs[attrTimeouts] = timeouts.Attributes(ctx, timeouts.Opts{Create: true, Update: true, Delete: true})
	return rs.Schema{
		MarkdownDescription: k.Doc + "\n\nImport it by its key: `" + k.KeyForm() + "`.",
		Attributes:          attrs,
	}
}

// resourceAttrs are attributes of a resource or, with defaults, of an object in it. Elements of a set have no defaults:
// Terraform could not tell which element it is.
func resourceAttrs(attrs []schema.Attr, defaults bool) map[string]rs.Attribute {
	out := make(map[string]rs.Attribute, len(attrs))
	for i := range attrs {
		out[attrs[i].Name] = resourceAttr(&attrs[i], defaults)
	}
	return out
}

func resourceAttr(a *schema.Attr, defaults bool) rs.Attribute {
	required := a.Mode == schema.Required
	fallback, has := defaultOf(a)
	has = has && defaults
	words := a.Summary()
	switch {
	case a.Set():
		out := rs.SetAttribute{
			ElementType: types.StringType, Required: required, Optional: !required, Computed: has, MarkdownDescription: words,
		}
		if has {
			out.Default = setdefault.StaticValue(types.SetValueMust(types.StringType, []attr.Value{}))
		}
		return out
	case a.Type == cty.Bool:
		out := rs.BoolAttribute{Required: required, Optional: !required, Computed: has, MarkdownDescription: words}
		if has {
			out.Default = booldefault.StaticBool(fallback.True())
		}
		return out
	case a.Type == cty.Number:
		out := rs.NumberAttribute{Required: required, Optional: !required, Computed: has, MarkdownDescription: words}
		if has {
			out.Default = numberdefault.StaticBigFloat(fallback.AsBigFloat())
		}
		return out
	}
	out := rs.StringAttribute{
		Required: required, Optional: !required, Computed: has, Sensitive: a.Secret, WriteOnly: a.Secret, MarkdownDescription: words,
	}
	if has {
		out.Default = stringdefault.StaticString(fallback.AsString())
	}
	return out
}

// defaultOf returns what an attribute is when it is not written: its default, or the empty set.
func defaultOf(a *schema.Attr) (cty.Value, bool) {
	switch {
	case a.Mode == schema.Required:
		return cty.NilVal, false
	case a.Default != cty.NilVal:
		return a.Default, true
	case a.Set():
		return cty.SetValEmpty(a.Type.ElementType()), true
	}
	return cty.NilVal, false
}

func resourceBlock(b *schema.Block) rs.Attribute {
	words := b.Doc + " A change " + b.Effect.Words() + "."
	if b.Single {
		return rs.SingleNestedAttribute{Optional: true, MarkdownDescription: words, Attributes: resourceAttrs(b.Attrs, true)}
	}
	nested := rs.NestedAttributeObject{Attributes: resourceAttrs(b.Attrs, false)}
	return rs.SetNestedAttribute{
		Optional: true, Computed: true, MarkdownDescription: words, NestedObject: nested,
		Default: setdefault.StaticValue(types.SetValueMust(nested.Type(), []attr.Value{})),
	}
}

package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	ds "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/list"
	ls "github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

const attrObjects = "objects"

// filters are the arguments that choose among the objects of a kind, and what they mean.
func filters(k *schema.Kind) map[string]string {
	out := map[string]string{attrStack: "Only what this stack owns."}
	if _, ok := k.Attr(attrTenant); ok {
		out[attrTenant] = "Only what belongs to this tenant."
	}
	return out
}

func filterOf(a attributes) client.Filter {
	return client.Filter{Tenant: a.text(attrTenant), Stack: a.text(attrStack)}
}

// listingData is the data source of all objects of a kind.
type listingData struct {
	kind    *schema.Kind
	session *session
}

var _ datasource.DataSourceWithConfigure = (*listingData)(nil)

func (d *listingData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = typeName + "_" + d.kind.Name + "s"
}

func (d *listingData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := map[string]ds.Attribute{attrObjects: ds.MapNestedAttribute{
		Computed: true, MarkdownDescription: "The objects by their keys: `" + d.kind.KeyForm() + "`.",
		NestedObject: ds.NestedAttributeObject{Attributes: objectAttrs(d.kind)},
	}}
	for name, doc := range filters(d.kind) {
		attrs[name] = ds.StringAttribute{Optional: true, MarkdownDescription: doc}
	}
	resp.Schema = ds.Schema{MarkdownDescription: "Reads all objects of the kind " + d.kind.Name + ", whoever owns them.", Attributes: attrs}
}

func (d *listingData) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *listingData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	r := &kindResource{kind: d.kind, session: d.session}
	asked, ok := r.read(req.Config.Raw, &resp.Diagnostics)
	if !ok || !r.connected(&resp.Diagnostics) {
		return
	}
	objects := map[string]cty.Value{}
	for o, err := range d.session.client.List(ctx, d.kind.Name, filterOf(asked)) {
		var seen attributes
		if err == nil {
			seen, err = view(d.kind, o)
		}
		if err != nil {
			r.explain(&resp.Diagnostics, "list", schema.Addr{Kind: d.kind.Name, Path: "*"}, err)
			return
		}
		objects[o.Key] = cty.ObjectVal(seen)
	}
	t := resp.State.Schema.Type().TerraformType(ctx)
	whole, err := ctyType(t)
	if err == nil {
		asked[attrObjects] = cty.MapValEmpty(whole.AttributeType(attrObjects).ElementType())
		if len(objects) > 0 {
			asked[attrObjects] = cty.MapVal(objects)
		}
		resp.State.Raw, err = toTerraform(cty.ObjectVal(asked), t)
	}
	if err != nil {
		resp.Diagnostics.AddError("The server's answer cannot be read", err.Error())
	}
}

// kindList is what `terraform query` lists of a kind, to import it.
type kindList struct {
	kind    *schema.Kind
	session *session
}

var _ list.ListResourceWithConfigure = (*kindList)(nil)

func (l *kindList) Metadata(ctx context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	(&kindResource{kind: l.kind}).Metadata(ctx, req, resp)
}

func (l *kindList) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	attrs := map[string]ls.Attribute{}
	for name, doc := range filters(l.kind) {
		attrs[name] = ls.StringAttribute{Optional: true, MarkdownDescription: doc}
	}
	resp.Schema = ls.Schema{MarkdownDescription: "Lists all objects of the kind " + l.kind.Name + ".", Attributes: attrs}
}

func (l *kindList) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	l.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (l *kindList) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	r := &kindResource{kind: l.kind, session: l.session}
	whole := req.NewListResult(ctx)
	asked, ok := r.read(req.Config.Raw, &whole.Diagnostics)
	if !ok || !r.connected(&whole.Diagnostics) {
		stream.Results = slices.Values([]list.ListResult{whole})
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		left := req.Limit
		for o, err := range l.session.client.List(ctx, l.kind.Name, filterOf(asked)) {
			result := r.listed(ctx, req, o, err)
			if left--; !push(result) || left == 0 || err != nil {
				return
			}
		}
	}
}

func (r *kindResource) listed(ctx context.Context, req list.ListRequest, o client.Object, err error) list.ListResult {
	result := req.NewListResult(ctx)
	if err != nil {
		r.explain(&result.Diagnostics, "list", schema.Addr{Kind: r.kind.Name, Path: "*"}, err)
		return result
	}
	result.DisplayName = o.Addr().String()
	identify(ctx, result.Identity, o.ID, &result.Diagnostics)
	if !req.IncludeResource {
		return result
	}
	now, err := r.state(o, nothing(req.ResourceSchema.Type().TerraformType(ctx)))
	if err == nil {
		result.Resource.Raw, err = toTerraform(cty.ObjectVal(now), req.ResourceSchema.Type().TerraformType(ctx))
	}
	if err != nil {
		result.Diagnostics.AddError("The server's answer cannot be read", err.Error())
	}
	return result
}

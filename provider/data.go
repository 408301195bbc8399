package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	ds "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// Attributes that data sources have beside those of their kind and of resources.
const (
	attrAddress = "address"
	attrStatus  = "status"
	attrPhase   = "phase"
	attrReason  = "reason"
	attrTenant  = "tenant"
)

// objectData is the data source of one object, by its key.
type objectData struct {
	kind    *schema.Kind
	session *session
}

var _ datasource.DataSourceWithConfigure = (*objectData)(nil)

func (d *objectData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = typeName + "_" + d.kind.Name
}

func (d *objectData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attrs := objectAttrs(d.kind)
	for i := range d.kind.Attrs {
		a := &d.kind.Attrs[i]
		if d.kind.Identifies(a.Name) {
			required := a.Mode == schema.Required
			attrs[a.Name] = ds.StringAttribute{Required: required, Optional: !required, MarkdownDescription: a.Doc}
		}
	}
	resp.Schema = ds.Schema{MarkdownDescription: "Reads a " + d.kind.Name + ", whoever owns it. " + d.kind.Doc, Attributes: attrs}
}

func (d *objectData) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *objectData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	r := &kindResource{kind: d.kind, session: d.session}
	asked, ok := r.read(req.Config.Raw, &resp.Diagnostics)
	if !ok || !r.connected(&resp.Diagnostics) {
		return
	}
	at := d.kind.Addr(part(d.kind, asked))
	o, err := d.session.client.Get(ctx, at)
	if err != nil {
		r.explain(&resp.Diagnostics, "read", at, err)
		return
	}
	seen, err := view(d.kind, o)
	if err == nil {
		for name, v := range asked {
			if d.kind.Identifies(name) {
				seen[name] = v // as it was asked for, where cases differ
			}
		}
		resp.State.Raw, err = toTerraform(cty.ObjectVal(seen), resp.State.Schema.Type().TerraformType(ctx))
	}
	if err != nil {
		resp.Diagnostics.AddError("The server's answer cannot be read", err.Error())
	}
}

// objectAttrs are what a data source shows of an object.
func objectAttrs(k *schema.Kind) map[string]ds.Attribute {
	attrs := dataAttrs(k.Attrs)
	for i := range k.Blocks {
		b := &k.Blocks[i]
		if b.Single {
			attrs[b.Name] = ds.SingleNestedAttribute{Computed: true, MarkdownDescription: b.Doc, Attributes: dataAttrs(b.Attrs)}
			continue
		}
		attrs[b.Name] = ds.SetNestedAttribute{
			Computed: true, MarkdownDescription: b.Doc, NestedObject: ds.NestedAttributeObject{Attributes: dataAttrs(b.Attrs)},
		}
	}
	text := func(doc string) ds.StringAttribute {
		return ds.StringAttribute{Computed: true, MarkdownDescription: doc}
	}
	attrs[attrID] = text("The id. It never changes.")
	attrs[attrStack] = text("The stack that owns the " + k.Name + "; empty: none does.")
	attrs[attrAddress] = text("The block or resource that wrote it, as its stack calls it.")
	attrs[attrProtected] = ds.BoolAttribute{Computed: true, MarkdownDescription: "Whether it may not be destroyed."}
	attrs[attrStatus] = ds.SingleNestedAttribute{
		Computed: true, MarkdownDescription: "How far its outside is: databases, nodes.",
		Attributes: map[string]ds.Attribute{
			attrPhase:  text("`ready`, what is still to come, or empty for what has no outside."),
			attrReason: text("Why it is not ready."),
		},
	}
	return attrs
}

func dataAttrs(attrs []schema.Attr) map[string]ds.Attribute {
	out := make(map[string]ds.Attribute, len(attrs))
	for i := range attrs {
		a := &attrs[i]
		switch {
		case a.Secret:
		case a.Set():
			out[a.Name] = ds.SetAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: a.Doc}
		case a.Type == cty.Bool:
			out[a.Name] = ds.BoolAttribute{Computed: true, MarkdownDescription: a.Doc}
		case a.Type == cty.Number:
			out[a.Name] = ds.NumberAttribute{Computed: true, MarkdownDescription: a.Doc}
		default:
			out[a.Name] = ds.StringAttribute{Computed: true, MarkdownDescription: a.Doc}
		}
	}
	return out
}

// view returns what a data source shows of an object, with all defaults.
func view(k *schema.Kind, o client.Object) (attributes, error) {
	_, effective, err := o.Values(k)
	if err != nil {
		return nil, err
	}
	out := attributes(effective.AsValueMap())
	for i := range k.Attrs {
		if k.Attrs[i].Secret {
			delete(out, k.Attrs[i].Name)
		}
	}
	out[attrID], out[attrStack] = cty.StringVal(o.ID), cty.StringVal(o.Stack)
	out[attrAddress], out[attrProtected] = cty.StringVal(o.Address), cty.BoolVal(o.Protected)
	out[attrStatus] = cty.ObjectVal(map[string]cty.Value{
		attrPhase: cty.StringVal(o.Status.Phase), attrReason: cty.StringVal(o.Status.Reason),
	})
	return out, nil
}

package provider

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	es "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// tokenLife is how long a token lasts unless told. It is revoked at the end of the operation that asked for it.
const tokenLife = time.Hour

// markToken keeps the id of a token for its revocation.
const markToken = "token"

// token is the ephemeral resource of a personal access token.
type token struct{ session *session }

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*token)(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*token)(nil)
)

type tokenModel struct {
	User     types.String `tfsdk:"user"`
	Tenant   types.String `tfsdk:"tenant"`
	Name     types.String `tfsdk:"name"`
	Lifetime types.String `tfsdk:"lifetime"`
	ReadOnly types.Bool   `tfsdk:"read_only"`
	ID       types.String `tfsdk:"id"`
	Token    types.String `tfsdk:"token"`
	Expires  types.String `tfsdk:"expires"`
}

func (t *token) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = typeName + "_token"
}

func (t *token) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	optional := func(doc string) es.StringAttribute {
		return es.StringAttribute{Optional: true, MarkdownDescription: doc}
	}
	resp.Schema = es.Schema{
		MarkdownDescription: "A personal access token that lasts as long as the operation of Terraform that needs it: it is in no plan and no " +
			"state, and is revoked at the end.",
		Attributes: map[string]es.Attribute{
			"user":      optional("Whose it is. Only administrators make tokens of others. Default: the provider's own user."),
			attrTenant:  optional("The tenant of that user."),
			"name":      optional("What lists call it. Default: `terraform`."),
			"lifetime":  optional("How long it lasts when it is not revoked, as in `30m`. Default: `1h`."),
			"read_only": es.BoolAttribute{Optional: true, MarkdownDescription: "Whether it changes nothing. Default: `false`."},
			attrID:      es.StringAttribute{Computed: true, MarkdownDescription: "The token's id, which is no secret."},
			"token":     es.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "The token."},
			"expires":   es.StringAttribute{Computed: true, MarkdownDescription: "When it ends by itself, in RFC 3339."},
		},
	}
}

func (t *token) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	t.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (t *token) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m tokenModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	life := tokenLife
	if !m.Lifetime.IsNull() {
		var err error
		if life, err = schema.Duration(m.Lifetime.ValueString()); err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("lifetime"), "This is not a lifetime", err.Error())
			return
		}
	}
	if !t.session.known() {
		resp.Diagnostics.AddError("The provider is not configured", "Its arguments are not known yet, and this needs a server.")
		return
	}
	name := "terraform"
	if !m.Name.IsNull() {
		name = m.Name.ValueString()
	}
	made, err := t.session.client.NewToken(ctx, client.TokenRequest{
		User: m.User.ValueString(), Tenant: m.Tenant.ValueString(), Name: name, ReadOnly: m.ReadOnly.ValueBool(),
		Expires: time.Now().Add(life).UTC().Truncate(time.Second),
	})
	if err != nil {
		resp.Diagnostics.AddError("Cannot make a token", sentence(err.Error()))
		return
	}
	id, err := json.Marshal(made.ID)
	if err != nil {
		resp.Diagnostics.AddError("The provider is broken", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, markToken, id)...)
	m.ID, m.Token = types.StringValue(made.ID), types.StringValue(made.Secret)
	m.Expires = types.StringValue(made.Expires.Format(time.RFC3339))
	resp.Diagnostics.Append(resp.Result.Set(ctx, m)...)
}

func (t *token) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	raw, diags := req.Private.GetKey(ctx, markToken)
	resp.Diagnostics.Append(diags...)
	var id string
	if err := json.Unmarshal(raw, &id); err != nil || !t.session.known() {
		return // none was made
	}
	if err := t.session.client.RevokeToken(ctx, id); err != nil {
		resp.Diagnostics.AddWarning("Token "+id+" is not revoked", sentence(err.Error())+" It ends by itself, or with qod token revoke "+id+".")
	}
}

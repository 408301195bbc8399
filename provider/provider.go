package provider

import (
	"cmp"
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/path"
	fw "github.com/hashicorp/terraform-plugin-framework/provider"
	ps "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

const (
	typeName = "qod"
	// Address is what Terraform configurations call the provider.
	Address = "registry.terraform.io/qod-io/qod"
)

// Serve answers Terraform until it ends the program. With debug it waits for a debugger's Terraform instead.
func Serve(ctx context.Context, version string, debug bool) error {
	return providerserver.Serve(ctx, New(version), providerserver.ServeOpts{Address: Address, Debug: debug, ProtocolVersion: 6})
}

// New returns the constructor of the provider of that version.
func New(version string) func() fw.Provider {
	return func() fw.Provider { return &provider{version: version} }
}

type provider struct{ version string }

var (
	_ fw.ProviderWithFunctions          = (*provider)(nil)
	_ fw.ProviderWithEphemeralResources = (*provider)(nil)
	_ fw.ProviderWithListResources      = (*provider)(nil)
	_ fw.ProviderWithActions            = (*provider)(nil)
)

// settings are the provider's block.
type settings struct {
	Server   types.String `tfsdk:"server"`
	Token    types.String `tfsdk:"token"`
	User     types.String `tfsdk:"user"`
	Password types.String `tfsdk:"password"`
	CAFile   types.String `tfsdk:"ca_file"`
	Stack    types.String `tfsdk:"stack"`
}

func (c settings) unknown() bool {
	for _, v := range []types.String{c.Server, c.Token, c.User, c.Password, c.CAFile, c.Stack} {
		if v.IsUnknown() {
			return true
		}
	}
	return false
}

func (p *provider) Metadata(_ context.Context, _ fw.MetadataRequest, resp *fw.MetadataResponse) {
	resp.TypeName, resp.Version = typeName, p.version
}

func (p *provider) Schema(_ context.Context, _ fw.SchemaRequest, resp *fw.SchemaResponse) {
	optional := func(doc string) ps.StringAttribute {
		return ps.StringAttribute{Optional: true, MarkdownDescription: doc}
	}
	secret := func(doc string) ps.StringAttribute {
		return ps.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: doc}
	}
	resp.Schema = ps.Schema{
		MarkdownDescription: "Manages fleets of DuckDB nodes over the REST API of `qod serve`: exactly what qod's own configuration files " +
			"manage, with the same checks and owners.\n\nAn apply of Terraform is not atomic: changes that are made at the same time are " +
			"committed together, all others one after the other. `qod apply` makes one commit of a whole configuration.",
		Attributes: map[string]ps.Attribute{
			"server":   optional("URL of `qod serve`, as in `https://qod.example.com:20900`; http is for loopback addresses. Default: `QOD_SERVER`."),
			"token":    secret("A personal access token, as `qod token create` makes one. Default: `QOD_TOKEN`, unless `user` is given."),
			"user":     optional("The user to log in as: a name, or `TENANT/NAME`."),
			"password": secret("The user's password."),
			"ca_file":  optional("File with the certificates, in PEM, that the server's must go back to. Default: those of the system."),
			attrStack: ps.StringAttribute{
				Required: true,
				MarkdownDescription: "The stack: the name under which qod knows all objects of this configuration. One stack belongs to one " +
					"configuration, of Terraform or of qod.",
			},
		},
	}
}

// ValidateConfig says what can be said before anything is known of the server.
func (p *provider) ValidateConfig(ctx context.Context, req fw.ValidateConfigRequest, resp *fw.ValidateConfigResponse) {
	var c settings
	if resp.Diagnostics.Append(req.Config.Get(ctx, &c)...); resp.Diagnostics.HasError() {
		return
	}
	if name := c.Stack; !name.IsUnknown() && !name.IsNull() {
		if err := schema.CheckName(name.ValueString()); err != nil {
			resp.Diagnostics.AddAttributeError(path.Root(attrStack), "This is not the name of a stack", err.Error())
		}
	}
	if !c.Token.IsNull() && !c.User.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("user"), "Two ways to log in", "Give token or user, not both.")
	}
	if !c.User.IsNull() && c.Password.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("user"), "A user without a password", "Give password as well.")
	}
}

func (p *provider) Configure(ctx context.Context, req fw.ConfigureRequest, resp *fw.ConfigureResponse) {
	var c settings
	if resp.Diagnostics.Append(req.Config.Get(ctx, &c)...); resp.Diagnostics.HasError() {
		return
	}
	s := p.session(c, &resp.Diagnostics)
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData, resp.ListResourceData, resp.ActionData = s, s, s, s, s
}

// session connects to nothing. Where the configuration is not known yet the session has no client: plans are then made
// without a look at the server.
func (p *provider) session(c settings, diags *diag.Diagnostics) *session {
	s := newSession(c.Stack.ValueString())
	if c.unknown() {
		return s
	}
	token := c.Token.ValueString()
	if c.Token.IsNull() && c.User.IsNull() {
		token = os.Getenv("QOD_TOKEN")
	}
	server := c.Server.ValueString()
	if c.Server.IsNull() {
		server = os.Getenv("QOD_SERVER")
	}
	if server == "" {
		diags.AddAttributeError(path.Root("server"), "No server", "Set server, or QOD_SERVER in the environment, to the URL of qod serve.")
		return nil
	}
	made, err := client.New(client.Config{
		Server: server, Token: token, User: c.User.ValueString(), Password: c.Password.ValueString(),
		CAFile: c.CAFile.ValueString(), Agent: "terraform-provider-qod/" + cmp.Or(p.version, "dev"), Log: logger(),
	})
	if err != nil {
		diags.AddError("The provider's configuration will not do", err.Error())
		return nil
	}
	s.client, s.batch = made, client.NewBatch(made, s.stack)
	return s
}

func (p *provider) Resources(context.Context) []func() resource.Resource {
	return forKinds(func(k *schema.Kind) resource.Resource { return &kindResource{kind: k} })
}

func (p *provider) DataSources(context.Context) []func() datasource.DataSource {
	one := forKinds(func(k *schema.Kind) datasource.DataSource { return &objectData{kind: k} })
	return append(one, forKinds(func(k *schema.Kind) datasource.DataSource { return &listingData{kind: k} })...)
}

func (p *provider) ListResources(context.Context) []func() list.ListResource {
	return forKinds(func(k *schema.Kind) list.ListResource { return &kindList{kind: k} })
}

func (p *provider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{func() action.Action { return &restart{} }}
}

func (p *provider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{func() ephemeral.EphemeralResource { return &token{} }}
}

func (p *provider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		func() function.Function { return keyFunction{} },
		func() function.Function { return parseKeyFunction{} },
	}
}

func forKinds[T any](of func(*schema.Kind) T) []func() T {
	var out []func() T
	for _, k := range schema.Kinds() {
		out = append(out, func() T { return of(k) })
	}
	return out
}

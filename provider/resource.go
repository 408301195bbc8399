package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// timeout is how long a change and its outside may take unless the resource says otherwise.
const timeout = 10 * time.Minute

// looks is how often an object that keeps moving on is looked at again.
const looks = 3

// kindResource is the resource of a kind.
type kindResource struct {
	kind    *schema.Kind
	session *session
}

var (
	_ resource.ResourceWithConfigure      = (*kindResource)(nil)
	_ resource.ResourceWithIdentity       = (*kindResource)(nil)
	_ resource.ResourceWithImportState    = (*kindResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*kindResource)(nil)
	_ resource.ResourceWithValidateConfig = (*kindResource)(nil)
)

// attributes are those of a resource, by name.
type attributes map[string]cty.Value

func (a attributes) text(name string) string {
	if v := a[name]; v != cty.NilVal && v.IsKnown() && !v.IsNull() {
		return v.AsString()
	}
	return ""
}

func (a attributes) isTrue(name string) bool {
	v := a[name]
	return v != cty.NilVal && v.IsKnown() && !v.IsNull() && v.True()
}

func (r *kindResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = typeName + "_" + r.kind.Name
}

func (r *kindResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = tfSchema(ctx, r.kind)
}

// IdentitySchema has the id alone: names change.
func (r *kindResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		attrID: identityschema.StringAttribute{RequiredForImport: true, Description: "The id of the " + r.kind.Name + "."},
	}}
}

func (r *kindResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig has the kind's own checks judge what is known.
func (r *kindResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	written, ok := r.read(req.Config.Raw, &resp.Diagnostics)
	if !ok {
		return
	}
	_, problems := r.kind.Complete(part(r.kind, written))
	for _, p := range problems {
		report(&resp.Diagnostics, pathOf(p.Path), fmt.Sprintf("This is not a %s", r.kind.Name), p.Message)
	}
}

func (r *kindResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	planned, ok := r.read(req.Plan.Raw, &resp.Diagnostics)
	written, ok2 := r.read(req.Config.Raw, &resp.Diagnostics)
	if !ok || !ok2 || !r.connected(&resp.Diagnostics) {
		return
	}
	at := r.kind.Addr(part(r.kind, written))
	if !r.session.create(at) {
		resp.Diagnostics.AddError(fmt.Sprintf("%s is written twice", at), "Another resource of this configuration made it during this apply.")
		return
	}
	change, err := r.put(written, planned)
	var o client.Object
	if err == nil {
		o, err = r.session.batch.Put(ctx, change, at)
	}
	if err != nil {
		r.session.forget(at)
		r.explain(&resp.Diagnostics, "create", at, err)
		return
	}
	if r.keep(ctx, o, planned, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics) {
		limit := within(ctx, &req.Plan, timeouts.Value.Create, &resp.Diagnostics)
		r.awaitReady(ctx, o, limit, &resp.Diagnostics)
	}
}

func (r *kindResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	prior, ok := r.read(req.State.Raw, &resp.Diagnostics)
	if !ok {
		return
	}
	id := prior.text(attrID)
	identify(ctx, resp.Identity, id, &resp.Diagnostics)
	if !r.session.known() {
		return // the state stays as it is until there is a server to ask
	}
	o, err := r.session.client.ByID(ctx, id)
	switch {
	case client.Is(err, client.NotFound) || err == nil && o.Deleting:
		resp.State.RemoveResource(ctx)
	case err != nil:
		r.explain(&resp.Diagnostics, "read", r.kind.Addr(part(r.kind, prior)), err)
	default:
		r.keep(ctx, o, prior, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics)
	}
}

func (r *kindResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	prior, ok := r.read(req.State.Raw, &resp.Diagnostics)
	planned, ok2 := r.read(req.Plan.Raw, &resp.Diagnostics)
	written, ok3 := r.read(req.Config.Raw, &resp.Diagnostics)
	if !ok || !ok2 || !ok3 || !r.connected(&resp.Diagnostics) {
		return
	}
	at := r.kind.Addr(part(r.kind, prior))
	change, err := r.put(written, planned)
	if err != nil {
		r.explain(&resp.Diagnostics, "update", at, err)
		return
	}
	change.Key, change.IfMatch = at.Path, seenOf(ctx, req.Private).Revision
	change.TakeOver = prior.text(attrStack) != r.session.stack
	o, err := r.update(ctx, change, prior, planned)
	if err != nil {
		r.explain(&resp.Diagnostics, "update", at, err)
		return
	}
	if change.TakeOver {
		resp.Diagnostics.Append(setMark(ctx, resp.Private, markImported, imported{Done: true})...)
	}
	if r.keep(ctx, o, planned, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics) {
		limit := within(ctx, &req.Plan, timeouts.Value.Update, &resp.Diagnostics)
		r.awaitReady(ctx, o, limit, &resp.Diagnostics)
	}
}

// update puts an object as it was seen at prior. Where it moved on since, that may be this apply's doing: a reference
// follows what it names when that is renamed. So the object is looked at again, by its id, and what was found must be
// as it was seen or as it is planned.
func (r *kindResource) update(ctx context.Context, change client.Change, prior, planned attributes) (client.Object, error) {
	for n := 0; ; n++ {
		if n > 0 || r.moves(prior, planned) {
			now, err := r.look(ctx, prior, planned)
			if err != nil {
				return client.Object{}, err
			}
			change.Key, change.IfMatch = now.Key, now.Revision
		}
		o, err := r.session.batch.Put(ctx, change, r.kind.Addr(part(r.kind, planned)))
		if n == looks || !client.Is(err, client.Revision) && !client.Is(err, client.NotFound) {
			return o, err
		}
	}
}

// look returns the object as it is now, unless somebody else has changed it.
func (r *kindResource) look(ctx context.Context, prior, planned attributes) (client.Object, error) {
	o, err := r.session.client.ByID(ctx, prior.text(attrID))
	if err != nil {
		return o, err
	}
	if o.Deleting {
		return o, fmt.Errorf("it is being deleted")
	}
	now, err := r.state(o, prior)
	if err != nil {
		return o, err
	}
	for _, name := range r.kind.Names() {
		if !r.same(name, now[name], prior[name]) && !r.same(name, now[name], planned[name]) {
			return o, fmt.Errorf("somebody changed its %s since this was planned: plan again", name)
		}
	}
	return o, nil
}

func (r *kindResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	prior, ok := r.read(req.State.Raw, &resp.Diagnostics)
	if !ok || !r.connected(&resp.Diagnostics) {
		return
	}
	limit := within(ctx, &req.State, timeouts.Value.Delete, &resp.Diagnostics)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	at := r.kind.Addr(part(r.kind, prior))
	if err := r.delete(ctx, prior.text(attrID)); err != nil {
		r.explain(&resp.Diagnostics, "delete", at, err)
		return
	}
	r.session.forget(at)
}

// delete ends an object and waits until nothing is left of it. Its name is not asked for: it may be another's by now.
func (r *kindResource) delete(ctx context.Context, id string) error {
	for n := 0; ; n++ {
		o, err := r.session.client.ByID(ctx, id)
		if err == nil && !o.Deleting {
			err = r.session.batch.Delete(ctx, client.Change{Kind: o.Kind, Key: o.Key, IfMatch: o.Revision})
		}
		switch {
		case n < looks && (client.Is(err, client.Revision) || client.Is(err, client.NotFound) && o.ID != ""):
			continue // it moved on between the two requests
		case client.Is(err, client.NotFound):
			return nil
		case err != nil:
			return err
		}
		return r.awaitGone(ctx, id)
	}
}

// ImportState takes a key, or the id where Terraform gives an identity.
func (r *kindResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if !r.connected(&resp.Diagnostics) {
		return
	}
	var o client.Object
	var err error
	if req.ID == "" && req.Identity != nil {
		var id types.String
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root(attrID), &id)...)
		if o, err = r.session.client.ByID(ctx, id.ValueString()); err == nil && o.Kind != r.kind.Name {
			err = fmt.Errorf("it is a %s", o.Kind)
		}
	} else {
		var at schema.Addr
		if at, err = r.kind.ParseKey(req.ID); err != nil {
			resp.Diagnostics.AddError("This is not the key of a "+r.kind.Name, err.Error())
			return
		}
		o, err = r.session.client.Get(ctx, at)
	}
	if err != nil {
		r.explain(&resp.Diagnostics, "import", schema.Addr{Kind: r.kind.Name, Path: req.ID}, err)
		return
	}
	if !r.keep(ctx, o, nil, &resp.State, resp.Identity, resp.Private, &resp.Diagnostics) {
		return
	}
	// To import is to say that the object is to be this stack's from now on.
	resp.Diagnostics.Append(setMark(ctx, resp.Private, markImported, imported{From: o.Stack})...)
}

// connected says that there is no server to ask, where there is none.
func (r *kindResource) connected(diags *diag.Diagnostics) bool {
	if !r.session.known() {
		diags.AddError("The provider is not configured", "Its arguments are not known yet, and this needs a server.")
		return false
	}
	return true
}

// put returns the change that writes what the configuration says, without Terraform's defaults: as qod's own
// configuration would.
func (r *kindResource) put(written, planned attributes) (client.Change, error) {
	spec, err := r.kind.Encode(part(r.kind, written))
	if err != nil {
		return client.Change{}, err
	}
	return client.Change{Kind: r.kind.Name, Spec: json.RawMessage(spec), Protected: planned.isTrue(attrProtected)}, nil
}

// read returns the attributes of a configuration, plan or state that is not null.
func (r *kindResource) read(raw tftypes.Value, diags *diag.Diagnostics) (attributes, bool) {
	v, err := fromTerraform(raw)
	if err != nil {
		diags.AddError("The provider is broken", err.Error())
		return nil, false
	}
	return v.AsValueMap(), true
}

// keep writes an object into Terraform's state, as state reads it, with its identity and revision.
func (r *kindResource) keep(
	ctx context.Context, o client.Object, last attributes, into *tfsdk.State, identity *tfsdk.ResourceIdentity, private marks,
	diags *diag.Diagnostics,
) bool {
	t := into.Schema.Type().TerraformType(ctx)
	if last == nil {
		last = nothing(t)
	}
	now, err := r.state(o, last)
	if err != nil {
		diags.AddError("The server's answer cannot be read", err.Error())
		return false
	}
	if into.Raw, err = toTerraform(cty.ObjectVal(now), t); err != nil {
		diags.AddError("The server's answer cannot be read", err.Error())
		return false
	}
	identify(ctx, identity, o.ID, diags)
	diags.Append(setMark(ctx, private, markSeen, seen{Revision: o.Revision})...)
	return !diags.HasError()
}

// nothing returns the attributes of an object of that type without values.
func nothing(t tftypes.Type) attributes {
	out := attributes{}
	whole, err := ctyType(t)
	if err != nil {
		return out // toTerraform will say so
	}
	for name, at := range whole.AttributeTypes() {
		out[name] = cty.NullVal(at)
	}
	return out
}

// state returns what Terraform is to know of an object. Where an attribute says the same as the last one, that stays, so
// that Terraform sees no change in another way to write it.
func (r *kindResource) state(o client.Object, last attributes) (attributes, error) {
	spec, effective, err := o.Values(r.kind)
	if err != nil {
		return nil, err
	}
	now := maps.Clone(last)
	for i := range r.kind.Attrs {
		a := &r.kind.Attrs[i]
		now[a.Name] = effective.GetAttr(a.Name)
		if a.Secret {
			now[a.Name] = cty.NullVal(a.Type)
		}
	}
	for i := range r.kind.Blocks {
		b := &r.kind.Blocks[i]
		if now[b.Name] = effective.GetAttr(b.Name); b.Single {
			continue
		}
		if now[b.Name] = spec.GetAttr(b.Name); now[b.Name].IsNull() {
			now[b.Name] = cty.SetValEmpty(now[b.Name].Type().ElementType())
		}
	}
	for _, name := range r.kind.Names() {
		if was := last[name]; !was.IsNull() && r.same(name, now[name], was) {
			now[name] = was
		}
	}
	now[attrID], now[attrStack], now[attrProtected] = cty.StringVal(o.ID), cty.StringVal(o.Stack), cty.BoolVal(o.Protected)
	return now, nil
}

func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, id string, diags *diag.Diagnostics) {
	if identity != nil {
		diags.Append(identity.SetAttribute(ctx, path.Root(attrID), id)...)
	}
}

package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// ModifyPlan says what the apply will do, and what of it the server will refuse.
func (r *kindResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior attributes
	ok := true
	if !req.State.Raw.IsNull() {
		prior, ok = r.read(req.State.Raw, &resp.Diagnostics)
	}
	if !ok || r.session == nil {
		return
	}
	if req.Plan.Raw.IsNull() {
		r.planDestroy(prior, &resp.Diagnostics)
		return
	}
	planned, ok := r.read(req.Plan.Raw, &resp.Diagnostics)
	written, ok2 := r.read(req.Config.Raw, &resp.Diagnostics)
	if !ok || !ok2 {
		return
	}
	r.fill(prior, planned, written)
	raw, err := toTerraform(cty.ObjectVal(planned), req.Plan.Raw.Type())
	if err != nil {
		resp.Diagnostics.AddError("The provider is broken", err.Error())
		return
	}
	resp.Plan.Raw = raw
	if prior != nil {
		r.planOwner(ctx, prior, req.Private, &resp.Diagnostics)
		resp.RequiresReplace = r.planReplace(prior, planned, &resp.Diagnostics)
	}
	r.survey(ctx, prior, planned, len(resp.RequiresReplace) == 0, &resp.Diagnostics)
}

// fill sets what only the provider knows: whose the object will be, and whether secrets without a version changed.
func (r *kindResource) fill(prior, planned, written attributes) {
	switch {
	case r.session.stack != "":
		planned[attrStack] = cty.StringVal(r.session.stack)
	case prior != nil:
		planned[attrStack] = prior[attrStack]
	}
	for i := range r.kind.Attrs {
		if a := &r.kind.Attrs[i]; digested(a) {
			planned[digestOf(a)] = digest(written[a.Name])
		}
	}
}

func digest(v cty.Value) cty.Value {
	switch {
	case !v.IsKnown():
		return cty.UnknownVal(cty.String)
	case v.IsNull():
		return v
	}
	sum := sha256.Sum256([]byte(v.AsString()))
	return cty.StringVal(hex.EncodeToString(sum[:]))
}

// planDestroy refuses what the server would refuse in the middle of an apply.
func (r *kindResource) planDestroy(prior attributes, diags *diag.Diagnostics) {
	at := r.kind.Addr(part(r.kind, prior))
	r.session.plan(&at, nil, false)
	if prior.isTrue(attrProtected) {
		diags.AddAttributeError(path.Root(attrProtected), fmt.Sprintf("%s is protected and may not be destroyed", at),
			fmt.Sprintf("To destroy it, set %s = false and apply that first.", attrProtected))
	}
	if holds := r.kind.Holds; holds != "" && !prior.isTrue(holds) {
		diags.AddAttributeError(path.Root(holds), fmt.Sprintf("%s holds data and may not be destroyed", at),
			fmt.Sprintf("Destroying it would delete its data. To allow it, set %s = true, apply that, and then destroy it.", holds))
	}
}

// planOwner refuses to take what became another's since this configuration had it.
func (r *kindResource) planOwner(ctx context.Context, prior attributes, private marks, diags *diag.Diagnostics) {
	owner := prior.text(attrStack)
	if r.session.stack == "" || owner == r.session.stack || mayTake(ctx, private, owner) {
		return
	}
	diags.AddError(fmt.Sprintf("%s %s", r.kind.Addr(part(r.kind, prior)), ownedBy(owner)),
		fmt.Sprintf("It was taken over since stack %q had it. Remove it from this configuration and its state (terraform state rm), "+
			"or remove it from the state and import it again to take it back.", r.session.stack))
}

func ownedBy(stack string) string {
	if stack == "" {
		return "belongs to no stack"
	}
	return fmt.Sprintf("belongs to stack %q", stack)
}

// planReplace returns what cannot be changed in place.
func (r *kindResource) planReplace(prior, planned attributes, diags *diag.Diagnostics) path.Paths {
	var out path.Paths
	for _, name := range r.kind.Names() {
		out = append(out, r.replacing(name, prior, planned)...)
	}
	at := r.kind.Addr(part(r.kind, prior))
	switch {
	case len(out) == 0:
	case r.kind.Holds != "":
		diags.AddAttributeError(out[0], fmt.Sprintf("%s cannot be replaced", at),
			fmt.Sprintf("A change of %s would destroy it with its data and make it anew, which qod never does by itself. Keep the value, "+
				"or write a second %s beside it, move the data, and then remove this one.", out[0], r.kind.Name))
	case prior.isTrue(attrProtected):
		diags.AddAttributeError(out[0], fmt.Sprintf("%s is protected and may not be replaced", at),
			fmt.Sprintf("A change of %s would destroy it and make it anew. To allow that, set %s = false and apply that first.", out[0], attrProtected))
	}
	return out
}

func (r *kindResource) replacing(name string, prior, planned attributes) path.Paths {
	if b, ok := r.kind.Block(name); ok && b.Single && b.Effect != schema.Replace {
		return replacingIn(b, prior[name], planned[name])
	}
	if r.kind.EffectOf(name) != schema.Replace || r.same(name, prior[name], planned[name]) || r.followed(name, prior, planned) {
		return nil
	}
	return path.Paths{path.Root(name)}
}

func replacingIn(b *schema.Block, was, will cty.Value) path.Paths {
	if was.IsNull() || !will.IsKnown() || will.IsNull() {
		return nil
	}
	var out path.Paths
	for i := range b.Attrs {
		if a := &b.Attrs[i]; a.Effect == schema.Replace && !sameAttr(a, false, was.GetAttr(a.Name), will.GetAttr(a.Name)) {
			out = append(out, path.Root(b.Name).AtName(a.Name))
		}
	}
	return out
}

// followed reports whether a reference changes only since what it names is renamed in the same plan: in qod it follows
// by itself.
func (r *kindResource) followed(name string, prior, planned attributes) bool {
	was, ok := r.refs(prior)[name]
	will, ok2 := r.refs(planned)[name]
	if !ok || !ok2 || len(was) != len(will) {
		return false
	}
	for i := range was {
		if was[i] != will[i] && !r.session.follows(was[i], will[i]) {
			return false
		}
	}
	return true
}

// moves reports whether the apply renames what the object refers to.
func (r *kindResource) moves(prior, planned attributes) bool {
	for _, name := range r.kind.Names() {
		if a, ok := r.kind.Attr(name); ok && a.Ref != "" && !r.same(name, prior[name], planned[name]) {
			return true
		}
	}
	return false
}

// refs returns the references that are known, by attribute.
func (r *kindResource) refs(of attributes) map[string][]schema.Addr {
	known := maps.Clone(of)
	for name, v := range known {
		if !v.IsWhollyKnown() {
			known[name] = cty.NullVal(v.Type())
		}
	}
	out := map[string][]schema.Addr{}
	for _, ref := range r.kind.Refs(part(r.kind, known)) {
		out[ref.Attr] = append(out[ref.Attr], ref.To)
	}
	return out
}

// keyed returns the address of an object whose key is known.
func (r *kindResource) keyed(of attributes) (schema.Addr, bool) {
	for _, name := range r.kind.Names() {
		if r.kind.Identifies(name) && !of[name].IsKnown() {
			return schema.Addr{}, false
		}
	}
	return r.kind.Addr(part(r.kind, of)), true
}

// survey compares the plan with what the server has. What it cannot learn, the apply will tell.
func (r *kindResource) survey(ctx context.Context, prior, planned attributes, same bool, diags *diag.Diagnostics) {
	at, ok := r.keyed(planned)
	if !ok {
		return
	}
	if prior == nil {
		r.session.plan(nil, &at, false)
		r.surveyNew(ctx, at, diags)
	} else {
		now := r.kind.Addr(part(r.kind, prior))
		r.session.plan(&now, &at, same)
	}
	r.surveyRefs(ctx, prior, planned, diags)
}

// surveyNew says that what is to be created is there already.
func (r *kindResource) surveyNew(ctx context.Context, at schema.Addr, diags *diag.Diagnostics) {
	if !r.session.known() || r.session.had(at) {
		return
	}
	owner, exists, err := r.session.owner(ctx, at)
	switch {
	case err != nil || !exists:
	case owner != r.session.stack:
		diags.AddError(fmt.Sprintf("%s exists and %s", at, ownedBy(owner)),
			fmt.Sprintf("To have stack %q manage it from now on, import it: terraform import ADDRESS '%s'.", r.session.stack, at.Path))
	default:
		diags.AddWarning(fmt.Sprintf("%s exists already", at),
			fmt.Sprintf("It belongs to this stack, as after an apply that was interrupted. The apply takes it up and gives it the values of this "+
				"configuration; import it ('%s') to see before what changes.", at.Path))
	}
}

// surveyRefs warns of references to what neither exists nor is planned so far. It may be planned yet: Terraform knows
// the order only from references of its own.
func (r *kindResource) surveyRefs(ctx context.Context, prior, planned attributes, diags *diag.Diagnostics) {
	if !r.session.known() {
		return
	}
	had := map[string][]schema.Addr{}
	if prior != nil {
		had = r.refs(prior)
	}
	refs := r.refs(planned)
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		var missing []string
		for _, to := range refs[name] {
			if slices.Contains(had[name], to) || r.session.expected(to) {
				continue
			}
			if _, exists, err := r.session.owner(ctx, to); err == nil && !exists {
				missing = append(missing, to.String())
			}
		}
		if len(missing) > 0 {
			diags.AddAttributeWarning(path.Root(name), "There is no "+strings.Join(missing, " and no "),
				"If this configuration makes it, refer to it by its resource, as in qod_tenant.acme.name: only then Terraform makes it first.")
		}
	}
}

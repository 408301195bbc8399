package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/action/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/action"
	as "github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// restarted is the kind whose nodes can be replaced.
const restarted = "pool"

// restart is the action that has all nodes of a pool replaced.
type restart struct{ session *session }

var _ action.ActionWithConfigure = (*restart)(nil)

func (r *restart) kind() *schema.Kind {
	k, _ := schema.Lookup(restarted)
	return k
}

func (r *restart) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = typeName + "_" + restarted + "_restart"
}

func (r *restart) Schema(ctx context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	attrs := map[string]as.Attribute{attrTimeouts: timeouts.Attributes(ctx)}
	for _, part := range r.kind().Key {
		attrs[part] = as.StringAttribute{Required: true, MarkdownDescription: "The " + part + " of the " + restarted + "."}
	}
	resp.Schema = as.Schema{
		MarkdownDescription: "Has all nodes of a " + restarted + " replaced, and waits until that is done. A new node takes over before an old one " +
			"drains: what runs may end there, as when an attribute of the " + restarted + " changes that rolls.",
		Attributes: attrs,
	}
}

func (r *restart) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	r.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

// Invoke makes one request. Where Terraform is interrupted, the nodes are replaced all the same.
func (r *restart) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var wait timeouts.Value
	var parts []string
	for _, part := range r.kind().Key {
		var text types.String
		resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(part), &text)...)
		parts = append(parts, text.ValueString())
	}
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root(attrTimeouts), &wait)...)
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := wait.Invoke(ctx, timeout)
	resp.Diagnostics.Append(diags...)
	on := &kindResource{kind: r.kind(), session: r.session}
	if resp.Diagnostics.HasError() || !on.connected(&resp.Diagnostics) {
		return
	}
	at := schema.NewAddr(restarted, parts...)
	last, err := r.session.client.Restart(ctx, at, uuid.NewString())
	if err != nil {
		on.explain(&resp.Diagnostics, "restart", at, err)
		return
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	told := ""
	err = poll(limited, func() (bool, error) {
		now, err := r.session.client.ByID(limited, last.ID)
		if err != nil {
			return false, err
		}
		last = now
		if words := progress(now); words != told {
			resp.SendProgress(action.InvokeProgressEvent{Message: words})
			told = words
		}
		return isReady(now), nil
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		resp.Diagnostics.AddWarning(fmt.Sprintf("%s is not waited for", at), "Its nodes are being replaced, and were not when this was interrupted.\n"+why(last))
	case errors.Is(err, context.DeadlineExceeded):
		resp.Diagnostics.AddError(fmt.Sprintf("%s is not restarted after %s", at, limit), why(last)+"\n\nIts nodes go on being replaced.")
	default:
		on.explain(&resp.Diagnostics, "wait for", at, err)
	}
}

// progress says how far a restart is.
func progress(o client.Object) string {
	if isReady(o) {
		return fmt.Sprintf("%s: all nodes are new", o.Addr())
	}
	phases := map[string]int{}
	var order []string
	for _, n := range o.Status.Nodes {
		if phases[n.Phase]++; phases[n.Phase] == 1 {
			order = append(order, n.Phase)
		}
	}
	for i, phase := range order {
		order[i] = fmt.Sprintf("%d %s", phases[phase], phase)
	}
	return fmt.Sprintf("%s: nodes are replaced%s", o.Addr(), because(strings.Join(order, ", ")))
}

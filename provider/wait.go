package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/qod-io/qod/runtime/client"
)

const (
	firstLook = 50 * time.Millisecond
	maxLook   = 2 * time.Second
	ready     = "ready"
	serving   = "serving" // phase of a node that takes statements
)

// within returns how long an operation may take.
func within(
	ctx context.Context, from interface {
		GetAttribute(context.Context, path.Path, any) diag.Diagnostics
	}, which func(timeouts.Value, context.Context, time.Duration) (time.Duration, diag.Diagnostics), diags *diag.Diagnostics,
) time.Duration {
	var v timeouts.Value
	if diags.Append(from.GetAttribute(ctx, path.Root(attrTimeouts), &v)...); diags.HasError() {
		return timeout
	}
	limit, more := which(v, ctx, timeout)
	diags.Append(more...)
	return limit
}

// isReady reports whether nothing of the object's outside is missing. Kinds without one have no phase.
func isReady(o client.Object) bool { return o.Status.Phase == "" || o.Status.Phase == ready }

// awaitReady waits for the outside of an object. That time is up is an error. An interrupt is none: the object is what
// it should be, and an error would have Terraform make it anew the next time.
func (r *kindResource) awaitReady(ctx context.Context, o client.Object, limit time.Duration, diags *diag.Diagnostics) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := o
	err := poll(limited, func() (bool, error) {
		if isReady(last) {
			return true, nil
		}
		now, err := r.session.client.ByID(limited, o.ID)
		if err == nil {
			last = now
		}
		return err == nil && isReady(now), err
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		diags.AddWarning(fmt.Sprintf("%s is not waited for", o.Addr()), "It is written, and was not ready when this was interrupted.\n"+why(last))
	case errors.Is(err, context.DeadlineExceeded):
		diags.AddError(fmt.Sprintf("%s is not ready after %s", o.Addr(), limit),
			why(last)+"\n\nIt is written and may become ready yet. If Terraform wants to replace it then, `terraform untaint` keeps it.")
	default:
		r.explain(diags, "wait for", o.Addr(), err)
	}
}

// why says what of an object is missing.
func why(o client.Object) string {
	lines := []string{fmt.Sprintf("It is %s%s.", o.Status.Phase, because(o.Status.Reason))}
	for _, n := range o.Status.Nodes {
		if n.Phase != serving {
			lines = append(lines, fmt.Sprintf("Node %s (%s) is %s%s.", n.ID, n.Role, n.Phase, because(n.Reason)))
		}
	}
	return strings.Join(lines, "\n")
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(reason, ".")
}

// awaitGone waits until nothing is left of an object.
func (r *kindResource) awaitGone(ctx context.Context, id string) error {
	var last client.Object
	err := poll(ctx, func() (bool, error) {
		o, err := r.session.client.ByID(ctx, id)
		if client.Is(err, client.NotFound) {
			return true, nil
		}
		if err == nil {
			last = o
		}
		return false, err
	})
	if err != nil && ctx.Err() != nil && last.ID != "" {
		return fmt.Errorf("what it owns is not gone yet: %w\n%s", ctx.Err(), why(last))
	}
	return err
}

// poll asks until it is told to stop, less and less often.
func poll(ctx context.Context, ask func() (bool, error)) error {
	for pause := firstLook; ; pause = min(2*pause, maxLook) {
		done, err := ask()
		switch {
		case ctx.Err() != nil && !done:
			return ctx.Err()
		case done || err != nil:
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

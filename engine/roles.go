package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Insight is a look into databases, for warnings about roles that name what is not there.
type Insight interface {
	// Contents lists what a tenant_db holds now.
	Contents(ctx context.Context, o store.Object, secret func(attr string) ([]byte, error)) (schema.Contents, error)
}

// A plan looks into so many databases and waits so long for all of them: warnings are not worth more.
const (
	contentsLimit    = 64
	contentsAtOnce   = 8
	contentsDeadline = 5 * time.Second
)

// warnOfRoles adds to a plan what is likely a mistake in the configuration's roles.
func (e *Engine) warnOfRoles(ctx context.Context, snap *store.Snapshot, p *plan.Plan, desired schema.Desired) {
	if p.Mode != plan.Normal {
		return
	}
	judged := plan.Roles{Written: judgedRoles(p, desired)}
	if len(judged.Written) == 0 {
		return
	}
	judged.After = standing(snap, p.Changes)
	judged.Seen = e.contents(ctx, snap, named(judged))
	p.Problems = append(p.Problems, judged.Warnings()...)
}

// judgedRoles lists the roles of a configuration; of a partial plan, those that it changes.
func judgedRoles(p *plan.Plan, desired schema.Desired) []schema.Object {
	changed := map[string]bool{}
	for _, c := range p.Changes {
		changed[c.Address] = true
	}
	var out []schema.Object
	for _, o := range desired.Objects {
		if o.Kind.Name == "role" && (!p.Partial || changed[o.Address]) {
			out = append(out, o)
		}
	}
	return out
}

// standing is what there is after the changes.
func standing(snap *store.Snapshot, changes []plan.Change) []plan.Standing {
	changed := make(map[string]bool, len(changes))
	renamed := map[schema.Addr]string{}
	out := make([]plan.Standing, 0, len(snap.Objects)+len(changes))
	for _, c := range changes {
		if c.Action == plan.Forget {
			continue // it stays as it is stored
		}
		if c.ID != "" {
			changed[c.ID] = true
		}
		if c.Action == plan.Delete {
			continue
		}
		out = append(out, plan.Standing{ID: c.Target(), Kind: c.Kind, Spec: c.Spec, Sensitive: c.Sensitive})
		if c.Was.Kind != "" {
			renamed[c.Was] = c.Kind.NameOf(c.Spec)
		}
	}
	for _, o := range snap.Objects {
		if o.Tombstone || changed[o.ID] {
			continue
		}
		names := schema.Renames{}
		if len(renamed) > 0 {
			for _, ref := range o.Kind.Refs(o.Spec) {
				if now, ok := renamed[ref.To]; ok {
					names.Add(ref.Attr, ref.To.Name(), now)
				}
			}
		}
		out = append(out, plan.Standing{ID: o.ID, Kind: o.Kind, Spec: names.Apply(o.Spec), Sensitive: o.Sensitive})
	}
	return out
}

// named lists the ids of the databases that the roles name something in.
func named(r plan.Roles) []string {
	var databases []plan.Standing
	for _, o := range r.After {
		if o.Kind.Name == "tenant_db" {
			databases = append(databases, o)
		}
	}
	var ids []string
	for _, o := range r.Written {
		ids = append(ids, plan.Specific(o, databases)...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// contents looks into the databases that are ready. What does not answer in time was not seen.
func (e *Engine) contents(ctx context.Context, snap *store.Snapshot, ids []string) map[string]schema.Contents {
	if e.Insight == nil || len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, contentsDeadline)
	defer cancel()
	seen := map[string]schema.Contents{}
	var mu sync.Mutex
	var looking errgroup.Group
	looking.SetLimit(contentsAtOnce)
	left := contentsLimit
	for _, o := range snap.Objects {
		if _, wanted := slices.BinarySearch(ids, o.ID); !wanted || o.Tombstone || o.Status.Phase != store.Ready || left == 0 {
			continue
		}
		left--
		looking.Go(func() error {
			found, err := e.Insight.Contents(ctx, o, e.secretsOf(snap, o))
			if err != nil {
				e.Log.Debug("what a database holds is not known", "object", o.Addr().String(), "error", err)
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			seen[o.ID] = found
			return nil
		})
	}
	_ = looking.Wait() // nothing of it fails
	return seen
}

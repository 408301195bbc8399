package reconcile

import (
	"cmp"
	"fmt"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/schema"
)

// SpecFunc says how to run a node of a pool, with its keys and live settings.
type SpecFunc func(s *store.Snapshot, pool store.Object, role backend.Role) (backend.Spec, error)

// target is a pool with what is asked of it.
type target struct {
	desired
	id           string
	addr         schema.Addr
	tenant, name string
	live         backend.Live
	told         bool // live is known
}

// targets returns what the store asks of each pool, by id.
func targets(s *store.Snapshot, spec SpecFunc) map[string]target {
	index := map[schema.Addr]store.Object{}
	for _, o := range s.Objects {
		if !o.Tombstone {
			index[o.Addr()] = o
		}
	}
	all := map[string]target{}
	for _, o := range s.Objects {
		if o.Kind.Name != "pool" {
			continue
		}
		t := target{id: o.ID, addr: o.Addr(), name: o.Addr().Name(), tenant: o.Addr().Parts()[0]}
		t.fill(s, o, index, spec)
		all[o.ID] = t
	}
	return all
}

// unknown is the target of nodes whose pool is in no store.
func unknown(id string) target {
	return target{
		id: id, name: id, addr: schema.Addr{Kind: "pool", Path: id}, desired: desired{stop: "the pool is gone"},
	}
}

func (t *target) fill(s *store.Snapshot, o store.Object, index map[schema.Addr]store.Object, spec SpecFunc) {
	if o.Tombstone {
		t.stop = "the pool is deleted"
		return
	}
	pool, err := read[schema.Pool](o)
	if err != nil {
		t.hold = err.Error()
		return
	}
	t.stop, t.hold, err = admit(pool, index)
	if err != nil {
		t.hold = err.Error()
	}
	if t.stop != "" {
		return
	}
	t.specs, t.count = map[backend.Role]backend.Spec{}, map[backend.Role]int{}
	n := pool.Counts()
	for role, n := range map[backend.Role]int{backend.Dual: n.Dual, backend.Write: n.Write, backend.Read: n.Read} {
		if n == 0 {
			continue
		}
		t.count[role] = n
		sp, err := spec(s, o, role)
		if err != nil {
			t.hold = cmp.Or(t.hold, err.Error())
			continue
		}
		t.specs[role] = sp
		t.live, t.told = sp.Live, true
	}
}

// admit says why a pool's nodes must stop, or must not be started yet.
func admit(pool schema.Pool, index map[schema.Addr]store.Object) (stop, hold string, err error) {
	switch {
	case pool.Disabled:
		return "disabled", "", nil
	case pool.Suspended:
		return "suspended", "", nil
	}
	tenantObject, ok := index[schema.NewAddr("tenant", pool.Tenant)]
	if !ok {
		return "its tenant is gone", "", nil
	}
	tenant, err := read[schema.Tenant](tenantObject)
	if err != nil || tenant.Disabled {
		return ifNil(err, "its tenant is disabled"), "", err
	}
	object, ok := index[schema.NewAddr("tenant_db", pool.Tenant, pool.TenantDB)]
	if !ok {
		return "its database is gone", "", nil
	}
	db, err := read[schema.TenantDB](object)
	switch {
	case err != nil:
		return "", "", err
	case db.Disabled:
		return "its database is disabled", "", nil
	case object.Status.Phase == store.Deleting:
		return "its database is being deleted", "", nil
	case object.Status.Phase != store.Ready:
		return "", fmt.Sprintf("%s is not ready%s", object.Addr(), because(object.Status.Message)), nil
	}
	return "", "", nil
}

func ifNil(err error, text string) string {
	if err != nil {
		return ""
	}
	return text
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

func read[T any](o store.Object) (T, error) {
	var zero T
	v, err := o.Complete()
	if err != nil {
		return zero, err
	}
	return schema.As[T](v)
}

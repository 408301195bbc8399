package access

import (
	"errors"
	"sync"

	"github.com/qod-io/qod/engine/store"
)

// verifierAttr is the attribute under which a user's verifier is among the secrets.
const verifierAttr = "password_verifier"

// Directory answers who a caller is and what it may do, as of one snapshot. It is immutable and safe
// for concurrent use.
type Directory struct {
	revision store.Revision
	sealer   *store.Sealer
	secrets  map[store.SecretKey]store.Sealed
	dummy    string // a verifier for users that do not exist
	gate     *gate
	sessions

	users   map[string]*user   // by id
	names   map[string][]*user // by folded name, of all tenants
	tenants map[string]*tenant
	pools   map[path]*pool
	dbs     map[path]*database
	roles   map[path]*role
	groups  map[path][]string // the roles of a group
	grants  map[grantee][]string

	memo sync.Map // of accessKey to Access: what a caller got once it gets again
}

type path struct{ tenant, name string }

type grantee struct{ tenant, kind, name string }

type tenant struct {
	id, name string
	disabled bool
	issuer   *issuer // nil: only passwords and our own tokens log in
}

type database struct {
	name, schema string // schema: where sessions start
	disabled     bool
}

type pool struct {
	id, tenant, name, db string
	disabled, suspended  bool
	maxConcurrent        int
}

type user struct {
	id, name, tenant        string // no tenant: a system administrator
	system, admin, disabled bool
	roles, groups           []string
}

// New reads the snapshot. Verifiers stay sealed until somebody logs in.
func New(snap *store.Snapshot, sealer *store.Sealer) (*Directory, error) {
	if sealer == nil {
		return nil, errors.New("make directory: no sealer to open verifiers with")
	}
	d := &Directory{
		revision: snap.Revision, sealer: sealer, secrets: snap.Secrets, dummy: dummyVerifier(), gate: newGate(),
		sessions: newSessions(snap),
		users:    map[string]*user{}, names: map[string][]*user{}, tenants: map[string]*tenant{},
		pools: map[path]*pool{}, dbs: map[path]*database{}, roles: map[path]*role{},
		groups: map[path][]string{}, grants: map[grantee][]string{},
	}
	for i := range snap.Objects {
		if o := &snap.Objects[i]; !o.Tombstone {
			d.add(o)
		}
	}
	return d, nil
}

// Revision is that of the snapshot.
func (d *Directory) Revision() store.Revision { return d.revision }

// Name returns the name of the user of that id, "" if there is none.
func (d *Directory) Name(userID string) string {
	if u, ok := d.users[userID]; ok {
		return u.name
	}
	return ""
}

// Tenant returns the name of the tenant of the user of that id, "" if there is no such user or it has none.
func (d *Directory) Tenant(userID string) string {
	if u, ok := d.users[userID]; ok {
		return u.tenant
	}
	return ""
}

// Account is a user, and what it administers.
type Account struct {
	ID, Name string
	Tenant   string // "" for a system administrator
	System   bool   // administers all
	Admin    bool   // administers its tenant
}

// String returns the name, behind that of the tenant.
func (a Account) String() string {
	if a.Tenant == "" {
		return a.Name
	}
	return a.Tenant + "/" + a.Name
}

// Account returns the user of that id. Errors: ErrNoUser; a *DisabledError, also for one of its tenant.
func (d *Directory) Account(userID string) (Account, error) {
	if err := d.Barred(userID); err != nil {
		return Account{}, err
	}
	u := d.users[userID]
	if d.shut(u) {
		return Account{}, &DisabledError{"tenant " + u.tenant, "disabled"}
	}
	return Account{ID: u.id, Name: u.name, Tenant: u.tenant, System: u.system, Admin: u.admin}, nil
}

// Accounts lists all users, in no order.
func (d *Directory) Accounts() []Account {
	all := make([]Account, 0, len(d.users))
	for _, u := range d.users {
		all = append(all, Account{ID: u.id, Name: u.name, Tenant: u.tenant, System: u.system, Admin: u.admin})
	}
	return all
}

func (d *Directory) add(o *store.Object) {
	v := o.Spec
	at := path{text(o.Kind, v, "tenant"), text(o.Kind, v, "name")}
	switch o.Kind.Name {
	case "tenant":
		d.tenants[at.name] = &tenant{o.ID, at.name, truth(o.Kind, v, "disabled"), readIssuer(o)}
	case "tenant_db":
		d.dbs[at] = &database{at.name, text(o.Kind, v, "default_schema"), truth(o.Kind, v, "disabled")}
	case "pool":
		d.pools[at] = &pool{
			id: o.ID, tenant: at.tenant, name: at.name, db: text(o.Kind, v, "tenant_db"),
			disabled: truth(o.Kind, v, "disabled"), suspended: truth(o.Kind, v, "suspended"),
			maxConcurrent: number(o.Kind, v, "max_concurrent_per_node"),
		}
	case "role":
		d.roles[at] = readRole(o)
	case "group":
		d.groups[at] = set(v.GetAttr("roles"))
	case "user":
		d.addUser(o, at)
	case "pool_grant":
		d.addGrant(o, at.tenant)
	}
}

func (d *Directory) addUser(o *store.Object, at path) {
	u := &user{
		id: o.ID, name: at.name, tenant: at.tenant,
		system: truth(o.Kind, o.Spec, "system"), admin: truth(o.Kind, o.Spec, "admin"),
		disabled: truth(o.Kind, o.Spec, "disabled"),
		roles:    set(o.Spec.GetAttr("roles")), groups: set(o.Spec.GetAttr("groups")),
	}
	d.users[u.id] = u
	d.names[u.name] = append(d.names[u.name], u)
}

func (d *Directory) addGrant(o *store.Object, tenant string) {
	for _, kind := range []string{"user", "group", "role"} {
		if name := text(o.Kind, o.Spec, kind); name != "" {
			key := grantee{tenant, kind, name}
			d.grants[key] = append(d.grants[key], text(o.Kind, o.Spec, "pool"))
		}
	}
}

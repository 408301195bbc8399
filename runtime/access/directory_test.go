package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// world builds snapshots.
type world struct {
	t      testing.TB
	sealer *store.Sealer
	snap   *store.Snapshot
}

func newWorld(t testing.TB) *world {
	t.Helper()
	sealer, err := store.NewSealer(make([]byte, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	return &world{t, sealer, &store.Snapshot{Secrets: map[store.SecretKey]store.Sealed{}}}
}

func (w *world) add(kind, id, spec string) {
	w.t.Helper()
	k, ok := schema.Lookup(kind)
	if !ok {
		w.t.Fatalf("no kind %s", kind)
	}
	v, err := k.Decode([]byte(spec))
	if err != nil {
		w.t.Fatal(err)
	}
	w.snap.Objects = append(w.snap.Objects, store.Object{ID: id, Kind: k, Spec: v})
}

func (w *world) password(id, password string) {
	w.t.Helper()
	phc, err := Hash(password)
	if err != nil {
		w.t.Fatal(err)
	}
	key := store.SecretKey{Object: id, Attr: "password_verifier"}
	w.snap.Secrets[key] = w.sealer.Seal(key, []byte(phc))
}

func (w *world) directory() *Directory {
	w.t.Helper()
	d, err := New(w.snap, w.sealer)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// acme has two tenants; ana exists in both, ben and the e-mail address in one, root in none.
func acme(t testing.TB) *world {
	w := newWorld(t)
	for _, tenant := range []string{"acme", "zeta", "shut"} {
		w.add("tenant", "t-"+tenant, fmt.Sprintf(`{"name":%q,"disabled":%t}`, tenant, tenant == "shut"))
		w.add("tenant_db", "d-"+tenant, fmt.Sprintf(`{"tenant":%q,"name":"sales","kind":"ducklake"}`, tenant))
		w.add("pool", "p-"+tenant, fmt.Sprintf(`{"tenant":%q,"name":"bi","tenant_db":"sales"}`, tenant))
	}
	w.add("tenant_db", "d-off", `{"tenant":"acme","name":"off","kind":"ducklake","disabled":true}`)
	w.add("pool", "p-etl", `{"tenant":"acme","name":"etl","tenant_db":"sales","max_concurrent_per_node":3}`)
	w.add("pool", "p-off", `{"tenant":"acme","name":"off","tenant_db":"sales","disabled":true}`)
	w.add("pool", "p-sleep", `{"tenant":"acme","name":"sleep","tenant_db":"sales","suspended":true}`)
	w.add("pool", "p-dark", `{"tenant":"acme","name":"dark","tenant_db":"off"}`)
	w.add("role", "r-owner", `{"tenant":"acme","name":"owner","permission":[{"privileges":["all"]}]}`)
	w.add("role", "r-sales", `{"tenant":"acme","name":"sales","permission":[{"catalog":"sales","privileges":["all"]},{"catalog":"other","privileges":["all"]}]}`)
	w.add("group", "g-staff", `{"tenant":"acme","name":"staff","roles":["sales"]}`)
	w.add("user", "u-ana", `{"tenant":"acme","name":"ana","roles":["owner"]}`)
	w.add("user", "u-ana2", `{"tenant":"zeta","name":"ana"}`)
	w.add("user", "u-ben", `{"tenant":"acme","name":"ben","groups":["staff"]}`)
	w.add("user", "u-eve", `{"tenant":"acme","name":"eve","disabled":true}`)
	w.add("user", "u-tom", `{"tenant":"acme","name":"tom"}`)
	w.add("user", "u-all", `{"tenant":"acme","name":"all"}`)
	w.add("user", "u-boss", `{"tenant":"acme","name":"boss","admin":true}`)
	w.add("user", "u-mail", `{"tenant":"acme","name":"Ann@corp.com"}`)
	w.add("user", "u-shut", `{"tenant":"shut","name":"kim","admin":true}`)
	w.add("user", "u-root", `{"name":"root","system":true}`)
	w.add("pool_grant", "1", `{"tenant":"acme","pool":"bi","user":"ana"}`)
	w.add("pool_grant", "2", `{"tenant":"acme","pool":"bi","group":"staff"}`)
	w.add("pool_grant", "3", `{"tenant":"acme","pool":"etl","role":"sales"}`)
	w.add("pool_grant", "4", `{"tenant":"acme","pool":"*","user":"all"}`)
	for _, id := range []string{"u-ana", "u-ana2", "u-ben", "u-eve", "u-boss", "u-mail", "u-shut", "u-root"} {
		w.password(id, "pw-of-"+id)
	}
	return w
}

func TestAuthenticate(t *testing.T) {
	d := acme(t).directory()
	type want struct {
		id, tenant, pool string // no id: refused
	}
	tests := map[string]struct {
		login Login
		want  want
	}{
		"tenant by header":            {Login{User: "ana", Password: "pw-of-u-ana", Tenant: "acme"}, want{"u-ana", "acme", ""}},
		"the other tenant's":          {Login{User: "ana", Password: "pw-of-u-ana2", Tenant: "zeta"}, want{"u-ana2", "zeta", ""}},
		"tenant by name":              {Login{User: "ana@acme/bi", Password: "pw-of-u-ana"}, want{"u-ana", "acme", "bi"}},
		"name before header":          {Login{User: "ana@acme/bi", Password: "pw-of-u-ana", Tenant: "zeta", Pool: "x"}, want{"u-ana", "acme", "bi"}},
		"e-mail with tenant":          {Login{User: "ann@corp.com@acme/bi", Password: "pw-of-u-mail"}, want{"u-mail", "acme", "bi"}},
		"e-mail without":              {Login{User: "ANN@corp.com", Password: "pw-of-u-mail"}, want{"u-mail", "acme", ""}},
		"only one of that name":       {Login{User: "ben", Password: "pw-of-u-ben"}, want{"u-ben", "acme", ""}},
		"name in two tenants":         {Login{User: "ana", Password: "pw-of-u-ana"}, want{}},
		"system":                      {Login{User: "root", Password: "pw-of-u-root"}, want{"u-root", "", ""}},
		"system into a pool":          {Login{User: "root@zeta/bi", Password: "pw-of-u-root"}, want{"u-root", "zeta", "bi"}},
		"wrong password":              {Login{User: "ben", Password: "pw-of-u-ana"}, want{}},
		"empty password":              {Login{User: "ben"}, want{}},
		"unknown":                     {Login{User: "nobody", Password: "pw-of-u-ana"}, want{}},
		"unknown tenant":              {Login{User: "ana", Password: "pw-of-u-ana", Tenant: "none"}, want{}},
		"disabled":                    {Login{User: "eve", Password: "pw-of-u-eve"}, want{}},
		"tenant disabled":             {Login{User: "kim", Password: "pw-of-u-shut"}, want{}},
		"without a password":          {Login{User: "tom", Password: ""}, want{}},
		"without a password, guessed": {Login{User: "tom", Password: "nobody has this password"}, want{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := d.Authenticate(t.Context(), tc.login)
			if (tc.want.id == "") != errors.Is(err, ErrUnauthenticated) {
				t.Fatalf("err = %v", err)
			}
			if got := (want{p.UserID, p.Tenant, p.Pool}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// work is what a verification costs.
type work struct {
	memory, time uint32
	threads      uint8
	salt, hash   int
}

// count notes what each verification costs, and has it run as ever.
func (c *checks) count(t *testing.T) *[]work {
	t.Helper()
	done := &[]work{}
	check := c.check
	c.check = func(phc, password string) (bool, error) {
		v, err := parseVerifier(phc)
		if err != nil {
			t.Errorf("%q is verified, which costs nothing: %v", phc, err)
		}
		*done = append(*done, work{v.memory, v.time, v.threads, len(v.salt), len(v.hash)})
		return check(phc, password)
	}
	return done
}

// An unknown user must cost what a wrong password costs: without the dummy it is a thousand times less.
func TestUnknownUserCostsAsMuch(t *testing.T) {
	d := acme(t).directory()
	done := d.gate.checks.count(t)
	for _, user := range []string{"ben", "nobody", "ana", "tom"} {
		*done = nil
		if _, err := d.Authenticate(t.Context(), Login{User: user, Password: "wrong"}); !errors.Is(err, ErrUnauthenticated) {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]work{{hashMemory, hashTime, hashThreads, saltSize, hashSize}}, *done, cmp.AllowUnexported(work{})); diff != "" {
			t.Errorf("what %s costs (-what Hash makes +got):\n%s", user, diff)
		}
	}
}

func TestAuthenticateGivesUpWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := acme(t).directory().Authenticate(ctx, Login{User: "ben", Password: "pw-of-u-ben"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want that of the context", err)
	}
}

func TestHolderRemembersAcrossSwaps(t *testing.T) {
	w := acme(t)
	h := NewHolder(w.directory())
	done := h.gate.checks.count(t)
	login := Login{User: "ben", Password: "pw-of-u-ben"}
	if _, err := h.Authenticate(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	h.Swap(w.directory())
	for range 100 {
		if _, err := h.Authenticate(t.Context(), login); err != nil {
			t.Fatal(err)
		}
	}
	if len(*done) != 1 {
		t.Errorf("a password that is remembered was verified %d times", len(*done))
	}
	w.password("u-ben", "another one")
	h.Swap(w.directory())
	if _, err := h.Authenticate(t.Context(), login); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("the old password after a change: %v", err)
	}
}

func TestAuthorize(t *testing.T) {
	d := acme(t).directory()
	sales := wire.Permission{Catalog: "sales", Schema: "*", Table: "*", Privileges: []string{"all"}}
	admin := &wire.Permissions{Admin: true}
	tests := map[string]struct {
		user, tenant, pool string
		want               string            // the pool's id
		may                *wire.Permissions // nil: not looked at
		err                string
	}{
		"only grant":          {user: "u-ana", want: "p-acme", may: &wire.Permissions{Grants: []wire.Permission{sales}}},
		"explicit":            {user: "u-ana", tenant: "ACME", pool: "BI", want: "p-acme"},
		"by group":            {user: "u-ben", pool: "bi", want: "p-acme", may: &wire.Permissions{Grants: []wire.Permission{sales}}},
		"by role of group":    {user: "u-ben", pool: "etl", want: "p-etl"},
		"several":             {user: "u-ben", err: "choose with the headers tenant and pool among acme/bi, acme/etl"},
		"all pools":           {user: "u-all", pool: "etl", want: "p-etl", may: &wire.Permissions{}},
		"tenant admin":        {user: "u-boss", pool: "etl", want: "p-etl", may: admin},
		"system":              {user: "u-root", tenant: "zeta", want: "p-zeta", may: admin},
		"system must choose":  {user: "u-root", err: "acme/bi, acme/dark, acme/etl, acme/off, acme/sleep, shut/bi, zeta/bi"},
		"admin, other tenant": {user: "u-boss", tenant: "zeta", pool: "bi", err: "there is no pool zeta/bi, or it is not granted to you"},
		"not granted":         {user: "u-ana", pool: "etl", err: "there is no pool acme/etl, or it is not granted to you"},
		"no such pool":        {user: "u-ana", pool: "nil", err: "there is no pool acme/nil, or it is not granted to you"},
		"no grant":            {user: "u-tom", err: "no pool is granted to you"},
		"disabled user":       {user: "u-eve", pool: "bi", err: "user eve is disabled"},
		"gone user":           {user: "u-x", pool: "bi", err: "the user does not exist any more"},
		"disabled tenant":     {user: "u-shut", err: "tenant shut is disabled"},
		"disabled pool":       {user: "u-all", pool: "off", err: "pool acme/off is disabled"},
		"suspended pool":      {user: "u-all", pool: "sleep", err: "pool acme/sleep is suspended"},
		"disabled database":   {user: "u-all", pool: "dark", err: "the database of pool acme/dark is disabled"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second answer is remembered
				a, err := d.Authorize(tc.user, tc.tenant, tc.pool)
				if tc.err != "" {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Fatalf("err = %v, want %q", err, tc.err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if a.PoolID != tc.want || a.Database != "sales" || a.PermissionsHash != a.Permissions.Hash() || a.MaxConcurrent == 0 {
					t.Errorf("got %+v", a)
				}
				if tc.may == nil {
					continue
				}
				if diff := cmp.Diff(*tc.may, a.Permissions); diff != "" {
					t.Errorf("permissions (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestTombstonesDoNotCount(t *testing.T) {
	w := acme(t)
	for i := range w.snap.Objects {
		if w.snap.Objects[i].ID == "1" {
			w.snap.Objects[i].Tombstone = true
		}
	}
	var refused *PoolError
	if _, err := w.directory().Authorize("u-ana", "acme", "bi"); !errors.As(err, &refused) {
		t.Errorf("a deleted grant: err = %v", err)
	}
}

func TestVerifier(t *testing.T) {
	phc, err := Hash("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("verifier %q", phc)
	}
	// Made with the reference implementation: argon2 somesalt -id -t 2 -m 16 -p 1, of "password".
	const foreign = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	tests := map[string]struct {
		phc, password string
		ok, unusable  bool
	}{
		"right":        {phc: phc, password: "correct horse", ok: true},
		"wrong":        {phc: phc, password: "correct house"},
		"foreign":      {phc: foreign, password: "password", ok: true},
		"foreign, bad": {phc: foreign, password: "passwort"},
		"other kind":   {phc: "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", unusable: true},
		"too dear":     {phc: "$argon2id$v=19$m=99999999,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", unusable: true},
		"much memory":  {phc: "$argon2id$v=19$m=65537,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", unusable: true},
		"many passes":  {phc: "$argon2id$v=19$m=65536,t=9,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", unusable: true},
		"many threads": {phc: "$argon2id$v=19$m=65536,t=2,p=5$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", unusable: true},
		"no hash":      {phc: "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$", unusable: true},
		"empty":        {unusable: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ok, err := Verify(tc.phc, tc.password)
			if ok != tc.ok || (err != nil) != tc.unusable {
				t.Errorf("Verify = %t, %v", ok, err)
			}
		})
	}
}

func TestChecksAreBounded(t *testing.T) {
	c := newChecks()
	now := time.Now()
	for i := range 3 * checkLimit {
		c.learn(c.key("phc", fmt.Sprint(i)), now)
	}
	if len(c.good) > checkLimit {
		t.Errorf("%d passwords remembered", len(c.good))
	}
	if c.known(c.key("phc", fmt.Sprint(3*checkLimit-1)), now.Add(checkLife)) {
		t.Error("a password is remembered for ever")
	}
}

func TestFifteenThousandObjects(t *testing.T) {
	w := acme(t)
	for i := range 5000 {
		w.add("user", fmt.Sprintf("bulk-%d", i), fmt.Sprintf(`{"tenant":"acme","name":"user%d","roles":["owner","sales"],"groups":["staff"]}`, i))
		w.add("role", fmt.Sprintf("role-%d", i), fmt.Sprintf(`{"tenant":"acme","name":"role%d","permission":[{"privileges":["all"]}]}`, i))
		w.add("pool_grant", fmt.Sprintf("grant-%d", i), fmt.Sprintf(`{"tenant":"acme","pool":"bi","user":"user%d"}`, i))
	}
	start := time.Now()
	d := w.directory()
	took := time.Since(start)
	t.Logf("made in %s", took)
	if took > 2*time.Second {
		t.Errorf("a directory of 15,000 objects took %s", took)
	}
	if a, err := d.Authorize("bulk-4999", "", "bi"); err != nil || a.PoolID != "p-acme" {
		t.Errorf("got %+v, %v", a, err)
	}
}

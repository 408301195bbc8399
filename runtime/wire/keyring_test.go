package wire_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/wire"
)

func key(id int, fill byte) wire.Key {
	return wire.Key{ID: id, Key: bytes.Repeat([]byte{fill}, wire.KeySize)}
}

func keyring(t testing.TB, keys ...wire.Key) *wire.Keyring {
	t.Helper()
	r, err := wire.NewKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func seal(t testing.TB, r *wire.Keyring, p wire.Purpose, h wire.Handle) []byte {
	t.Helper()
	sealed, err := r.Seal(p, h)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func pool(t testing.TB, r *wire.Keyring, id string) *wire.Keyring {
	t.Helper()
	p, err := r.Pool(id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testHandle() wire.Handle {
	return wire.Handle{
		Kind: wire.Prepared, Node: "n", Incarnation: "i", Session: "s", User: "u", Statement: "q", Bind: "b",
		SQL: "SELECT 'ä'", Transaction: "x", ReadOnly: true, Issued: time.Unix(1, 2).UTC(),
	}
}

func TestSealAndOpen(t *testing.T) {
	old := keyring(t, key(1, 1))
	both := keyring(t, key(2, 2), key(1, 1))
	for name, from := range map[string]*wire.Keyring{"current key": both, "previous key": old} {
		sealed := seal(t, from, wire.PurposeHandle, testHandle())
		var got wire.Handle
		if err := both.Open(wire.PurposeHandle, sealed, &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(testHandle(), got); diff != "" {
			t.Errorf("%s: the handle changed (-sealed +opened):\n%s", name, diff)
		}
		if bytes.Contains(sealed, []byte("SELECT")) {
			t.Errorf("%s: the handle can be read", name)
		}
	}
	a, b := seal(t, both, wire.PurposeHandle, testHandle()), seal(t, both, wire.PurposeHandle, testHandle())
	if bytes.Equal(a, b) {
		t.Error("two seals of one value are equal: the nonce is used again")
	}
}

func TestOpenRefuses(t *testing.T) {
	cluster := keyring(t, key(2, 2), key(1, 1))
	poolA := pool(t, cluster, "a")
	good := func() []byte { return seal(t, poolA, wire.PurposeHandle, testHandle()) }
	flipped := func(i int) []byte {
		s := good()
		s[(i+len(s))%len(s)] ^= 1
		return s
	}
	tests := map[string]struct {
		by     *wire.Keyring
		as     wire.Purpose
		sealed []byte
	}{
		"nothing":               {poolA, wire.PurposeHandle, nil},
		"forged":                {poolA, wire.PurposeHandle, bytes.Repeat([]byte{1}, 100)},
		"only version and key":  {poolA, wire.PurposeHandle, []byte{wire.Version, 2}},
		"truncated in nonce":    {poolA, wire.PurposeHandle, good()[:8]},
		"truncated after nonce": {poolA, wire.PurposeHandle, good()[:14]},
		"truncated by one":      {poolA, wire.PurposeHandle, good()[:len(good())-1]},
		"one byte more":         {poolA, wire.PurposeHandle, append(good(), 0)},
		"version 0":             {poolA, wire.PurposeHandle, append([]byte{0}, good()[1:]...)},
		"later version":         {poolA, wire.PurposeHandle, append([]byte{wire.Version + 1}, good()[1:]...)},
		"other key number":      {poolA, wire.PurposeHandle, append([]byte{wire.Version, 1}, good()[2:]...)},
		"unknown key number":    {poolA, wire.PurposeHandle, append([]byte{wire.Version, 9}, good()[2:]...)},
		"flipped nonce":         {poolA, wire.PurposeHandle, flipped(2)},
		"flipped content":       {poolA, wire.PurposeHandle, flipped(20)},
		"flipped end":           {poolA, wire.PurposeHandle, flipped(-1)},
		"other purpose":         {poolA, wire.PurposeBearer, good()},
		"other pool":            {pool(t, cluster, "b"), wire.PurposeHandle, good()},
		"the cluster itself":    {cluster, wire.PurposeHandle, good()},
		"retired key":           {pool(t, keyring(t, key(3, 3)), "a"), wire.PurposeHandle, good()},
		"number used again":     {pool(t, keyring(t, key(2, 7)), "a"), wire.PurposeHandle, good()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var h wire.Handle
			if err := test.by.Open(test.as, test.sealed, &h); !errors.Is(err, wire.ErrSealed) {
				t.Errorf("error %v, want ErrSealed", err)
			}
			if diff := cmp.Diff(wire.Handle{}, h); diff != "" {
				t.Errorf("something came out:\n%s", diff)
			}
		})
	}
}

func TestNewKeyringRefuses(t *testing.T) {
	for name, keys := range map[string][]wire.Key{
		"no key":       nil,
		"number 0":     {key(0, 1)},
		"number 256":   {key(256, 1)},
		"short key":    {{ID: 1, Key: make([]byte, 16)}},
		"second short": {key(1, 1), {ID: 2}},
	} {
		if _, err := wire.NewKeyring(keys...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestPoolKeysAreIndependent(t *testing.T) {
	cluster := keyring(t, key(1, 1))
	a, again, b := pool(t, cluster, "a").Keys(), pool(t, cluster, "a").Keys(), pool(t, cluster, "b").Keys()
	if !bytes.Equal(a[0].Key, again[0].Key) {
		t.Error("a pool's key is not the same each time")
	}
	if bytes.Equal(a[0].Key, b[0].Key) || bytes.Equal(a[0].Key, cluster.Keys()[0].Key) {
		t.Error("two keys are equal")
	}
}

func TestPermissionsHash(t *testing.T) {
	grant := wire.Permission{Catalog: "*", Schema: "main", Table: "t", Privileges: []string{"select"}}
	moved, longer := grant, grant
	moved.Schema, moved.Table = "maint", ""
	longer.Privileges = []string{"select", ""}
	sets := map[string]wire.Permissions{
		"none":   {},
		"admin":  {Admin: true},
		"one":    {Grants: []wire.Permission{grant}},
		"two":    {Grants: []wire.Permission{grant, grant}},
		"moved":  {Grants: []wire.Permission{moved}},
		"longer": {Grants: []wire.Permission{longer}},
	}
	seen := map[string]string{}
	for name, p := range sets {
		h := p.Hash()
		if h != p.Hash() || len(h) != 24 {
			t.Errorf("%s: hash %q", name, h)
		}
		if other, dup := seen[h]; dup {
			t.Errorf("%s and %s have the same hash", name, other)
		}
		seen[h] = name
	}
}

func FuzzOpen(f *testing.F) {
	ring := keyring(f, key(2, 2), key(1, 1))
	sealed := seal(f, ring, wire.PurposeHandle, testHandle())
	f.Add(sealed)
	f.Add(sealed[:20])
	f.Add([]byte{wire.Version, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var h wire.Handle
		err := ring.Open(wire.PurposeHandle, raw, &h)
		// The seed was sealed in another process with the same key: it may open, and nothing else may.
		want := wire.Handle{}
		if err == nil {
			want = testHandle()
		}
		if !cmp.Equal(want, h) {
			t.Errorf("%x: %v, %+v", raw, err, h)
		}
	})
}

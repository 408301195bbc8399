// Package storetest is the meaning of the interfaces in package store, as tests that every
// implementation passes. What only one of them can show, such as the death of a process that holds a
// lease, is left to its own tests.
package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Bundle is an empty store, through each of its interfaces.
type Bundle struct {
	Store      store.Store
	Applies    store.Applies
	Nodes      store.Nodes
	Keys       store.Keys
	Statements store.Statements

	Tokens      store.Tokens
	Revocations store.Revocations
	Audit       store.Audit

	Sealer *store.Sealer // the one the store seals with
}

// Run runs the suite. The function returns a new, empty store each time.
func Run(t *testing.T, open func(t *testing.T) Bundle) {
	tests := []struct {
		name string
		run  func(*fixture)
	}{
		{"put and read back", putAndRead},
		{"order of a snapshot", snapshotOrder},
		{"generation and revision", generations},
		{"equal put", equalPut},
		{"all or nothing", allOrNothing},
		{"secrets", secrets},
		{"conflict names both values", conflictValues},
		{"conflict never shows a secret", conflictSecret},
		{"conflict without a difference", conflictOther},
		{"duplicate key", duplicateKey},
		{"duplicate address", duplicateAddress},
		{"dangling reference", dangling},
		{"malformed writes", malformed},
		{"swap of two names", swapNames},
		{"a name that means another object", relink},
		{"rename cascade", renameCascade},
		{"rename and what was applied", renameApplied},
		{"rename within a set", renameInSet},
		{"move away from referrers", moveAway},
		{"rename and rewrite in one commit", renameAndWrite},
		{"dependants", dependants},
		{"tombstones", tombstones},
		{"remove", removal},
		{"stack lineage", lineage},
		{"plans are single-use", planOnce},
		{"protection and sensitivity", protection},
		{"forget and take over", forgotten},
		{"history", history},
		{"history of refused commits", refusedHistory},
		{"outputs", outputs},
		{"outputs that stay", outputsLeft},
		{"end of an outside", endings},
		{"lost", losses},
		{"lost and back", returned},
		{"not lost", keptObjects},
		{"status", status},
		{"watch", watch},
		{"heartbeat", heartbeat},
		{"lease", lease},
		{"lease of a commit", leaseOfCommit},
		{"nodes", nodes},
		{"keys", keys},
		{"statements", statements},
		{"tokens", tokens},
		{"tokens of an object that is removed", orphanTokens},
		{"revocations", revocations},
		{"audit", audit},
		{"context", ended},
		{"concurrent commits", concurrent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(&fixture{T: t, Bundle: open(t)})
		})
	}
}

// patience is how long a test waits for what must come soon.
const patience = 30 * time.Second

type fixture struct {
	*testing.T
	Bundle
}

func (f *fixture) ctx() context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	f.Cleanup(cancel)
	return ctx
}

// Kind returns the kind of that name.
func Kind(t testing.TB, name string) *schema.Kind {
	t.Helper()
	k, ok := schema.Lookup(name)
	if !ok {
		t.Fatalf("there is no kind %q", name)
	}
	return k
}

// New returns a write that puts a new object with the value in JSON; it was also applied so, by stack s.
func New(t testing.TB, kind, json string) store.Write {
	t.Helper()
	k := Kind(t, kind)
	v, err := k.Decode([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return store.Write{
		ID: uuid.NewString(), Kind: k, Spec: v, Applied: v,
		Address: kind + "." + k.Addr(v).Path, Stack: "s",
	}
}

// Next returns a write that puts another value of an object.
func Next(t testing.TB, o store.Object, json string) store.Write {
	t.Helper()
	v, err := o.Kind.Decode([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return store.Write{
		ID: o.ID, Kind: o.Kind, Saw: o.Revision, Spec: v, Applied: v, Address: o.Address, Stack: o.Stack,
	}
}

func (f *fixture) commit(writes ...store.Write) store.Revision {
	f.Helper()
	change := store.Change{Writes: writes, By: "ann", From: "host"}
	if err := f.Store.Check(f.ctx(), change); err != nil {
		f.Fatalf("check: %v", err)
	}
	rev, err := f.Store.Commit(f.ctx(), change)
	if err != nil {
		f.Fatalf("commit: %v", err)
	}
	return rev
}

// refused commits a change that must fail with a ConflictError of that text, and leave all as it was.
func (f *fixture) refused(want string, writes ...store.Write) {
	f.Helper()
	before := f.snapshot()
	change := store.Change{Writes: writes, By: "bob"}
	checked := f.Store.Check(f.ctx(), change)
	_, err := f.Store.Commit(f.ctx(), change)
	if err == nil {
		f.Fatalf("commit went through, want: %s", want)
	}
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) {
		f.Fatalf("%v is not a ConflictError", err)
	}
	if diff := cmp.Diff(want, conflict.Error()); diff != "" {
		f.Errorf("error (-want +got):\n%s", diff)
	}
	if checked == nil || checked.Error() != err.Error() {
		f.Errorf("check: %v, want what the commit says: %v", checked, err)
	}
	f.same(before, f.snapshot())
}

func (f *fixture) same(want, got *store.Snapshot) {
	f.Helper()
	if diff := cmp.Diff(want, got, Compare()...); diff != "" {
		f.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func (f *fixture) snapshot() *store.Snapshot {
	f.Helper()
	s, err := f.Store.Snapshot(f.ctx())
	if err != nil {
		f.Fatalf("snapshot: %v", err)
	}
	return s
}

// object returns the object that the write made, as it is now.
func (f *fixture) object(w store.Write) store.Object {
	f.Helper()
	for _, o := range f.snapshot().Objects {
		if o.ID == w.ID {
			return o
		}
	}
	f.Fatalf("object %s is gone", w.ID)
	return store.Object{}
}

// addrs lists the addresses of all objects, tombstones with a "-" in front.
func (f *fixture) addrs() []string {
	f.Helper()
	var out []string
	for _, o := range f.snapshot().Objects {
		mark := ""
		if o.Tombstone {
			mark = "-"
		}
		out = append(out, mark+o.Addr().String())
	}
	return out
}

func (f *fixture) wantAddrs(want ...string) {
	f.Helper()
	if diff := cmp.Diff(want, f.addrs()); diff != "" {
		f.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// wantSpec compares a stored value with JSON.
func (f *fixture) wantSpec(w store.Write, json string) {
	f.Helper()
	o := f.object(w)
	f.wantValue(o.Kind, o.Spec, json)
}

func (f *fixture) wantValue(k *schema.Kind, v cty.Value, json string) {
	f.Helper()
	got, err := k.Encode(v)
	if err != nil {
		f.Fatal(err)
	}
	if diff := cmp.Diff(json, string(got)); diff != "" {
		f.Errorf("value (-want +got):\n%s", diff)
	}
}

// Compare returns what cmp needs to compare objects and snapshots.
func Compare() []cmp.Option {
	return []cmp.Option{
		cmp.Comparer(func(a, b cty.Value) bool {
			if a == cty.NilVal || b == cty.NilVal {
				return a == b
			}
			return a.RawEquals(b)
		}),
		cmp.Comparer(func(a, b *schema.Kind) bool { return a.Name == b.Name }),
	}
}

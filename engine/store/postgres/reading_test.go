package postgres_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/test/pgtest"
)

// A store reads again only what has changed: what it then has is what a store that was just opened reads.
func TestReadingAgain(t *testing.T) {
	url := pgtest.Database(t)
	first := openAt(t, url)
	read := func(s *postgres.Store) *store.Snapshot {
		t.Helper()
		snap, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	shows := func(step string) *store.Snapshot {
		t.Helper()
		have, want := read(first), read(openAt(t, url))
		if have.Revision != want.Revision || len(have.Objects) != len(want.Objects) || len(have.Secrets) != len(want.Secrets) {
			t.Fatalf("%s: revision %d with %d objects and %d secrets, want %d with %d and %d", step,
				have.Revision, len(have.Objects), len(have.Secrets), want.Revision, len(want.Objects), len(want.Secrets))
		}
		for i, o := range want.Objects {
			got := have.Objects[i]
			if got.ID != o.ID || got.Revision != o.Revision || !got.Spec.RawEquals(o.Spec) {
				t.Errorf("%s: %s is %v, want %v", step, o.Addr(), got, o)
			}
			if diff := cmp.Diff(o.Status, got.Status); diff != "" {
				t.Errorf("%s: status of %s (-want +got):\n%s", step, o.Addr(), diff)
			}
		}
		return have
	}
	empty := shows("empty")
	lease := acquireSoon(t, first, time.Second)
	if err := commitUnder(t, first, lease, "acme"); err != nil {
		t.Fatal(err)
	}
	made := shows("made")
	id := made.Objects[0].ID
	if shows("unchanged") != made {
		t.Error("nothing has changed, and all is read again")
	}
	status := store.Status{Phase: store.Ready, Generation: 1}
	if err := first.SetStatus(t.Context(), id, status, lease); err != nil {
		t.Fatal(err)
	}
	if ready := shows("ready"); ready.Objects[0].Status != status || made.Objects[0].Status == status {
		t.Errorf("status is %v, and was %v", ready.Objects[0].Status, made.Objects[0].Status)
	}
	if err := first.SetStatus(t.Context(), id, store.Status{}, lease); err != nil {
		t.Fatal(err)
	}
	shows("no status")
	if err := commitUnder(t, openAt(t, url), lease, "globex"); err != nil {
		t.Fatal(err)
	}
	shows("made by another process")
	if len(empty.Objects) != 0 {
		t.Error("an old snapshot changed")
	}
}

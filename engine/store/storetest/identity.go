package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
)

func heartbeat(f *fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	beats, ended := make(chan store.Revision, 100), make(chan error, 1)
	go func() { ended <- f.Store.Heartbeat(ctx, func(r store.Revision) { beats <- r }) }()
	next := func() store.Revision {
		select {
		case r := <-beats:
			return r
		case <-time.After(patience):
			f.Fatal("no beat")
			return 0
		}
	}
	for range 3 {
		if r := next(); r != 0 {
			f.Errorf("a beat at revision %d of an empty store", r)
		}
	}
	want := f.commit(New(f, "tenant", `{"name":"acme"}`))
	for next() != want {
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		f.Errorf("it ended with %v, want the context's error", err)
	}
}

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (f *fixture) owner() store.Write {
	f.Helper()
	w := New(f, "user", `{"name":"root","system":true}`)
	f.commit(w)
	return w
}

func (f *fixture) events() (actions []string) {
	f.Helper()
	all, err := f.Audit.ListEvents(f.ctx(), store.EventFilter{})
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range all {
		actions = append(actions, e.Action+" "+e.Object)
	}
	return actions
}

func tokens(f *fixture) {
	owner := f.owner()
	one := store.Token{ID: "b", Owner: owner.ID, Name: "ü", Hash: []byte{1, 0, 2}, Created: day, Expires: day.AddDate(0, 0, 30)}
	two := store.Token{ID: "a", Owner: owner.ID, Hash: []byte{3}, Created: day.Add(1234567), Expires: day.AddDate(0, 0, 1), ReadOnly: true}
	event := func(action, object string) store.Event { return store.Event{Action: action, Object: object, At: day} }
	add := func(t store.Token) error { return f.Tokens.AddToken(f.ctx(), t, event("token.create", t.ID)) }
	for _, t := range []store.Token{one, two} {
		if err := add(t); err != nil {
			f.Fatal(err)
		}
	}
	if err := add(one); err == nil {
		f.Error("an id was given twice")
	}
	for _, id := range []string{uuid.NewString(), "nobody"} {
		if err := add(store.Token{ID: "c", Owner: id}); !errors.Is(err, store.ErrNotFound) {
			f.Errorf("a token of nobody: %v", err)
		}
	}
	revoke := func(id string, at time.Time) error {
		return f.Tokens.RevokeToken(f.ctx(), id, at, store.Event{Action: "token.revoke", Object: id, At: day.Add(time.Hour)})
	}
	if err := revoke("none", day); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("revoking nothing: %v", err)
	}
	if err := revoke("b", day.Add(time.Hour)); err != nil {
		f.Fatal(err)
	}
	s := f.snapshot()
	if err := revoke("b", day.Add(2*time.Hour)); err != nil {
		f.Fatal(err)
	}
	f.same(s, f.snapshot())
	two.Created, one.Revoked = store.Stamp(two.Created), day.Add(time.Hour)
	if diff := cmp.Diff([]store.Token{two, one}, s.Tokens); diff != "" || s.Revision != 4 {
		f.Errorf("revision %d, tokens (-want +got):\n%s", s.Revision, diff)
	}
	want := []string{"token.revoke b", "token.create a", "token.create b"}
	if diff := cmp.Diff(want, f.events(), sorted()); diff != "" {
		f.Errorf("audit (-want +got):\n%s", diff)
	}
	if err := f.Tokens.ExpireTokens(f.ctx(), day.AddDate(0, 0, 2)); err != nil {
		f.Fatal(err)
	}
	if s = f.snapshot(); len(s.Tokens) != 1 || s.Tokens[0].ID != "b" || s.Revision != 5 {
		f.Errorf("revision %d, after expiry: %+v", s.Revision, s.Tokens)
	}
	if err := f.Tokens.ExpireTokens(f.ctx(), day.AddDate(0, 0, 2)); err != nil || f.snapshot().Revision != 5 {
		f.Errorf("nothing to expire wrote: %v", err)
	}
}

// sorted compares lists without their order: events of one moment have none.
func sorted() cmp.Option {
	return cmp.Transformer("counts", func(in []string) map[string]int {
		out := map[string]int{}
		for _, s := range in {
			out[s]++
		}
		return out
	})
}

func orphanTokens(f *fixture) {
	owner := f.owner()
	if err := f.Tokens.AddToken(f.ctx(), store.Token{ID: "a", Owner: owner.ID, Hash: []byte{3}, Created: day, Expires: day}, store.Event{}); err != nil {
		f.Fatal(err)
	}
	o := f.object(owner)
	f.commit(store.Write{Op: store.Bury, ID: o.ID, Kind: o.Kind, Saw: o.Revision})
	if got := f.snapshot().Tokens; len(got) != 1 {
		f.Errorf("a buried user has %d tokens", len(got))
	}
	o = f.object(owner)
	f.commit(store.Write{Op: store.Remove, ID: o.ID, Kind: o.Kind, Saw: o.Revision})
	if got := f.snapshot().Tokens; len(got) != 0 {
		f.Errorf("a removed user has %d tokens", len(got))
	}
}

func revocations(f *fixture) {
	revoke := func(r store.Revocation) error {
		return f.Revocations.Revoke(f.ctx(), r, store.Event{Action: "session.revoke", Object: r.Session + r.User})
	}
	for _, r := range []store.Revocation{
		{Session: "s", At: day, Expires: day.AddDate(0, 0, 1)},
		{User: "u", At: day.Add(2 * time.Hour), Expires: day.AddDate(0, 0, 2)},
		{User: "u", At: day.Add(time.Hour), Expires: day.AddDate(0, 0, 3)}, // of a clock that is behind
	} {
		if err := revoke(r); err != nil {
			f.Fatal(err)
		}
	}
	for _, bad := range []store.Revocation{{}, {Session: "s", User: "u"}} {
		if err := revoke(bad); err == nil {
			f.Errorf("%+v was accepted", bad)
		}
	}
	s := f.snapshot()
	want := []store.Revocation{
		{User: "u", At: day.Add(2 * time.Hour), Expires: day.AddDate(0, 0, 3)},
		{Session: "s", At: day, Expires: day.AddDate(0, 0, 1)},
	}
	if diff := cmp.Diff(want, s.Revoked); diff != "" || s.Revision != 3 {
		f.Errorf("revision %d, revoked (-want +got):\n%s", s.Revision, diff)
	}
	if diff := cmp.Diff([]string{"session.revoke s", "session.revoke u", "session.revoke u"}, f.events(), sorted()); diff != "" {
		f.Errorf("audit (-want +got):\n%s", diff)
	}
	if err := f.Revocations.ExpireRevocations(f.ctx(), day.AddDate(0, 0, 2)); err != nil {
		f.Fatal(err)
	}
	if got := f.snapshot().Revoked; len(got) != 1 || got[0].User != "u" {
		f.Errorf("after expiry: %+v", got)
	}
	// What changes with a commit and what changes without one come together.
	f.commit(New(f, "tenant", `{"name":"acme"}`))
	if got := f.snapshot(); len(got.Revoked) != 1 || len(got.Objects) != 1 {
		f.Errorf("after a commit: %+v", got)
	}
}

func audit(f *fixture) {
	var all []store.Event
	for i, at := range []time.Duration{0, time.Microsecond, time.Hour, 2 * time.Hour} {
		all = append(all, store.Event{
			ID: fmt.Sprintf("e%d", i), At: day.Add(at), User: "ana", Tenant: "acme", Realm: "password", From: "10.0.0.1", Action: "auth.login",
			Object: "s", Code: "c", Privilege: "select", Detail: "a 'ü\\' d", SQL: "SELECT ?",
		})
	}
	all[1].Action, all[2].Action, all[3].User = "auth.login.failure", "auth.lockout", "Ben"
	appendAll := func(events ...store.Event) {
		f.Helper()
		if err := f.Audit.AppendEvents(f.ctx(), events); err != nil {
			f.Fatal(err)
		}
	}
	appendAll()
	appendAll(all[2], all[0])
	appendAll(all...)
	tests := map[string]struct {
		filter store.EventFilter
		want   []int
	}{
		"all":               {store.EventFilter{}, []int{3, 2, 1, 0}},
		"limited":           {store.EventFilter{Limit: 2}, []int{3, 2}},
		"of a user":         {store.EventFilter{User: "BEN"}, []int{3}},
		"of a tenant":       {store.EventFilter{Tenant: "zeta"}, nil},
		"of an action":      {store.EventFilter{Action: "auth.lockout"}, []int{2}},
		"of actions":        {store.EventFilter{Action: "auth.login"}, []int{3, 1, 0}},
		"of part of a word": {store.EventFilter{Action: "auth.lo"}, nil},
		"of late":           {store.EventFilter{Since: day.Add(time.Hour)}, []int{3, 2}},
	}
	for name, tc := range tests {
		got, err := f.Audit.ListEvents(f.ctx(), tc.filter)
		if err != nil {
			f.Fatal(err)
		}
		var want []store.Event
		for _, i := range tc.want {
			want = append(want, all[i])
		}
		if diff := cmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
			f.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if err := f.Audit.ExpireEvents(f.ctx(), day.Add(time.Hour)); err != nil {
		f.Fatal(err)
	}
	if got := f.events(); len(got) != 2 {
		f.Errorf("after expiry: %v", got)
	}
	appendAll(store.Event{Detail: "no\x00text\xff", Action: "auth.login"}) // what no store takes is made fit
	if got := f.events(); len(got) != 3 {
		f.Errorf("after a damaged one: %v", got)
	}
}

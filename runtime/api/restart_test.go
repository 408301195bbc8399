package api_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// restart returns the last request to restart the pool, as the store has it.
func (s *site) restart(path string) store.Restart {
	s.Helper()
	snap, err := s.store.Snapshot(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	i := slices.IndexFunc(snap.Objects, func(o store.Object) bool { return "/pool/"+o.Addr().Path == path && o.Kind.Name == "pool" })
	if i < 0 {
		s.Fatalf("there is no %s", path)
	}
	return snap.Objects[i].Status.Restart
}

func TestRestart(t *testing.T) {
	s := newSite(t)
	ana, other := s.estate("acme"), s.estate("other")
	k, _ := schema.Lookup("pool")
	path := pathOf(k, "acme")
	before := s.do("GET", path, nil).want(200)
	if got := s.restart(path); got != (store.Restart{}) {
		t.Errorf("a new pool has the restart %+v", got)
	}
	s.do("POST", path+"/restart", `{}`).want(200, "kind=pool", "id="+before.get("id").(string))
	first := s.restart(path)
	if first.ID == "" || first.At.IsZero() {
		t.Errorf("the restart is %+v", first)
	}
	// The same request is one; another is another. An administrator of the tenant makes it as well.
	body := map[string]any{"id": uuid.NewString()}
	s.as(ana, "POST", path+"/restart", body).want(200)
	second := s.restart(path)
	if second == first || second.ID != body["id"] {
		t.Errorf("the second restart is %+v", second)
	}
	s.as(ana, "POST", path+"/restart", body).want(200)
	if third := s.restart(path); third != second {
		t.Errorf("the same request left %+v, and then %+v", second, third)
	}
	if after := s.do("GET", path, nil).want(200); after.header.Get("ETag") != before.header.Get("ETag") || after.get("generation") != before.get("generation") {
		t.Error("a restart is a change of the pool")
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if allow := s.do(method, path+"/restart", nil).want(405).header.Get("Allow"); allow != "POST" {
			t.Errorf("%s may be tried with %s", path, allow)
		}
	}
	s.do("PUT", "/pool/acme/restart", map[string]any{"stack": "acme", "spec": map[string]any{"tenant_db": "acme-tenant_db", "nodes": map[string]any{}}}).
		want(201, "key=acme/restart") // which is a name like others
	s.do("POST", "/pool/acme/restart", `{}`).want(405)
	s.do("POST", "/pool/acme/restart/restart", `{}`).want(200, "key=acme/restart")
	s.do("POST", "/pool/acme/none/restart", `{}`).want(404)
	s.do("POST", "/tenant/acme/restart", `{}`).want(405)
	s.do("POST", path+"/restart", `{"id":"one"}`).want(400, "path=id")
	s.do("POST", path+"/restart", `{"now":true}`).want(400, "path=now")
	s.as(other, "POST", path+"/restart", body).want(404)
	reader := s.do("POST", "/token", `{"read_only":true}`).want(201).get("token").(string)
	s.as("Bearer "+reader, "POST", path+"/restart", `{}`).want(403, "error=read_only")
	if last := s.restart(path); last != second {
		t.Errorf("what was refused left %+v", last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for _, e := range s.events {
		counts[e.Action+" "+e.Object]++
	}
	if got := counts["pool.restart pool"+"."+path[len("/pool/"):]]; got != 3 {
		t.Errorf("%d restarts are in the audit, want 3: %v", got, counts)
	}
	if got := counts["rest.refused "+path[1:]+"/restart"]; got != 2 {
		t.Errorf("%d refusals are in the audit, want 2: %v", got, counts)
	}
}

package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/schema"
)

// What is another tenant's looks to an administrator of a tenant as what nobody has: the same answer, to the byte.
func TestAdministratorOfATenantReachesNothingOfAnother(t *testing.T) {
	s := newSite(t)
	ana := s.estate("acme")
	s.estate("other")
	token := s.do("POST", "/token", `{"user":"other/other-admin","name":"other"}`).want(201).get("id").(string)
	revision := s.revision()
	// same holds two answers against each other, of which one is about a tenant that there is.
	same := func(method, format string, body func(tenant string) any) {
		t.Helper()
		is := s.as(ana, method, strings.ReplaceAll(format, "TENANT", "other"), body("other"))
		no := s.as(ana, method, strings.ReplaceAll(format, "TENANT", "nowhere"), body("nowhere"))
		if got := bytes.ReplaceAll(is.body, []byte("other"), []byte("nowhere")); is.status != no.status || !bytes.Equal(got, no.body) {
			t.Errorf("%s differs from what is not there: %d %s, %d %s", is.what, is.status, is.body, no.status, no.body)
		}
		if is.status < 400 && !strings.Contains(format, "?") {
			t.Errorf("%s was let through: %s", is.what, is.body)
		}
	}
	nothing := func(string) any { return nil }
	for _, k := range schema.Kinds() {
		path := pathOf(k, "TENANT")
		put := func(tenant string) any { return map[string]any{"stack": tenant, "spec": own(k, tenant)} }
		takeOver := func(tenant string) any {
			return map[string]any{"stack": "acme", "spec": own(k, tenant), "take_over": true}
		}
		name, v := free(k)
		patch := func(string) any { return map[string]any{"stack": "other", "spec": map[string]any{name: v}} }
		same("GET", path, nothing)
		same("PUT", path, put)
		same("PUT", path, takeOver)
		same("PUT", path, func(string) any { return map[string]any{"stack": "acme", "spec": own(k, "acme")} })
		same("PATCH", path, patch)
		same("DELETE", path+"?stack=TENANT", nothing)
		same("GET", "/"+k.Name+"?tenant=TENANT", nothing)
		for _, route := range []string{"/plan", "/apply"} {
			for _, change := range []map[string]any{{"action": "delete"}, {"action": "put"}, {"action": "put", "take_over": true, "if_match": 1}} {
				same("POST", route, func(tenant string) any { return oneChange(k, tenant, change) })
			}
		}
		// An object of its own does not get there by another name.
		if k.Name != "tenant" {
			s.as(ana, "PUT", pathOf(k, "acme"), map[string]any{"stack": "acme", "spec": own(k, "other")}).want(404)
		}
		id := s.do("GET", pathOf(k, "other"), nil).want(200).get("id").(string)
		s.as(ana, "GET", "/object/"+id, nil).want(404)
	}
	s.as(ana, "DELETE", "/token/"+token, nil).want(404)
	same("POST", "/token", func(tenant string) any { return map[string]any{"user": tenant + "-admin", "tenant": tenant} })
	s.as(ana, "POST", "/token", `{"user":"root"}`).want(404)
	s.as(ana, "GET", "/history", nil).want(404)
	s.as(ana, "POST", "/rollback", `{"stack":"acme","revision":1}`).want(404)
	for _, path := range s.readable() {
		if got := s.as(ana, "GET", path, nil); bytes.Contains(got.body, []byte("other")) {
			t.Errorf("%s shows another tenant: %s", path, got.body)
		}
	}
	if events := s.watched(ana, "/watch", "revision"); strings.Contains(events, "other") || !strings.Contains(events, "acme-pool") {
		t.Errorf("watched: %s", events)
	}
	if now := s.revision(); now != revision {
		t.Errorf("the store moved from %v to %v", revision, now)
	}
}

// oneChange is a request about the sample of a kind.
func oneChange(k *schema.Kind, tenant string, change map[string]any) any {
	c := map[string]any{"kind": k.Name, "key": strings.TrimPrefix(pathOf(k, tenant), "/"+k.Name+"/")}
	for name, v := range change {
		c[name] = v
	}
	if c["action"] == "put" {
		c["spec"] = own(k, tenant)
	}
	return map[string]any{"stack": tenant, "changes": []any{c}}
}

// own is a sample that an administrator of its tenant may write.
func own(k *schema.Kind, tenant string) map[string]any {
	spec := sample(k, tenant)
	for _, a := range k.Attrs {
		if a.Host {
			delete(spec, a.Name)
		}
	}
	return spec
}

func (s *site) revision() any {
	s.Helper()
	snap, err := s.store.Snapshot(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	objects := 0
	for _, o := range snap.Objects {
		objects += int(o.Revision)
	}
	return objects
}

// readable lists the paths that the description has a GET for, without open parts.
func (s *site) readable() []string {
	s.Helper()
	var document struct {
		Paths map[string]map[string]any
	}
	raw, err := api.OpenAPI("0")
	if err == nil {
		err = json.Unmarshal(raw, &document)
	}
	if err != nil {
		s.Fatal(err)
	}
	var paths []string
	for path, methods := range document.Paths {
		if methods["get"] != nil && !strings.Contains(path, "{") && path != "/watch" && path != "/openapi.json" {
			paths = append(paths, path)
		}
	}
	if len(paths) < 10 {
		s.Fatalf("only %v", paths)
	}
	return paths
}

// watched returns the events of a watch up to the first of that name.
func (s *site) watched(auth, path, until string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", auth)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	return s.next(got.Body, until)
}

// next reads up to the end of the first event of that name.
func (s *site) next(from io.Reader, until string) string {
	s.Helper()
	var out []byte
	one := make([]byte, 1)
	for {
		if _, err := io.ReadFull(from, one); err != nil {
			s.Fatalf("after %q: %v", out, err)
		}
		out = append(out, one[0])
		if i := bytes.Index(out, []byte("event: "+until+"\n")); i >= 0 && bytes.HasSuffix(out[i:], []byte("\n\n")) {
			return string(out)
		}
	}
}

func TestAdministratorOfATenantHasItsTenant(t *testing.T) {
	s := newSite(t)
	ana := s.estate("acme")
	s.as(ana, "GET", "/me", nil).want(200, "user=acme-admin", "tenant=acme", "scope=tenant", "read_only=false")
	for _, k := range reversed() {
		path := pathOf(k, "acme")
		before := s.as(ana, "GET", path, nil).want(200)
		for _, a := range k.Attrs {
			if !a.Host {
				continue
			}
			if before.get("effective."+a.Name) != nil || s.do("GET", path, nil).get("effective."+a.Name) == nil {
				t.Errorf("%s: %s is shown to a tenant's administrator, or to nobody", path, a.Name)
			}
			v := any("x")
			if a.Type.FriendlyName() == "bool" {
				v = true
			}
			s.as(ana, "PUT", path, map[string]any{"stack": "acme", "spec": with(own(k, "acme"), a.Name, v)}).want(403, "error=forbidden", "path=spec."+a.Name)
			s.as(ana, "PATCH", path, map[string]any{"stack": "acme", "spec": map[string]any{a.Name: v}}).want(403, "path=spec."+a.Name)
		}
		put := map[string]any{"stack": "acme", "spec": own(k, "acme")}
		if k.Bounds() {
			s.as(ana, "PUT", path, put).want(403, "error=forbidden")
			s.as(ana, "DELETE", path+"?stack=acme", nil).want(403)
			continue
		}
		s.as(ana, "PUT", path, put).want(200)
		s.as(ana, "DELETE", path+"?stack=acme", nil).want(200)
		s.as(ana, "PUT", path, put).want(201)
		s.as(ana, "DELETE", path+"?stack=acme", nil).want(200)
	}
	s.as(ana, "PUT", "/user/super", `{"stack":"acme","spec":{"system":true}}`).want(404)
	s.as(ana, "PUT", "/user/super", `{"stack":"acme","spec":{}}`).want(404)
	s.as(ana, "PUT", "/tenant/more", `{"stack":"acme","spec":{}}`).want(404)
}

// What a caller does not see stays as a system administrator wrote it.
func TestHostAttributesOutliveOthersPuts(t *testing.T) {
	s := newSite(t)
	ana := s.estate("acme")
	s.do("PATCH", "/pool/acme/acme-pool", `{"stack":"acme","spec":{"runtime":"local"}}`).want(200, "spec.runtime=local")
	s.as(ana, "PUT", "/pool/acme/acme-pool", map[string]any{"stack": "acme", "spec": map[string]any{"tenant_db": "acme-tenant_db"}}).want(200)
	s.do("GET", "/pool/acme/acme-pool", nil).want(200, "spec.runtime=local")
}

func TestWhoMayEnter(t *testing.T) {
	s := newSite(t)
	ana := s.estate("acme")
	s.do("PUT", "/user/acme/plain", map[string]any{"stack": "acme", "spec": map[string]any{"password": secret}}).want(201)
	token := func(auth, body string) (id, bearer string) {
		t.Helper()
		got := s.as(auth, "POST", "/token", body).want(201)
		return got.get("id").(string), "Bearer " + got.get("token").(string)
	}
	root := s.bearer(`{"user":"root","password":"` + secret + `"}`)
	mine := s.bearer(`{"user":"acme-admin","tenant":"acme","password":"` + secret + `"}`)
	readID, read := token(s.root, `{"name":"dashboard","read_only":true,"expires":"1h"}`)
	_, write := token(ana, `{"name":"ci"}`)
	readSession := s.bearer(`{"user":"","password":"` + strings.TrimPrefix(read, "Bearer ") + `"}`)
	put := func(auth string) answer {
		return s.as(auth, "PUT", "/role/acme/r", `{"stack":"acme","spec":{}}`)
	}
	for name, test := range map[string]struct {
		auth      string
		see, make int
	}{
		"nobody": {"", 401, 401}, "another scheme": {"Digest x", 401, 401}, "a wrong password": {basic("root", "wrong-password"), 401, 401},
		"a forged bearer": {"Bearer qod1.AAAA", 401, 401}, "a forged token": {"Bearer qodp_abc_def", 401, 401}, "no base64": {"Basic ***", 401, 401},
		"no administrator": {basic("acme/plain", secret), 403, 403}, "of no tenant": {basic("none/root2", secret), 401, 401},
		"root": {s.root, 200, 201}, "root's bearer": {root, 200, 200}, "a tenant's": {ana, 200, 200}, "a tenant's bearer": {mine, 200, 200},
		"a token": {write, 200, 200}, "read-only": {read, 200, 403}, "a session of a read-only token": {readSession, 200, 403},
	} {
		_ = s.as(s.root, "DELETE", "/role/acme/r?stack=acme", nil)
		if got := s.as(test.auth, "GET", "/role", nil); got.status != test.see {
			t.Errorf("%s: GET %d, want %d: %s", name, got.status, test.see, got.body)
		}
		made := put(test.auth)
		if made.status/100 != test.make/100 || made.status >= 400 && made.status != test.make {
			t.Errorf("%s: PUT %d, want %d: %s", name, made.status, test.make, made.body)
		}
	}
	if a := put(read); a.get("error") != "read_only" {
		t.Errorf("got %s", a.body)
	}
	s.as(read, "POST", "/plan", `{"stack":"acme","changes":[{"action":"delete","kind":"role","key":"acme/acme-role"}]}`).want(200, "summary.destroy=1")
	s.as(read, "POST", "/token", `{}`).want(403, "error=read_only")
	s.as("", "GET", "/nothing", nil).want(401)
	s.do("DELETE", "/token/"+readID, nil).want(200, "id="+readID)
	s.until("the token is refused", func() bool { return s.as(read, "GET", "/me", nil).status == 401 })
	s.as(readSession, "GET", "/me", nil).want(401)
	s.do("PATCH", "/user/acme/acme-admin", `{"stack":"acme","spec":{"disabled":true}}`).want(200)
	s.as(mine, "GET", "/me", nil).want(401)
	s.as(write, "GET", "/me", nil).want(401)
	s.do("GET", "/token", nil).want(200, "tokens.1.state=revoked", "tokens.1.read_only=true")
}

func (s *site) until(what string, done func() bool) {
	s.Helper()
	limit := time.After(10 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			s.Fatalf("not within 10 s: %s", what)
		}
	}
}

func TestCredentialsDoNotTravelInClear(t *testing.T) {
	s := newSite(t)
	for from, want := range map[string]int{"192.0.2.1:4000": 403, "[2001:db8::1]:4000": 403, "127.0.0.1:4000": 200, "[::1]:4000": 200} {
		r := httptest.NewRequest("GET", api.Root+"/me", nil)
		r.RemoteAddr = from
		r.Header.Set("Authorization", s.root)
		w := httptest.NewRecorder()
		s.rest.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from %s: %d, want %d: %s", from, w.Code, want, w.Body)
		}
	}
}

func TestTooManyRequests(t *testing.T) {
	s := newSite(t, func(c *api.RESTConfig) { c.Rate, c.Burst = 1, 3 })
	for range 3 {
		s.do("GET", "/me", nil).want(200)
	}
	if wait := s.do("GET", "/me", nil).want(429, "error=too_many_requests").header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After is %q", wait)
	}
	s.until("a name that is guessed at waits", func() bool { return s.as(basic("guess", "wrong"), "GET", "/me", nil).status == 429 })
	s.as(basic("other", "wrong"), "GET", "/me", nil).want(401)
}

func TestAuditAndLog(t *testing.T) {
	s := newSite(t)
	s.do("PUT", "/tenant/acme", `{"stack":"core","spec":{}}`, "X-Request-Id: one").want(201)
	s.do("DELETE", "/tenant/acme?stack=other", nil).want(409)
	s.as(basic("root", "wrong-"+secret), "GET", "/me", nil).want(401)
	s.as(basic(secret+" typed into the wrong field", "x"), "GET", "/me", nil).want(401)
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []string
	for _, e := range s.events {
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Action, e.User, e.Object, e.Code))
		if strings.Contains(fmt.Sprint(e), secret) {
			t.Errorf("the audit shows a secret: %+v", e)
		}
	}
	want := "auth.login root rest \nrest.change root tenant.acme \nrest.refused root tenant/acme conflict\nauth.login.failure root rest password\nauth.login.failure ? rest unknown_user"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("audit:\n%s\nwant:\n%s", text, want)
	}
	if log := s.log.String(); strings.Contains(log, secret) || !strings.Contains(log, "id=one method=PUT path=/v1/tenant/acme status=201") {
		t.Errorf("the log: %s", log)
	}
}

func TestWatch(t *testing.T) {
	s := newSite(t)
	s.estate("acme")
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/watch?kind=role&tenant=acme", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", s.root)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if first := s.next(got.Body, "revision"); strings.Count(first, "event: object") != 1 || !strings.Contains(first, `"key":"acme/acme-role"`) {
		t.Errorf("at once: %s", first)
	}
	s.do("PUT", "/role/acme/r", `{"stack":"acme","spec":{}}`).want(201)
	if next := s.next(got.Body, "object"); !strings.Contains(next, `"key":"acme/r"`) {
		t.Errorf("on a change: %s", next)
	}
	s.do("DELETE", "/role/acme/r?stack=acme", nil).want(200)
	if next := s.next(got.Body, "gone"); !strings.Contains(next, `"key":"acme/r"`) || strings.Contains(next, "event: object") {
		t.Errorf("at the end: %s", next)
	}
	s.do("GET", "/watch?kind=x", nil).want(400, "path=kind")
}

func TestPast(t *testing.T) {
	s := newSite(t)
	s.do("PUT", "/tenant/acme", `{"stack":"core","spec":{}}`).want(201)
	before := s.do("GET", "/tenant", nil).get("revision")
	s.do("PUT", "/tenant/acme", `{"stack":"core","spec":{"name":"apex"}}`).want(200)
	s.do("PUT", "/role/apex/r", `{"stack":"core","spec":{}}`).want(201)
	s.do("GET", "/history?stack=core&limit=2", nil).want(200, "commits.0.add=1", "commits.0.by=root", "commits.1.change=1", "commits.2=<nil>")
	back := map[string]any{"stack": "core", "revision": before, "dry_run": true}
	s.do("POST", "/rollback", back).want(200, "summary.destroy=1", "summary.change=1")
	back["dry_run"] = false
	s.do("POST", "/rollback", back).want(200, "plan.summary.destroy=1")
	s.do("GET", "/tenant/acme", nil).want(200)
	s.do("GET", "/role", nil).want(200, "items.0=<nil>")
	start := time.Now()
	if err := s.store.AppendStatements(t.Context(), []store.Statement{
		{ID: "a", Tenant: "acme", User: "ana", SQL: "SELECT ?", Class: "read", Status: "ok", Started: start, Duration: time.Second},
	}); err != nil {
		t.Fatal(err)
	}
	s.do("GET", "/statement", nil).want(200, "statements.0.sql=SELECT ?", "statements.0.seconds=1")
	if err := s.store.AppendEvents(t.Context(), []store.Event{
		store.Event{User: "root", Action: "auth.login", Object: "session 6f1e0a51-52a8-4a2b-9a61-0d6d3f7b9a10", Realm: "password"}.Stamped(),
	}); err != nil {
		t.Fatal(err)
	}
	s.do("GET", "/session", nil).want(200, "sessions.0.user=root", "sessions.0.id=6f1e0a51-52a8-4a2b-9a61-0d6d3f7b9a10")
}

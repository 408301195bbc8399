package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// free returns an attribute of a kind that a change leaves everything else alone with, and a value for it.
func free(k *schema.Kind) (string, any) {
	for _, a := range k.Attrs {
		if k.Identifies(a.Name) || a.Secret || a.Ref != "" || a.Effect == schema.Replace || len(a.OneOf) > 0 || a.Name == k.Holds {
			continue
		}
		switch {
		case a.Type == cty.String && a.Check == nil:
			return a.Name, "changed"
		case a.Type == cty.Bool:
			return a.Name, true
		}
	}
	return "", nil
}

func TestEveryKindOverEveryRoute(t *testing.T) {
	s := newSite(t)
	for _, k := range schema.Kinds() {
		path, spec := pathOf(k, "acme"), sample(k, "acme")
		put := map[string]any{"stack": "core", "spec": spec}
		s.do("GET", path, nil).want(404, "error=not_found", "path=/v1"+path)
		s.do("PATCH", path, put).want(404)
		s.do("DELETE", path+"?stack=core", nil).want(404)
		made := s.do("PUT", path, put, "If-None-Match: *").want(201, "kind="+k.Name, "stack=core", "generation=1", "status.phase=ready", "deleting=false")
		s.conforms(k, made)
		id, tag := made.get("id").(string), made.header.Get("ETag")
		if key := "/" + k.Name + "/" + made.get("key").(string); key != path || made.get("address") != k.Name+"."+made.get("key").(string) {
			t.Errorf("%s has the key %s and the address %v", path, key, made.get("address"))
		}
		s.do("PUT", path, put, "If-None-Match: *").want(412, "error=revision", "path=/v1"+path)
		s.do("PUT", path, put, `If-Match: "1"`).want(412, "error=revision")
		s.do("PUT", path, put, "If-Match: "+tag).want(200, "id="+id, "generation=1")
		s.do("GET", path, nil).want(200, "id="+id)
		s.do("GET", "/object/"+id, nil).want(200, "kind="+k.Name)
		s.do("GET", "/"+k.Name+"?stack=core", nil).want(200, "items.0.id="+id, "next=")
		s.do("GET", "/"+k.Name+"?stack=none", nil).want(200, "items.0=<nil>")
		s.do("POST", path, put).want(405, "error=method_not_allowed")
		s.do("PUT", path, map[string]any{"stack": "core", "spec": with(spec, "nonsense", 1)}).want(422, "error=invalid", "path=spec.nonsense")
		s.do("PUT", path, map[string]any{"stack": "other", "spec": spec}).want(409, "error=conflict")
		s.do("DELETE", path+"?stack=other", nil).want(409, "error=conflict")
		s.do("DELETE", path, nil).want(400, "path=stack")
		if name, v := free(k); name != "" {
			s.do("PATCH", path, map[string]any{"stack": "core", "spec": map[string]any{name: v}}).want(200, fmt.Sprintf("spec.%s=%v", name, v), "generation=2")
			s.do("PATCH", path, map[string]any{"stack": "core", "spec": map[string]any{name: nil}}, "Content-Type: application/merge-patch+json").
				want(200, "spec."+name+"=<nil>")
		}
		s.do("PUT", path, map[string]any{"stack": "mine", "spec": spec, "take_over": true}).want(200, "stack=mine", "id="+id)
		s.do("PUT", path, map[string]any{"stack": "core", "spec": spec, "take_over": true, "protected": true}).want(200, "stack=core", "protected=true")
		s.do("DELETE", path+"?stack=core", nil).want(409, "error=conflict")
		s.do("PUT", path, put).want(200, "protected=false")
		change := map[string]any{"action": "delete", "kind": k.Name, "key": strings.TrimPrefix(path, "/"+k.Name+"/")}
		s.do("POST", "/plan", map[string]any{"stack": "core", "changes": []any{change}}).want(200, "resource_changes.0.change.actions.0=delete", "summary.destroy=1")
	}
	for _, k := range reversed() {
		path := pathOf(k, "acme")
		id := s.do("GET", path, nil).want(200).get("id").(string)
		s.do("DELETE", path+"?stack=core", nil).want(200, "id="+id)
		s.do("GET", path, nil).want(404)
	}
}

func TestApplyIsOneCommitOrNothing(t *testing.T) {
	s := newSite(t)
	var puts []any
	for _, k := range reversed() { // the engine finds the order
		puts = append(puts, map[string]any{"action": "put", "kind": k.Name, "spec": sample(k, "acme"), "if_match": 0})
	}
	bad := append(puts[:len(puts):len(puts)], map[string]any{"action": "put", "kind": "role", "spec": map[string]any{"tenant": "acme", "name": "NO!"}})
	s.do("POST", "/apply", map[string]any{"stack": "core", "changes": bad}).want(422, "error=invalid", fmt.Sprintf("path=changes[%d].spec.name", len(puts)))
	s.do("GET", "/tenant", nil).want(200, "items.0=<nil>")
	done := s.do("POST", "/apply", map[string]any{"stack": "core", "changes": puts}).want(200, fmt.Sprintf("plan.summary.add=%d", len(puts)))
	for i, k := range reversed() {
		if got := done.get(fmt.Sprintf("objects.%d.kind", i)); got != k.Name {
			t.Errorf("object %d is a %v, want a %s", i, got, k.Name)
		}
	}
	s.do("POST", "/apply", map[string]any{"stack": "core", "changes": puts}).want(412, "path=changes[0]")
	s.do("POST", "/apply", map[string]any{"stack": "core", "lineage": "another", "changes": puts}).want(409, "error=conflict")
	var deletes []any
	for _, k := range schema.Kinds() {
		deletes = append(deletes, map[string]any{"action": "delete", "kind": k.Name, "key": strings.TrimPrefix(pathOf(k, "acme"), "/"+k.Name+"/")})
	}
	s.do("POST", "/apply", map[string]any{"stack": "core", "changes": deletes}).want(200, fmt.Sprintf("plan.summary.destroy=%d", len(puts)))
	s.do("GET", "/tenant", nil).want(200, "items.0=<nil>")
}

func TestErrors(t *testing.T) {
	s := newSite(t)
	s.estate("acme")
	role := "/role/acme/r"
	permissions := []any{map[string]any{"privileges": []string{"select"}}, map[string]any{"privileges": []string{"nonsense"}}}
	for name, test := range map[string]struct {
		method, path string
		body         any
		status       int
		want         []string
	}{
		"no such path":          {"GET", "/nothing", nil, 404, []string{"error=not_found"}},
		"no such kind":          {"GET", "/nothing/acme/x", nil, 404, nil},
		"too short a key":       {"GET", "/pool/acme", nil, 404, nil},
		"no JSON":               {"PUT", role, "{", 400, []string{"error=bad_request"}},
		"no object":             {"POST", "/token", "null", 400, []string{"error=bad_request"}},
		"two bodies":            {"PUT", role, `{"stack":"s","spec":{}} {}`, 400, nil},
		"an unknown field":      {"PUT", role, `{"stack":"s","spec":{},"x":1}`, 400, []string{"path=x"}},
		"a field of a type":     {"PUT", role, `{"stack":1,"spec":{}}`, 400, []string{"path=stack"}},
		"no stack":              {"PUT", role, `{"spec":{}}`, 400, []string{"path=stack"}},
		"no name of a stack":    {"PUT", role, `{"stack":"No!","spec":{}}`, 422, nil},
		"no spec":               {"PUT", role, `{"stack":"acme"}`, 400, []string{"path=spec"}},
		"a value of a type":     {"PUT", "/pool/acme/p", `{"stack":"acme","spec":{"tenant_db":"acme-tenant_db","threads":"4"}}`, 422, []string{"path=spec.threads"}},
		"a part of a block":     {"PUT", "/pool/acme/p", `{"stack":"acme","spec":{"tenant_db":"acme-tenant_db","nodes":{"dual":-1}}}`, 422, []string{"path=spec.nodes.dual"}},
		"one of several blocks": {"PUT", role, map[string]any{"stack": "acme", "spec": map[string]any{"permission": permissions}}, 422, []string{"path=spec.permission[1].privileges"}},
		"two faults":            {"PUT", "/pool/acme/p", `{"stack":"acme","spec":{"tenant_db":"acme-tenant_db","threads":0,"memory":"x"}}`, 422, []string{"details.0.path=spec.memory", "details.1.path=spec.threads"}},
		"a reference":           {"PUT", "/pool/acme/p", `{"stack":"acme","spec":{"tenant_db":"none"}}`, 422, []string{"path=spec.tenant_db"}},
		"in use":                {"DELETE", "/tenant/acme?stack=acme", nil, 409, []string{"error=conflict", "path=/v1/tenant/acme"}},
		"a number of a query":   {"GET", "/pool?limit=0", nil, 400, []string{"path=limit"}},
		"an unknown parameter":  {"GET", "/pool?colour=red", nil, 400, []string{"path=colour"}},
		"no cursor":             {"GET", "/pool?after=x", nil, 400, []string{"path=after"}},
		"a cursor of old":       {"GET", "/pool?after=eyJyIjo5OTksImEiOiJ4In0", nil, 410, []string{"error=listing_gone"}},
		"a NUL":                 {"PUT", role, `{"stack":"acme","spec":{"description":"a\u0000b"}}`, 422, []string{"path=spec.description"}},
		"no changes":            {"POST", "/apply", `{"stack":"acme","changes":[]}`, 400, []string{"path=changes"}},
		"no action":             {"POST", "/apply", `{"stack":"acme","changes":[{"kind":"role"}]}`, 400, []string{"path=changes[0].action"}},
		"no kind":               {"POST", "/plan", `{"stack":"acme","changes":[{"action":"put","kind":"x"}]}`, 400, []string{"path=changes[0].kind"}},
		"no key":                {"POST", "/plan", `{"stack":"acme","changes":[{"action":"delete","kind":"role"}]}`, 400, []string{"path=changes[0].key"}},
		"a revision to come":    {"POST", "/rollback", `{"stack":"acme","revision":100000}`, 422, []string{"path=revision"}},
		"a stack of none":       {"POST", "/rollback", `{"stack":"none","revision":1}`, 422, []string{"path=stack"}},
		"no token":              {"DELETE", "/token/none", nil, 404, nil},
		"a token of nobody":     {"POST", "/token", `{"user":"nobody"}`, 404, []string{"path=user"}},
		"a token for ever":      {"POST", "/token", `{"expires":"4000d"}`, 422, nil},
		"a time that has been":  {"POST", "/token", `{"expires":"-1h"}`, 422, []string{"path=expires"}},
		"a time of no form":     {"POST", "/token", `{"expires":"soon"}`, 422, []string{"path=expires"}},
		"a password not read":   {"PATCH", "/user/acme/acme-user", `{"stack":"acme","spec":{"password":"another one"}}`, 422, []string{"path=spec.password"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.T = t
			got := s.do(test.method, test.path, test.body).want(test.status, test.want...)
			if got.get("message") == "" || got.get("details.0.message") == nil || got.get("path") == nil {
				t.Errorf("the error is not whole: %s", got.body)
			}
		})
	}
	s.do("PUT", role, `{"stack":"s","spec":{}}`, "Content-Type: text/plain").want(415)
	s.do("PUT", role, `{"stack":"s","spec":{"description":"`+strings.Repeat("x", 4<<20)+`"}}`).want(413)
	s.do("PUT", role, `{"stack":"s","spec":{}}`, "If-Match: 12").want(400)
	s.do("PUT", role, `{"stack":"s","spec":{}}`, "If-Match: ").want(400)
	s.do("PUT", role, `{"stack":"s","spec":{}}`, "If-None-Match: ").want(400)
	if id := s.do("GET", "/me", nil, "X-Request-Id: abc-1").header.Get("X-Request-Id"); id != "abc-1" {
		t.Errorf("the request got the id %q", id)
	}
}

func TestPagesAreOfOneRevision(t *testing.T) {
	s := newSite(t)
	s.estate("acme")
	for i := range 5 {
		s.do("PUT", fmt.Sprintf("/role/acme/r%d", i), `{"stack":"acme","spec":{}}`).want(201)
	}
	first := s.do("GET", "/role?limit=2&tenant=acme", nil).want(200, "items.0.key=acme/acme-role", "items.1.key=acme/r0")
	s.do("DELETE", "/role/acme/r1?stack=acme", nil).want(200)
	second := s.do("GET", "/role?limit=2&tenant=acme&after="+first.get("next").(string), nil).
		want(200, fmt.Sprintf("revision=%v", first.get("revision")), "items.0.key=acme/r1", "items.1.key=acme/r2")
	s.do("GET", "/role?limit=10&after="+second.get("next").(string), nil).want(200, "items.0.key=acme/r3", "items.1.key=acme/r4", "next=")
	s.do("GET", "/role?name=R2", nil).want(200, "items.0.key=acme/r2", "items.1=<nil>")
}

func TestNamesInPaths(t *testing.T) {
	s := newSite(t)
	s.estate("acme")
	name := "a%b'c@x.example"
	s.do("POST", "/apply", map[string]any{"stack": "acme", "changes": []any{map[string]any{
		"action": "put", "kind": "user", "spec": map[string]any{"tenant": "acme", "name": name}}}}).want(200)
	for _, path := range []string{"a%25b'c@x.example", "a%2525b'c@x.example", "A%25B%27C%40X.example"} {
		s.do("GET", "/user/acme/"+path, nil).want(200, "spec.name="+name, "key=acme/a%25b'c@x.example")
	}
	s.do("PUT", "/pool_grant/acme/acme-pool/user:a%25b'c@x.example", `{"stack":"acme","spec":{}}`).want(201, "spec.user="+name)
	s.do("GET", "/pool_grant/acme/acme-pool/user:a%2525b%27c@x.example", nil).want(200)
	renamed := s.do("PUT", "/user/acme/a%25b'c@x.example", `{"stack":"acme","spec":{"name":"cid"}}`).want(200, "key=acme/cid")
	s.do("GET", "/pool_grant/acme/acme-pool/user:cid", nil).want(200, "address=pool_grant.acme/acme-pool/user:cid")
	s.do("GET", "/object/"+renamed.get("id").(string), nil).want(200, "spec.name=cid")
}

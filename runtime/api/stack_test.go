package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/plan"
)

// configured is a request for the plan of a configuration in which objects have these values, as "kind.label: JSON".
func configured(stack, lineage string, objects ...string) map[string]any {
	list := []any{}
	for _, o := range objects {
		address, value, _ := strings.Cut(o, ": ")
		kind, _, _ := strings.Cut(address, ".")
		list = append(list, map[string]any{"kind": kind, "address": address, "value": json.RawMessage(value)})
	}
	return map[string]any{"stack": stack, "lineage": lineage, "configuration": map[string]any{"objects": list}}
}

// planned asks for a plan, and returns what it says and the sealed one.
func (s *site) planned(auth string, body any) (*plan.Plan, string) {
	s.Helper()
	var out struct {
		Plan   json.RawMessage
		Sealed string
	}
	if err := json.Unmarshal(s.as(auth, "POST", "/stack/plan", body).want(200).body, &out); err != nil {
		s.Fatal(err)
	}
	p, err := plan.Received(out.Plan)
	if err != nil {
		s.Fatal(err)
	}
	return p, out.Sealed
}

func carried(sealed string) map[string]any {
	return map[string]any{"sealed": sealed, "lock_timeout": 1, "parallelism": 1}
}

// A plan is sealed, is carried out as it is, once, and by who may make each of its changes.
func TestStackPlans(t *testing.T) {
	s := newSite(t)
	ana := s.estate("acme")
	s.estate("other")
	role := `role.r: {"tenant":"acme","name":"fresh"}`
	p, sealed := s.planned(ana, configured("fresh", "l", role))
	if len(p.Changes) != 1 || p.Failed() {
		t.Fatalf("planned: %+v", p)
	}
	s.as(ana, "POST", "/stack/open", map[string]any{"sealed": sealed[:len(sealed)-8] + "AAAAAAA="}).want(422)
	s.as(ana, "POST", "/stack/open", map[string]any{"sealed": sealed, "check": true}).want(200)
	if got := string(s.as(ana, "POST", "/stack/apply", carried(sealed)).want(200).body); !strings.Contains(got, "event: committed") ||
		!strings.HasSuffix(got, "event: done\ndata: {}\n\n") {
		t.Errorf("applied: %s", got)
	}
	s.as(ana, "POST", "/stack/apply", carried(sealed)).want(409)
	s.as(ana, "GET", "/role/acme/fresh", nil).want(200, "stack=fresh")
	_, theirs := s.planned(s.root, configured("more", "l", `role.r: {"tenant":"other","name":"fresh"}`))
	s.as(ana, "POST", "/stack/apply", carried(theirs)).want(403)
	s.as(ana, "POST", "/stack/open", map[string]any{"sealed": theirs}).want(403)
	_, system := s.planned(s.root, configured("more", "l", `user.u: {"tenant":"acme","name":"boss","system":false,"admin":true}`))
	s.as(ana, "POST", "/stack/apply", carried(system)).want(403) // writes what it does not see
	s.as(ana, "POST", "/stack/plan", configured("fresh", "other", role)).want(409, "error=lineage")
	s.as(ana, "POST", "/stack/plan", configured("system", "l", role)).want(422)
	for _, wrong := range []string{`role.r: {"tenant":"other","name":"x"}`, `tenant.t: {"name":"acme"}`, `tenant.t: {"name":"new"}`} {
		if p, sealed := s.planned(ana, configured("fresh", "l", wrong)); !p.Failed() || sealed != "" {
			t.Errorf("%s is let through: %+v", wrong, p.Changes)
		}
	}
}

// What reaches the host is an administrator's of the system, and stays as it is in the plans of others.
func TestStackPlansLeaveTheHostAlone(t *testing.T) {
	s := newSite(t)
	ana := s.estate("acme")
	_, sealed := s.planned(s.root, configured("pools", "l", `user.u: {"tenant":"acme","name":"u","system":false}`))
	if got := string(s.do("POST", "/stack/apply", carried(sealed)).want(200).body); !strings.Contains(got, "event: done") {
		t.Fatal(got)
	}
	p, _ := s.planned(ana, configured("pools", "l", `user.u: {"tenant":"acme","name":"u","email":"u@acme"}`))
	if p.Failed() || len(p.Changes) != 1 || len(p.Changes[0].Attrs) != 1 {
		t.Errorf("planned: %+v", p)
	}
	p, _ = s.planned(ana, configured("pools", "l", `user.u: {"tenant":"acme","name":"u","system":false}`))
	if !p.Failed() || p.Problems[0].Address != "user.u" || fmt.Sprint(p.Problems[0].Path) == "[]" {
		t.Errorf("planned: %+v", p.Problems)
	}
}

// Bodies that no configuration comes to are refused.
func TestStackPlansOfNonsense(t *testing.T) {
	s := newSite(t)
	for _, objects := range [][]string{
		{`nothing.x: {}`}, {`role.r: {"tenant":"acme"}`}, {`role.r: {"tenant":"a","name":"r"}`, `role.r: {"tenant":"a","name":"s"}`},
		{`role: {"tenant":"a","name":"r"}`}, {`role.r: {"tenant":"a","name":"r","colour":"red"}`}, {`role.r: 7`},
	} {
		s.do("POST", "/stack/plan", configured("fresh", "l", objects...)).want(422)
	}
	s.do("POST", "/stack/plan", map[string]any{"stack": "x", "mode": "sideways", "configuration": map[string]any{}}).want(400)
	s.do("POST", "/stack/plan", map[string]any{"stack": "", "configuration": map[string]any{}}).want(422)
	s.do("POST", "/stack/addresses", map[string]any{"stack": "x", "writes": []any{map[string]any{"id": "none"}}}).want(404)
}

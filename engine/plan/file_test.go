package plan_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// The engine seals with the master key; here the bytes stay as they are, so that a test can alter them.
func plain(b []byte) []byte           { return b }
func opened(b []byte) ([]byte, error) { return b, nil }

// fullPlan uses every field of a plan.
func fullPlan(t testing.TB) *plan.Plan {
	t.Helper()
	pool, user, tenant := kind(t, "pool"), kind(t, "user"), kind(t, "tenant")
	spec := decode(t, user, []byte(`{"tenant":"acme","name":"ana","password_verifier":"hmac:1","password_version":9007199254740993,"email":"hush","groups":["hush-hush"]}`))
	moved := decode(t, pool, []byte(`{"tenant":"acme","name":"bi","tenant_db":"sales"}`))
	acme := decode(t, tenant, []byte(`{"name":"acme"}`))
	text := func(s string) cty.Value { return cty.StringVal(s) }
	none := cty.NullVal(cty.String)
	return &plan.Plan{
		ID: "8f14e45f", Stack: "s", Lineage: "lineage", Created: time.Date(2026, 11, 30, 8, 0, 0, 5000, time.UTC),
		Mode: plan.Normal, Partial: true, Unchanged: 3,
		Changes: []plan.Change{
			{
				Action: plan.Update, ID: "u", Kind: user, Address: `user.all["ana"]`, Addr: user.Addr(spec), Was: schema.NewAddr("user", "acme", "anna"),
				Moved: "user.ana", Saw: 7, Spec: spec, Applied: spec, Secrets: []string{"password_verifier"}, Sensitive: []string{"email"},
				Attrs: []plan.Attr{
					{Name: "name", Before: text("anna"), After: text("ana"), Effect: schema.Live, Default: cty.NilVal},
					{Name: "password_version", Before: cty.NullVal(cty.Number), After: spec.GetAttr("password_version"), Effect: schema.Live, Default: cty.Zero},
					{Name: "password_verifier", Before: text("hmac:0"), After: text("hmac:1"), Effect: schema.Live, Sensitive: true, Default: cty.NilVal},
					{Name: "groups", Before: cty.NullVal(cty.Set(cty.String)), After: spec.GetAttr("groups"), Effect: schema.Row, Sensitive: true, Default: cty.NilVal},
				},
				Protected: true,
			},
			{
				Action: plan.Update, ID: "p", Kind: pool, Address: "pool.bi", Addr: pool.Addr(moved), Saw: 8, Spec: moved, Applied: moved,
				Import: true, From: "other",
			},
			{
				Action: plan.Replace, ID: "old", NewID: "new", Kind: tenant, Address: "tenant.acme", Addr: tenant.Addr(acme), Saw: 2,
				Was: schema.NewAddr("tenant", "old"), Spec: acme, Applied: acme, Reason: plan.ReplaceByRequest, Detail: "-replace asks for it",
				Attrs: []plan.Attr{{Name: "name", Before: text("old"), After: text("acme"), Effect: schema.Replace, Default: cty.NilVal}},
			},
			{
				Action: plan.Delete, ID: "gone", Kind: tenant, Address: "tenant.gone", Addr: schema.NewAddr("tenant", "gone"), Saw: 4,
				Spec: cty.NilVal, Applied: cty.NilVal, Reason: plan.DeleteNoBlock, Detail: "tenant.gone is not in the configuration", WasProtected: true,
				Attrs: []plan.Attr{{Name: "name", Before: text("gone"), After: none, Effect: schema.Row, Default: cty.NilVal}},
			},
			{
				Action: plan.Forget, ID: "left", Kind: pool, Address: "pool.left", Addr: pool.Addr(moved), Saw: 5, Spec: moved, Applied: cty.NilVal,
				Reason: plan.ForgetByRemoval, Detail: "a removed block says so",
			},
		},
		Drift: []plan.Drift{
			{Addr: pool.Addr(moved), Address: "pool.bi", Attr: plan.Attr{
				Name: "threads", Before: cty.NumberIntVal(2), After: cty.NumberIntVal(4), Effect: schema.Roll, Default: cty.NumberIntVal(2),
			}},
			{Addr: user.Addr(spec), Address: `user.all["ana"]`, Attr: plan.Attr{
				Name: "email", Before: text("hush"), After: none, Effect: schema.Row, Sensitive: true, Default: cty.NilVal,
			}},
			{Addr: pool.Addr(moved), Address: "pool.bi", Deleted: true},
		},
		Settled:  []string{"lost", "lost too"},
		Live:     []plan.Finding{{Addr: pool.Addr(moved), Message: "1 of 2 nodes missing"}},
		Draining: []plan.Finding{{Addr: schema.NewAddr("pool", "acme", "old"), Message: "2 sessions end"}},
		Outputs: []plan.OutputChange{
			{Name: "port", Before: cty.NilVal, After: cty.MustParseNumberVal("9007199254740993")},
			{Name: "token", Before: text("hmac:a"), After: text("hmac:b"), Sensitive: true},
			{Name: "was", Before: cty.ListVal([]cty.Value{cty.True}), After: cty.NilVal},
		},
		Result: []schema.Output{
			{Name: "pools", Value: cty.ObjectVal(map[string]cty.Value{"bi": cty.EmptyObjectVal}), Description: "all of them"},
			{Name: "port", Value: cty.MustParseNumberVal("9007199254740993")},
			{Name: "token", Value: text("hush"), Sensitive: true},
		},
		Problems: []plan.Problem{{
			Warning: true, Address: "pool.bi", Path: cty.GetAttrPath("nodes").GetAttr("read"), Summary: "So", Detail: "And so.",
			Range: &hcl.Range{Filename: "main.qod.hcl", Start: hcl.Pos{Line: 3, Column: 1, Byte: 9}, End: hcl.Pos{Line: 3, Column: 4, Byte: 12}},
		}},
	}
}

func saved(t testing.TB, p *plan.Plan) []byte {
	t.Helper()
	raw, err := plan.Marshal(p, map[string][]byte{"u/password_verifier": []byte("sealed")}, plain)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// checkFileForm shows that a saved plan reads back as it was, as far as its text, JSON and writes tell.
func checkFileForm(t *testing.T, p *plan.Plan) {
	t.Helper()
	if p.Failed() {
		if _, err := plan.Marshal(p, nil, plain); err == nil {
			t.Error("a plan with errors was saved")
		}
		return
	}
	stamped := *p
	stamped.ID, stamped.Created = "id", time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	back, _, err := plan.Unmarshal(saved(t, &stamped), opened)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(t, &stamped), render(t, back)); diff != "" {
		t.Errorf("saved plan differs (-made +read):\n%s", diff)
	}
	if diff := cmp.Diff(document(t, &stamped), document(t, back)); diff != "" {
		t.Errorf("JSON of the saved plan differs (-made +read):\n%s", diff)
	}
	for i, c := range p.Changes {
		got := back.Changes[i]
		if !c.Spec.RawEquals(got.Spec) || !c.Applied.RawEquals(got.Applied) {
			t.Errorf("%s: saved values differ", c.Addr)
		}
	}
}

func TestSavedPlanReadsBackWhole(t *testing.T) {
	p := fullPlan(t)
	back, secrets, err := plan.Unmarshal(saved(t, p), opened)
	if err != nil {
		t.Fatal(err)
	}
	if string(secrets["u/password_verifier"]) != "sealed" {
		t.Errorf("secrets: %v", secrets)
	}
	// Values of sensitive results are not in the plan; the engine puts them in their places.
	for i := range p.Result {
		if p.Result[i].Sensitive {
			p.Result[i].Value = cty.NullVal(cty.DynamicPseudoType)
		}
	}
	values := cmp.Comparer(func(a, b cty.Value) bool {
		return a == cty.NilVal && b == cty.NilVal || a != cty.NilVal && b != cty.NilVal && a.RawEquals(b)
	})
	kinds := cmp.Comparer(func(a, b *schema.Kind) bool { return a == b })
	paths := cmp.Comparer(func(a, b cty.Path) bool { return a.Equals(b) })
	if diff := cmp.Diff(p, back, values, kinds, paths); diff != "" {
		t.Errorf("read plan differs (-made +read):\n%s", diff)
	}
}

func TestSavedPlanThatCannotBeRead(t *testing.T) {
	whole := saved(t, fullPlan(t))
	body, err := base64.StdEncoding.DecodeString(string(whole[bytes.IndexByte(whole, '\n')+1:]))
	if err != nil {
		t.Fatal(err)
	}
	file := func(body string) []byte {
		return []byte("qod plan 2\n" + base64.StdEncoding.EncodeToString([]byte(body)) + "\n")
	}
	edit := func(old, new string) []byte {
		if !strings.Contains(string(body), old) {
			t.Fatalf("the plan has no %s", old)
		}
		return file(strings.Replace(string(body), old, new, 1))
	}
	tests := map[string]struct {
		data []byte
		want string
	}{
		"empty":            {nil, "this is not a plan"},
		"something else":   {[]byte("resource \"a\" {}\n"), "this is not a plan"},
		"format 1":         {[]byte(`{"qod_plan": 1, "id": "x"}`), "an older qod saved it"},
		"format 3":         {bytes.Replace(whole, []byte("plan 2"), []byte("plan 3"), 1), "format 3, and this qod reads 2"},
		"huge":             {make([]byte, plan.MaxFile+1), "larger than 256 MiB"},
		"no body":          {[]byte("qod plan 2\n"), "cut off"},
		"truncated":        {whole[:len(whole)-2], "cut off"},
		"truncated inside": {file(string(body[:len(body)/2])), "its form"},
		"more":             {file(string(body) + "{}"), "something follows"},
		"unknown field":    {edit(`"stack":"s"`, `"stack":"s","colour":"red"`), `unknown field "colour"`},
		"missing field":    {edit(`"partial":true,`, ``), "something is missing"},
		"missing stack":    {edit(`"stack":"s"`, `"stack":""`), "which plan it is"},
		"mode":             {edit(`"mode":""`, `"mode":"upside-down"`), `no mode "upside-down"`},
		"action":           {edit(`"action":"update"`, `"action":"explode"`), `no action "explode"`},
		"kind":             {edit(`"kind":"user"`, `"kind":"planet"`), `no kind "planet"`},
		"other kind":       {edit(`"addr":{"Kind":"user"`, `"addr":{"Kind":"pool"`), "not about a user"},
		"other object":     {edit(`"Path":"acme/ana"`, `"Path":"acme/bob"`), "what it stores is user.acme/ana"},
		"attribute":        {edit(`"attrs":[{"name":"name"`, `"attrs":[{"name":"height"`), `no attribute "height"`},
		"value":            {edit(`"password_version":9007199254740993`, `"password_version":"many"`), "number"},
		"not canonical":    {edit(`"saw":7`, `"saw":7.0`), "its form"},
		"effect":           {edit(`"effect":"live"`, `"effect":"none"`), `no effect "none"`},
		"secret":           {edit(`"secrets":["password_verifier"]`, `"secrets":["email"]`), `no secret "email"`},
		"no spec":          {edit(`"applied":{"name":"acme"},`, ``), "what to store"},
		"drift kind":       {edit(`"drift":[{"addr":{"Kind":"pool"`, `"drift":[{"addr":{"Kind":"pond"`), `no kind "pond"`},
		"live kind":        {edit(`"live":[{"Addr":{"Kind":"pool"`, `"live":[{"Addr":{"Kind":"pond"`), `no kind "pond"`},
		"output":           {edit(`"value":9007199254740993,"type":"number"`, `"value":"x","type":"number"`), `output "port"`},
		"repeated":         {edit(`"id":"u"`, `"id":"v","id":"u"`), "something is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, secrets, err := plan.Unmarshal(tt.data, opened)
			if err == nil || !strings.Contains(err.Error(), tt.want) || p != nil || secrets != nil {
				t.Errorf("plan %v, error %v; want one that says %q", p, err, tt.want)
			}
		})
	}
	closed := errors.New("another master key")
	if _, _, err := plan.Unmarshal(whole, func([]byte) ([]byte, error) { return nil, closed }); !errors.Is(err, closed) {
		t.Errorf("a plan that does not open: %v", err)
	}
}

// Whatever a file holds is refused or is a plan that prints and writes back to the same bytes.
func FuzzPlanFile(f *testing.F) {
	whole := saved(f, fullPlan(f))
	body, err := base64.StdEncoding.DecodeString(string(whole[bytes.IndexByte(whole, '\n')+1:]))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, false)
	f.Add(body, true)
	f.Add([]byte(`{"qod_plan": 1}`), false)
	f.Add([]byte("qod plan 2\ne30=\n"), false)
	f.Add(bytes.Replace(body, []byte(`"acme"`), []byte(`null`), 3), true)
	f.Add(bytes.Replace(body, []byte(`"spec":{`), []byte(`"spec":[{`), 1), true)
	f.Fuzz(func(t *testing.T, data []byte, inside bool) {
		if inside {
			data = []byte("qod plan 2\n" + base64.StdEncoding.EncodeToString(data) + "\n")
		}
		p, secrets, err := plan.Unmarshal(data, opened)
		if err != nil {
			if p != nil || secrets != nil {
				t.Fatal("a half-read plan", err)
			}
			return
		}
		render(t, p)
		document(t, p)
		again, err := plan.Marshal(p, secrets, plain)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := plan.Unmarshal(again, opened); err != nil {
			t.Fatalf("what was read does not read again: %v", err)
		}
	})
}

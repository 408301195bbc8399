package engine_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// savedPlan is a plan with a secret of each sort, and what its file holds behind base64.
func savedPlan(t *testing.T, b *bed) (p *engine.Plan, raw, inside []byte) {
	t.Helper()
	desired := estate(t)
	desired = append(desired, object(t, "tenant", "tenant.beta", `{"name":"beta","display_name":"marked words"}`))
	desired[len(desired)-1].Sensitive = []string{"display_name"}
	p = b.plan(t, desired)
	token := cty.ObjectVal(map[string]cty.Value{"token": cty.StringVal("secret words")})
	p.Outputs = []plan.OutputChange{{Name: "all", Before: cty.NilVal, After: cty.StringVal("hmac:3"), Sensitive: true}}
	p.Result = []schema.Output{{Name: "all", Value: token, Sensitive: true}}
	raw, err := b.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(raw, []byte("\n"))
	if inside, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
		t.Fatal(err)
	}
	return p, raw, inside
}

// Nothing of a plan can be read from its file: neither passwords nor values that a sensitive variable gave.
func TestSavedPlanShowsNothing(t *testing.T) {
	p, raw, inside := savedPlan(t, newBed(t))
	for _, hidden := range []string{"open sesame", "OPEN SESAME", "argon2id", "marked words", "secret words", "tenant", p.ID} {
		if bytes.Contains(raw, []byte(hidden)) || bytes.Contains(inside, []byte(hidden)) {
			t.Errorf("the saved plan shows %q", hidden)
		}
	}
}

func TestSavedPlanKeepsSensitiveValues(t *testing.T) {
	b := newBed(t)
	p, raw, _ := savedPlan(t, b)
	back, err := b.Unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !back.Result[0].Value.RawEquals(p.Result[0].Value) || !back.Outputs[0].After.RawEquals(p.Outputs[0].After) {
		t.Errorf("the sensitive output is %#v", back.Result[0].Value)
	}
	for i, c := range back.Changes {
		if !c.Spec.RawEquals(p.Changes[i].Spec) {
			t.Errorf("%s: another value is stored", c.Addr)
		}
	}
	text := &strings.Builder{}
	if err := (plan.Text{}).Write(text, back.Plan); err != nil {
		t.Fatal(err)
	}
	document, err := plan.JSON(back.Plan, "dev", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"open sesame", "marked words", "secret words", "hmac:"} {
		if strings.Contains(text.String()+string(document), hidden) {
			t.Errorf("the plan that was read shows %q", hidden)
		}
	}
}

// Whoever edits a saved plan makes it worthless: any byte counts.
func TestSavedPlanThatWasAltered(t *testing.T) {
	b := newBed(t)
	_, raw, inside := savedPlan(t, b)
	for _, at := range []int{0, 1, 20, len(inside) / 2, len(inside) - 1} {
		altered := bytes.Clone(inside)
		altered[at] ^= 1
		file := append([]byte("qod plan 2\n"), base64.StdEncoding.EncodeToString(altered)+"\n"...)
		if p, err := b.Unmarshal(file); err == nil || p != nil || !strings.Contains(err.Error(), "altered") {
			t.Errorf("byte %d altered: %v", at, err)
		}
	}
	if _, err := b.Unmarshal(raw[:len(raw)-8]); err == nil {
		t.Error("a plan that was cut off is read")
	}
}

package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// invoke runs the action as a Terraform does that is newer than the one here.
func invoke(t *testing.T, d *double, tenant, name, limit string) (progress []string, diags []*tfprotov6.Diagnostic) {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	configure(t, server, d.URL)
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	of := all.ActionSchemas["qod_pool_restart"].Schema.ValueType()
	wait := tftypes.NewValue(of.(tftypes.Object).AttributeTypes[attrTimeouts], map[string]tftypes.Value{
		"invoke": tftypes.NewValue(tftypes.String, limit),
	})
	config, err := tfprotov6.NewDynamicValue(of, tftypes.NewValue(of, map[string]tftypes.Value{
		attrTenant: tftypes.NewValue(tftypes.String, tenant), "name": tftypes.NewValue(tftypes.String, name), attrTimeouts: wait,
	}))
	if err != nil {
		t.Fatal(err)
	}
	actions := server.(tfprotov6.ActionServer)
	planned, err := actions.PlanAction(t.Context(), &tfprotov6.PlanActionRequest{ActionType: "qod_pool_restart", Config: &config})
	if err != nil || len(planned.Diagnostics) > 0 {
		t.Fatal(err, planned)
	}
	stream, err := actions.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: "qod_pool_restart", Config: &config})
	if err != nil {
		t.Fatal(err)
	}
	for e := range stream.Events {
		switch e := e.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, e.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			diags = append(diags, e.Diagnostics...)
		}
	}
	return progress, diags
}

func TestRestart(t *testing.T) {
	d := newDouble(t)
	d.putAs(t, "base", "tenant", `{"name":"acme"}`)
	d.putAs(t, "base", "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	d.putAs(t, "base", "pool", `{"tenant":"acme","name":"bi","tenant_db":"sales"}`)
	progress, diags := invoke(t, d, "acme", "bi", "1m")
	if len(diags) > 0 {
		t.Errorf("%s: %s", diags[0].Summary, diags[0].Detail)
	}
	if want := "pool.acme/bi: nodes are replaced: 1 serving, 1 starting; pool.acme/bi: all nodes are new"; strings.Join(progress, "; ") != want {
		t.Errorf("progress is %q, want %q", progress, want)
	}
	d.with(func() {
		if len(d.restarts) != 1 {
			t.Errorf("there were %d requests", len(d.restarts))
		}
	})
	// Another one is another request, and says what it waits for in vain.
	d.with(func() { d.stuck = "there is no room" })
	_, diags = invoke(t, d, "acme", "bi", "1s")
	if len(diags) != 1 || diags[0].Summary != "pool.acme/bi is not restarted after 1s" || !strings.Contains(diags[0].Detail, "there is no room") {
		t.Errorf("in vain: %v", diags)
	}
	d.with(func() {
		if len(d.restarts) != 2 {
			t.Errorf("there were %d requests", len(d.restarts))
		}
	})
	_, diags = invoke(t, d, "acme", "etl", "1s")
	if len(diags) != 1 || diags[0].Summary != "Cannot restart pool.acme/etl" {
		t.Errorf("of no pool: %v", diags)
	}
}

package provider

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

func TestSchemasAreSound(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Diagnostics {
		t.Errorf("%s: %s", d.Summary, d.Detail)
	}
	for _, k := range schema.Kinds() {
		if diags := tfSchema(t.Context(), k).ValidateImplementation(t.Context()); diags.HasError() {
			t.Errorf("%s: %v", k.Name, diags)
		}
		name := typeName + "_" + k.Name
		for what, have := range map[string]bool{
			"resource": all.ResourceSchemas[name] != nil, "list": all.ListResourceSchemas[name] != nil,
			"data source": all.DataSourceSchemas[name] != nil, "data source of all": all.DataSourceSchemas[name+"s"] != nil,
		} {
			if !have {
				t.Errorf("%s is no %s", name, what)
			}
		}
	}
}

// What a kind says of an attribute, its resource says too.
func TestResourcesSayWhatTheirKindsSay(t *testing.T) {
	for _, k := range schema.Kinds() {
		attrs := tfSchema(t.Context(), k).Attributes
		for i := range k.Attrs {
			a := &k.Attrs[i]
			out := attrs[a.Name]
			_, fallback := defaultOf(a)
			if out.IsRequired() != (a.Mode == schema.Required) || out.IsComputed() != fallback || out.IsWriteOnly() != a.Secret {
				t.Errorf("%s.%s: required %t, computed %t, write-only %t", k.Name, a.Name, out.IsRequired(), out.IsComputed(), out.IsWriteOnly())
			}
			if !strings.HasPrefix(out.GetMarkdownDescription(), a.Doc) || strings.Contains(out.GetMarkdownDescription(), "label of the block") {
				t.Errorf("%s.%s is described as %q", k.Name, a.Name, out.GetMarkdownDescription())
			}
			if _, has := attrs[digestOf(a)]; has != (a.Secret && a.Version == "") {
				t.Errorf("%s.%s has a digest: %t", k.Name, a.Name, has)
			}
		}
		for _, own := range []string{attrID, attrStack, attrProtected, attrTimeouts} {
			if slices.Contains(k.Names(), own) {
				t.Errorf("%s has an attribute %s of its own", k.Name, own)
			}
		}
	}
}

// Data sources show everything but secrets.
func TestDataHasNoSecrets(t *testing.T) {
	for _, k := range schema.Kinds() {
		var resp datasource.SchemaResponse
		(&objectData{kind: k}).Schema(t.Context(), datasource.SchemaRequest{}, &resp)
		for _, a := range k.Attrs {
			if _, has := resp.Schema.Attributes[a.Name]; has == a.Secret {
				t.Errorf("%s.%s is shown: %t", k.Name, a.Name, has)
			}
		}
	}
}

// Values cross as they are, also those that are not known.
func TestValuesCross(t *testing.T) {
	for _, k := range schema.Kinds() {
		s := tfSchema(t.Context(), k)
		tt := s.Type().TerraformType(t.Context())
		whole := nothing(tt)
		for _, fill := range []func(cty.Type) cty.Value{cty.NullVal, cty.UnknownVal, filled} {
			attrs := maps.Clone(whole)
			for name, at := range k.Type().AttributeTypes() {
				attrs[name] = fill(at)
			}
			want := cty.ObjectVal(attrs)
			raw, err := toTerraform(want, tt)
			if err != nil {
				t.Fatal(err)
			}
			back, err := fromTerraform(raw)
			if err != nil || !back.RawEquals(want) {
				t.Errorf("%s: %#v came back as %#v, %v", k.Name, want, back, err)
			}
			if !part(k, back.AsValueMap()).Type().Equals(k.Type()) {
				t.Errorf("%s: the part is no %s", k.Name, k.Name)
			}
		}
	}
}

// filled returns some value of a type.
func filled(t cty.Type) cty.Value {
	switch {
	case t == cty.String:
		return cty.StringVal("ä\x00/")
	case t == cty.Number:
		return cty.MustParseNumberVal("9007199254740993")
	case t == cty.Bool:
		return cty.True
	case t.IsSetType():
		return cty.SetVal([]cty.Value{filled(t.ElementType())})
	}
	attrs := map[string]cty.Value{}
	for name, at := range t.AttributeTypes() {
		attrs[name] = filled(at)
	}
	return cty.ObjectVal(attrs)
}

// A query lists objects with their identities, for a Terraform that is newer than the one here.
func TestList(t *testing.T) {
	d := newDouble(t)
	for _, spec := range []string{`{"name":"acme"}`, `{"name":"apex","display_name":"Apex"}`, `{"name":"zeta"}`} {
		d.putAs(t, "base", "tenant", spec)
	}
	d.putAs(t, "other", "tenant", `{"name":"beta"}`)
	made := New("test")()
	server, err := providerserver.NewProtocol6WithError(made)()
	if err != nil {
		t.Fatal(err)
	}
	configure(t, server, d.URL)
	lister := server.(tfprotov6.ListResourceServer)
	listType := tftypes.Object{AttributeTypes: map[string]tftypes.Type{attrStack: tftypes.String}}
	config, err := tfprotov6.NewDynamicValue(listType, tftypes.NewValue(listType, map[string]tftypes.Value{
		attrStack: tftypes.NewValue(tftypes.String, "base"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int64]string{10: "tenant.acme tenant.apex tenant.zeta", 2: "tenant.acme tenant.apex"} {
		stream, err := lister.ListResource(t.Context(), &tfprotov6.ListResourceRequest{
			TypeName: "qod_tenant", Config: &config, IncludeResource: true, Limit: limit,
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for r := range stream.Results {
			names = append(names, r.DisplayName)
			for _, diag := range r.Diagnostics {
				t.Errorf("%s: %s", diag.Summary, diag.Detail)
			}
			if r.Identity == nil || r.Resource == nil {
				t.Errorf("%s has no identity or no resource", r.DisplayName)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("listed %q, want %q", got, want)
		}
	}
}

// configure is what Terraform does first.
func configure(t *testing.T, server tfprotov6.ProviderServer, url string) {
	t.Helper()
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	attrs := map[string]tftypes.Value{}
	for _, a := range all.Provider.Block.Attributes {
		attrs[a.Name] = tftypes.NewValue(a.Type, nil)
	}
	attrs[attrStack] = tftypes.NewValue(tftypes.String, "core")
	attrs["server"] = tftypes.NewValue(tftypes.String, url)
	attrs["token"] = tftypes.NewValue(tftypes.String, doubleToken)
	config, err := tfprotov6.NewDynamicValue(all.Provider.ValueType(), tftypes.NewValue(all.Provider.ValueType(), attrs))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{Config: &config})
	if err != nil || len(resp.Diagnostics) > 0 {
		t.Fatal(err, resp)
	}
}

// Where cases differ in names, or defaults are written out, nothing differs.
func TestSame(t *testing.T) {
	pool, _ := schema.Lookup("pool")
	role, _ := schema.Lookup("role")
	permission := func(catalog cty.Value) cty.Value {
		return cty.SetVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
			"catalog": catalog, "schema": cty.NullVal(cty.String), "table": cty.NullVal(cty.String),
			"privileges": cty.SetVal([]cty.Value{cty.StringVal("all")}),
		})})
	}
	for name, test := range map[string]struct {
		kind *schema.Kind
		attr string
		a, b cty.Value
		want bool
	}{
		"default":    {pool, "memory", cty.NullVal(cty.String), cty.StringVal("1GiB"), true},
		"another":    {pool, "memory", cty.NullVal(cty.String), cty.StringVal("2GiB"), false},
		"case":       {pool, "tenant", cty.StringVal("Acme"), cty.StringVal("acme"), true},
		"its case":   {pool, "memory", cty.StringVal("1GIB"), cty.StringVal("1gib"), false},
		"unknown":    {pool, "tenant", cty.UnknownVal(cty.String), cty.UnknownVal(cty.String), false},
		"in a set":   {role, "permission", permission(cty.NullVal(cty.String)), permission(cty.StringVal("*")), true},
		"other set":  {role, "permission", permission(cty.NullVal(cty.String)), permission(cty.StringVal("c")), false},
		"no element": {role, "permission", cty.NullVal(permission(cty.NullVal(cty.String)).Type()), cty.SetValEmpty(permission(cty.NullVal(cty.String)).Type().ElementType()), true},
	} {
		if got := (&kindResource{kind: test.kind}).same(test.attr, test.a, test.b); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

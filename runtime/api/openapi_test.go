package api_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/schema"
)

var update = flag.Bool("update", false, "write the description of REST anew")

func TestOpenAPIIsCurrent(t *testing.T) {
	const page = "../../docs/reference/openapi.json"
	want, err := api.OpenAPI("0")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not current: go test ./runtime/api -run Current -update (%v)", page, err)
	}
}

// conforms checks that an answer is as the description says.
func (s *site) conforms(k *schema.Kind, a answer) {
	s.Helper()
	raw, err := api.OpenAPI("0")
	if err != nil {
		s.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		s.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", document); err != nil {
		s.Fatal(err)
	}
	compiled, err := c.Compile("openapi.json#/components/schemas/" + k.Name)
	if err != nil {
		s.Fatal(err)
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err != nil {
		s.Fatal(err)
	}
	if err := compiled.Validate(body); err != nil {
		s.Errorf("%s: the answer is not as the description says: %v", a.what, err)
	}
}

package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/samples"
)

// place is a server with the stack of samples.Base on it.
type place struct {
	server, token string
	secrets       func() []string // that were sent
}

// newPlace is the double.
func newPlace(t *testing.T) (*place, *double) {
	t.Helper()
	d := newDouble(t)
	p := &place{server: d.URL, token: doubleToken, secrets: func() []string {
		d.mu.Lock()
		defer d.mu.Unlock()
		return append([]string{doubleToken}, d.secrets...)
	}}
	p.seed(t, samples.Base)
	return p, d
}

// seed puts what a configuration of qod says.
func (p *place) seed(t *testing.T, source string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, diags := config.Load(dir)
	desired, more := loaded.Evaluate(config.Inputs{})
	if diags = append(diags, more...); diags.HasErrors() {
		t.Fatal(diags)
	}
	r := client.Request{Stack: "base"}
	for _, o := range desired.Objects {
		spec, err := o.Kind.Encode(o.Value)
		if err != nil {
			t.Fatal(err)
		}
		r.Changes = append(r.Changes, client.Change{Action: client.Put, Kind: o.Kind.Name, Spec: spec})
	}
	if _, err := ask(t, p.server, p.token).Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// suite is one resource of each kind, called it, in a workspace.
type suite struct {
	*workspace
	*place
	bodies map[string]map[string]string // by kind: the arguments and what they are
}

func at(k *schema.Kind) string { return typeName + "_" + k.Name + ".it" }

func newSuite(t *testing.T) (*suite, *double) {
	p, d := newPlace(t)
	s := &suite{workspace: newWorkspace(t, p.server, p.token), place: p}
	s.reset()
	return s, d
}

// reset has each resource say what its kind cannot do without.
func (s *suite) reset() {
	s.bodies = map[string]map[string]string{}
	for _, k := range schema.Kinds() {
		body := samples.Minimal()[k.Name]
		for name, sample := range samples.All()[k.Name] {
			if sample.Required && body[name] == "" && !sample.Apart {
				body[name] = sample.A
			}
		}
		s.bodies[k.Name] = body
	}
}

// text writes the resources.
func (s *suite) text() string {
	out := &strings.Builder{}
	for _, k := range schema.Kinds() {
		fmt.Fprintf(out, "resource %q \"it\" {\n", typeName+"_"+k.Name)
		body := s.bodies[k.Name]
		for _, name := range slices.Sorted(maps.Keys(body)) {
			b, block := k.Block(name)
			switch value := body[name]; {
			case value == "":
			case !block:
				fmt.Fprintf(out, "  %s = %s\n", name, value)
			case b.Single:
				fmt.Fprintf(out, "  %s = {\n    %s\n  }\n", name, value)
			default:
				fmt.Fprintf(out, "  %s = [{\n    %s\n  }]\n", name, value)
			}
		}
		out.WriteString("}\n\n")
	}
	return string(hclwrite.Format([]byte(out.String())))
}

// applied applies what the bodies say, and shows that nothing is left to do then, that the server has what they say,
// and that the state has no secret.
func (s *suite) applied(t *testing.T) {
	t.Helper()
	s.write(t, "main.tf", s.text())
	s.apply(t)
	s.unchanged(t)
	s.keepsNoSecret(t, s.secrets())
}

// Every attribute of every kind is set, changed and left out again, those of all kinds at the same time: each apply is
// followed by an empty plan, and objects are replaced where their kind says so, and only there.
func TestEveryAttribute(t *testing.T) {
	s, _ := newSuite(t)
	s.applied(t)
	for i := range 20 {
		changed := map[string]string{} // by kind
		for _, k := range schema.Kinds() {
			if names := k.Names(); i < len(names) {
				changed[k.Name] = names[i]
			}
		}
		if len(changed) == 0 {
			break
		}
		for _, second := range []bool{false, true} {
			s.reset()
			var what []string
			for _, k := range schema.Kinds() {
				if s.try(t, k, changed[k.Name], second) {
					what = append(what, k.Name+"."+changed[k.Name])
				}
			}
			before := s.state(t)
			s.applied(t)
			s.replacedOnlyWhere(t, before, changed)
			if t.Failed() {
				t.Fatalf("after a change of %v", what)
			}
		}
	}
	s.reset()
	s.applied(t)
}

// try writes one attribute of a kind as its sample has it. Those that would destroy data are another test's.
func (s *suite) try(t *testing.T, k *schema.Kind, name string, second bool) bool {
	t.Helper()
	if name == "" {
		return false
	}
	sample, ok := samples.All()[k.Name][name]
	if !ok {
		t.Fatalf("%s.%s has no sample", k.Name, name)
	}
	replaces := k.EffectOf(name) == schema.Replace
	if k.Holds != "" && replaces || name == k.Holds || sample.Only != "" && second {
		return false
	}
	body := s.bodies[k.Name]
	body[name] = sample.A
	maps.Copy(body, sample.With)
	if second {
		body[name] = sample.B
		maps.Copy(body, sample.WithB)
	}
	return true
}

// replacedOnlyWhere compares ids.
func (s *suite) replacedOnlyWhere(t *testing.T, before map[string]map[string]any, changed map[string]string) {
	t.Helper()
	after := s.state(t)
	for _, k := range schema.Kinds() {
		if k.EffectOf(changed[k.Name]) == schema.Replace {
			continue
		}
		// What a step before made anew goes back to where it was by being made anew.
		if was, is := before[at(k)], after[at(k)]; sameKey(k, was, is) && was[attrID] != is[attrID] {
			t.Errorf("%s was made anew", at(k))
		}
	}
}

// sameKey reports whether nothing that cannot be changed in place differs.
func sameKey(k *schema.Kind, a, b map[string]any) bool {
	for _, attr := range k.Attrs {
		if attr.Effect == schema.Replace && a[attr.Name] != b[attr.Name] {
			return false
		}
	}
	return true
}

// everything sets all attributes of all kinds that go together.
func (s *suite) everything(second bool) {
	s.reset()
	for _, k := range schema.Kinds() {
		for name, sample := range samples.All()[k.Name] {
			if sample.Apart || sample.Only != "" || name == k.Holds || k.EffectOf(name) == schema.Replace || name == "password_version" {
				continue
			}
			s.bodies[k.Name][name] = sample.A
			if second {
				s.bodies[k.Name][name] = sample.B
				maps.Copy(s.bodies[k.Name], sample.WithB)
			}
		}
	}
}

// What is imported by its key plans as it is.
func TestImport(t *testing.T) {
	s, _ := newSuite(t)
	s.everything(true)
	s.applied(t)
	text := s.text()
	c := ask(t, s.server, s.token)
	for _, k := range schema.Kinds() {
		id := s.state(t)[at(k)][attrID].(string)
		o, err := c.ByID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		s.must(t, "state", "rm", at(k))
		text += fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", at(k), o.Key)
	}
	s.write(t, "main.tf", text)
	for address, a := range s.plan(t) {
		// A secret that has no version is known by its digest, which an import cannot learn.
		if a.Change.Importing == nil || a.String() != "no-op" && a.String() != "update" {
			t.Errorf("%s: %s", address, a)
		}
	}
	s.applied(t)
}

// What others changed is found and set back.
func TestDrift(t *testing.T) {
	s, _ := newSuite(t)
	s.everything(false)
	s.applied(t)
	c := ask(t, s.server, s.token)
	want := map[string]string{}
	for _, k := range schema.Kinds() {
		want[at(k)] = "no-op"
		if s.disturb(t, c, k) {
			want[at(k)] = "update"
		}
	}
	for address, a := range s.plan(t) {
		if a.String() != want[address] {
			t.Errorf("%s: %s, want %s", address, a, want[address])
		}
	}
	s.applied(t)
}

// disturb sets back all that can be changed in place, as the same stack: so does qod itself. It reports whether that
// made a difference.
func (s *suite) disturb(t *testing.T, c *client.Client, k *schema.Kind) bool {
	t.Helper()
	o, err := c.ByID(t.Context(), s.state(t)[at(k)][attrID].(string))
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(o.Spec, &spec); err != nil {
		t.Fatal(err)
	}
	for _, name := range k.Names() {
		a, ok := k.Attr(name)
		if !ok || a.Mode == schema.Optional && a.Effect != schema.Replace && name != k.Holds {
			delete(spec, name)
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	r := client.Request{Stack: "core", Changes: []client.Change{{Action: client.Put, Kind: k.Name, Key: o.Key, Spec: raw}}}
	applied, err := c.Apply(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	now, ok := applied.Object(o.Addr())
	return ok && string(now.Effective) != string(o.Effective)
}

// What others deleted is made again, and a destroy leaves nothing.
func TestDeletedByOthersAndDestroyed(t *testing.T) {
	s, _ := newSuite(t)
	s.applied(t)
	c := ask(t, s.server, s.token)
	for _, k := range slices.Backward(schema.Kinds()) {
		o, err := c.ByID(t.Context(), s.state(t)[at(k)][attrID].(string))
		if err != nil {
			t.Fatal(err)
		}
		r := client.Request{Stack: "core", Changes: []client.Change{{Action: client.Delete, Kind: k.Name, Key: o.Key}}}
		if _, err := c.Apply(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for address, a := range s.plan(t) {
		if a.String() != "create" {
			t.Errorf("%s: %s, want create", address, a)
		}
	}
	s.applied(t)
	s.apply(t, "-destroy")
	for _, k := range schema.Kinds() {
		for o, err := range c.List(t.Context(), k.Name, client.Filter{Stack: "core"}) {
			t.Errorf("%s is left: %v", o.Addr(), err)
		}
	}
}

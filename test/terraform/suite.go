package terraform

import (
	"encoding/json"
	"errors"
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

// Place is a server without objects.
type Place struct {
	Server, Token string
	Parallelism   int             // of Terraform; zero is its default
	Secrets       func() []string // that were sent, and must be kept nowhere
}

// seed puts what a configuration of qod says.
func (p *Place) seed(t *testing.T, source string) {
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
	if _, err := Ask(t, p.Server, p.Token).Apply(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// workspace has Terraform use the server under that URL.
func (p *Place) workspace(t *testing.T, url string) *Workspace {
	t.Helper()
	w := New(t, url, p.Token)
	w.parallelism = p.Parallelism
	return w
}

// suite is one resource of each kind, called it, in a workspace.
type suite struct {
	*Workspace
	*Place
	bodies map[string]map[string]string // by kind: the arguments and what they are
}

func at(k *schema.Kind) string { return "qod_" + k.Name + ".it" }

func newSuite(t *testing.T, p *Place) *suite {
	t.Helper()
	s := &suite{Workspace: p.workspace(t, p.Server), Place: p}
	p.seed(t, samples.Base)
	s.reset()
	return s
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
		out.WriteString(samples.Resource(k, "it", s.bodies[k.Name]))
	}
	return string(hclwrite.Format([]byte(out.String())))
}

// applied applies what the bodies say, and shows that nothing is left to do then, that the server has what they say,
// and that the state has no secret.
func (s *suite) applied(t *testing.T) {
	t.Helper()
	s.Write(t, "main.tf", s.text())
	s.Apply(t)
	s.Unchanged(t)
	s.KeepsNoSecret(t, s.Secrets())
}

// EveryAttribute sets, changes and leaves out every attribute of every kind, those of all kinds at the same time: each apply is
// followed by an empty plan, and objects are replaced where their kind says so, and only there.
func EveryAttribute(t *testing.T, p *Place) {
	s := newSuite(t, p)
	s.applied(t)
	most := 0
	for _, k := range schema.Kinds() {
		most = max(most, len(k.Names()))
	}
	for i := range most {
		changed := map[string]string{} // by kind
		for _, k := range schema.Kinds() {
			if names := k.Names(); i < len(names) {
				changed[k.Name] = names[i]
			}
		}
		for _, second := range []bool{false, true} {
			s.reset()
			var what []string
			for _, k := range schema.Kinds() {
				if s.try(t, k, changed[k.Name], second) {
					what = append(what, k.Name+"."+changed[k.Name])
				}
			}
			before := s.State(t)
			s.applied(t)
			s.replacedOnlyWhere(t, before)
			if t.Failed() {
				t.Fatalf("after a change of %v", what)
			}
		}
	}
	s.reset()
	s.applied(t)
	s.protects(t)
}

// protects protects all objects, and takes that back, in place.
func (s *suite) protects(t *testing.T) {
	t.Helper()
	before := s.State(t)
	for _, protected := range []string{"true", "false"} {
		for _, body := range s.bodies {
			body["protected"] = protected
		}
		s.applied(t)
		if protected == "true" {
			out := s.Fails(t, "is protected and may not be destroyed", "plan", "-destroy")
			if got, want := strings.Count(Flat(out), "is protected and may not be destroyed"), len(s.bodies); got != want {
				t.Errorf("%d objects are protected, want %d:\n%s", got, want, out)
			}
		}
	}
	s.replacedOnlyWhere(t, before)
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

// replacedOnlyWhere compares ids: an object is another one if, and only if, what cannot be changed in place differs.
func (s *suite) replacedOnlyWhere(t *testing.T, before map[string]map[string]any) {
	t.Helper()
	after := s.State(t)
	for _, k := range schema.Kinds() {
		was, is := before[at(k)], after[at(k)]
		switch kept := was["id"] == is["id"]; {
		case kept && !sameKey(k, was, is):
			t.Errorf("%s was not made anew", at(k))
		case !kept && sameKey(k, was, is):
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

// Imports shows that what is imported by its key plans as it is.
func Imports(t *testing.T, p *Place) {
	s := newSuite(t, p)
	s.everything(true)
	s.applied(t)
	text := s.text()
	c := Ask(t, s.Server, s.Token)
	for _, k := range schema.Kinds() {
		id := s.State(t)[at(k)]["id"].(string)
		o, err := c.ByID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		s.Must(t, "state", "rm", at(k))
		text += fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", at(k), o.Key)
	}
	s.Write(t, "main.tf", text)
	for address, a := range s.Plan(t) {
		if a.Change.Importing == nil || a.String() != "no-op" {
			t.Errorf("%s: %s", address, a)
		}
	}
	s.applied(t)
}

// Drift shows that what others changed is found and set back.
func Drift(t *testing.T, p *Place) {
	s := newSuite(t, p)
	s.everything(false)
	s.applied(t)
	c := Ask(t, s.Server, s.Token)
	want := map[string]string{}
	for _, k := range schema.Kinds() {
		want[at(k)] = "no-op"
		if s.disturb(t, c, k) {
			want[at(k)] = "update"
		}
	}
	for address, a := range s.Plan(t) {
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
	o, err := c.ByID(t.Context(), s.State(t)[at(k)]["id"].(string))
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
	if !ok {
		t.Fatalf("%s is not in the answer", o.Addr())
	}
	_, was, err := o.Values(k)
	_, is, err2 := now.Values(k)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return !is.RawEquals(was)
}

// DeletedByOthersAndDestroyed shows that what others deleted is made again, and that a destroy leaves nothing.
func DeletedByOthersAndDestroyed(t *testing.T, p *Place) {
	s := newSuite(t, p)
	s.applied(t)
	c := Ask(t, s.Server, s.Token)
	for _, k := range slices.Backward(schema.Kinds()) {
		o, err := c.ByID(t.Context(), s.State(t)[at(k)]["id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		r := client.Request{Stack: "core", Changes: []client.Change{{Action: client.Delete, Kind: k.Name, Key: o.Key}}}
		if _, err := c.Apply(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for address, a := range s.Plan(t) {
		if a.String() != "create" {
			t.Errorf("%s: %s, want create", address, a)
		}
	}
	s.applied(t)
	s.Apply(t, "-destroy")
	for _, k := range schema.Kinds() {
		for o, err := range c.List(t.Context(), k.Name, client.Filter{Stack: "core"}) {
			t.Errorf("%s is left: %v", o.Addr(), err)
		}
	}
}

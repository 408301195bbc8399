package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// storyFile is what a story says beside its objects, in options.json.
type storyFile struct {
	Mode                      plan.Mode
	Targets, Exclude, Replace []string
	Moves                     []struct{ From, To string }
	Removals                  []struct {
		From    string
		Destroy bool
	}
	Imports  []struct{ To, ID string }
	About    map[string]string // of a request
	Lost     []struct{ ID, Addr, Address string }
	Absence  map[string]schema.Absence
	Outputs  []outputFile
	Before   []outputFile // outputs of the last apply
	Live     []findingFile
	Draining []findingFile
}

type outputFile struct {
	Name      string
	Value     ctyjson.SimpleJSONValue
	Sensitive bool
}

type findingFile struct{ Addr, Message string }

type lifecycleFile struct {
	PreventDestroy bool
	IgnoreChanges  []string // tenant, nodes.dual, or all
	Triggers       []string // pool.bi, or pool.bi memory
}

func options(t *testing.T, archive *txtar.Archive) storyFile {
	t.Helper()
	var o storyFile
	parse(t, archive, "options.json", &o)
	return o
}

// extend adds what options.json says.
func extend(t *testing.T, archive *txtar.Archive, in *plan.Input) {
	t.Helper()
	o := options(t, archive)
	in.Mode, in.About = o.Mode, o.About
	in.Selection = plan.Selection{Targets: places(t, o.Targets), Exclude: places(t, o.Exclude), Replace: places(t, o.Replace)}
	for _, m := range o.Moves {
		in.Desired.Moves = append(in.Desired.Moves, schema.Move{From: place(t, m.From), To: place(t, m.To)})
	}
	for _, r := range o.Removals {
		in.Desired.Removals = append(in.Desired.Removals, schema.Removal{From: place(t, r.From), Destroy: r.Destroy})
	}
	for _, i := range o.Imports {
		id, err := schema.ParseAddr(i.ID)
		if err != nil {
			t.Fatal(err)
		}
		in.Desired.Imports = append(in.Desired.Imports, schema.Import{To: place(t, i.To), ID: id})
	}
	for _, l := range o.Lost {
		addr, err := schema.ParseAddr(l.Addr)
		if err != nil {
			t.Fatal(err)
		}
		in.Lost = append(in.Lost, plan.Lost{ID: l.ID, Addr: addr, Address: l.Address})
	}
	if o.Absence != nil {
		in.Desired.Absence = func(a schema.Address) schema.Absence { return o.Absence[a.String()] }
	}
	in.FingerprintOutput = func(name string, v cty.Value) string { return fmt.Sprintf("print(%s=%#v)", name, v) }
	in.Desired.Outputs, in.Outputs = outputs(o.Outputs), outputs(o.Before)
}

func outputs(files []outputFile) []schema.Output {
	var out []schema.Output
	for _, f := range files {
		out = append(out, schema.Output{Name: f.Name, Value: f.Value.Value, Sensitive: f.Sensitive})
	}
	return out
}

// enliven adds what the engine would have seen outside the store.
func enliven(t *testing.T, archive *txtar.Archive, p *plan.Plan) {
	t.Helper()
	o := options(t, archive)
	p.Live, p.Draining = findings(t, o.Live), findings(t, o.Draining)
}

func findings(t *testing.T, files []findingFile) []plan.Finding {
	t.Helper()
	var out []plan.Finding
	for _, f := range files {
		addr, err := schema.ParseAddr(f.Addr)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, plan.Finding{Addr: addr, Message: f.Message})
	}
	return out
}

func place(t *testing.T, s string) schema.Address {
	t.Helper()
	a, err := schema.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func places(t *testing.T, list []string) []schema.Address {
	t.Helper()
	var out []schema.Address
	for _, s := range list {
		a, err := schema.ParseNamed(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

func (l lifecycleFile) lifecycle(t *testing.T) schema.Lifecycle {
	t.Helper()
	out := schema.Lifecycle{PreventDestroy: l.PreventDestroy}
	for _, s := range l.IgnoreChanges {
		if s == "all" {
			out.IgnoreAll = true
			continue
		}
		var path cty.Path
		for _, name := range strings.Split(s, ".") {
			path = path.GetAttr(name)
		}
		out.IgnoreChanges = append(out.IgnoreChanges, path)
	}
	for _, s := range l.Triggers {
		at, attr, _ := strings.Cut(s, " ")
		out.ReplaceTriggeredBy = append(out.ReplaceTriggeredBy, schema.Trigger{Address: place(t, at), Attr: attr})
	}
	return out
}

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// document tells programs a plan, as one JSON document.
type document struct {
	*text
	warnings []schema.Diagnostic // of the configuration
}

func (t *document) evaluated(p *plan.Plan, diags hcl.Diagnostics, files map[string]*hcl.File) error {
	t.warnings = config.Diagnostics(diags, files)
	if !diags.HasErrors() {
		return nil
	}
	return t.writePlan(p, t.warnings, nil)
}

func (t *document) planned(p *plan.Plan, c *configuration, v *verdict) error {
	return t.writePlan(p, append(t.warnings, v.diagnostics(p, c)...), v)
}

// events tells programs what an apply does while it does it, one line of JSON for each event.
type events struct {
	*stream
	changes []plan.Change
	start   time.Time // of the carrying out
	open    map[schema.Addr]string
}

func newEvents(a *app) *events {
	t := &events{stream: newStream(a.stdout, time.Now), open: map[schema.Addr]string{}}
	t.Version()
	return t
}

func (t *events) evaluated(_ *plan.Plan, diags hcl.Diagnostics, files map[string]*hcl.File) error {
	for _, d := range config.Diagnostics(diags, files) {
		t.Diagnostic(d)
	}
	return t.Err()
}

func (t *events) planned(p *plan.Plan, c *configuration, v *verdict) error {
	d, err := plan.NewDocument(p, version, v.diagnostics(p, c))
	if err != nil {
		return err
	}
	for _, diagnostic := range d.Diagnostics {
		t.Diagnostic(diagnostic)
	}
	t.changes = p.Changes
	t.Plan(d)
	for _, result := range v.outcomes() {
		t.PolicyResult(result)
	}
	return nil
}

func (t *events) aside(string, ...any) {}

// committed has each change begin. Those of which nothing lies outside the store are done with the
// first call of pending.
func (t *events) committed() {
	t.start = time.Now()
	for _, c := range t.changes {
		t.open[c.Addr] = string(c.Action)
		t.ApplyStart(hookOf(c, 0))
	}
}

func (t *events) held(err error) {
	t.write(event{Type: "waiting", Level: "warn", Message: err.Error()})
}

func (t *events) pending(all []plan.Finding, elapsed time.Duration) {
	left := map[schema.Addr]bool{}
	for _, f := range all {
		left[f.Addr] = true
		if t.open[f.Addr] != f.Message {
			t.open[f.Addr] = f.Message
			t.ApplyProgress(t.hook(f.Addr, elapsed), f.Message)
		}
	}
	t.complete(elapsed, func(a schema.Addr) bool { return !left[a] })
}

func (t *events) still(all []plan.Finding, elapsed time.Duration) {
	for _, f := range all {
		t.ApplyProgress(t.hook(f.Addr, elapsed), f.Message)
	}
}

// hook is that of the planned change of an object, or of what the live world lacks.
func (t *events) hook(a schema.Addr, elapsed time.Duration) hook {
	for _, c := range t.changes {
		if c.Addr == a {
			return hookOf(c, elapsed)
		}
	}
	return hookOfLive(plan.Finding{Addr: a}, elapsed)
}

func (t *events) complete(elapsed time.Duration, is func(schema.Addr) bool) {
	order := func(a, b schema.Addr) int { return strings.Compare(a.String(), b.String()) }
	for _, a := range slices.SortedFunc(maps.Keys(t.open), order) {
		if is(a) {
			delete(t.open, a)
			t.ApplyComplete(t.hook(a, elapsed))
		}
	}
}

func (t *events) done(p *plan.Plan, word string) error {
	t.complete(time.Since(t.start), func(schema.Addr) bool { return true })
	d, err := plan.NewDocument(p, version, nil)
	if err != nil {
		return err
	}
	t.ChangeSummary(word, d.Summary)
	return t.Err()
}

func (t *events) outputs(list []schema.Output) error { return t.Outputs(list) }

func (t *events) ended(err error) error {
	var left *engine.NotConvergedError
	if errors.As(err, &left) {
		elapsed := time.Since(t.start)
		for _, f := range left.Pending {
			if engine.Skipped(f) {
				t.ApplySkipped(t.hook(f.Addr, elapsed), f.Message)
			} else {
				t.ApplyErrored(t.hook(f.Addr, elapsed), f.Message)
			}
		}
	}
	message := "done"
	switch {
	case errors.Is(err, errConfiguration):
		message = "the configuration has errors"
	case err != nil:
		message = fmt.Sprint(err)
	}
	t.Done(exitCode(err), message)
	return errors.Join(err, t.Err())
}

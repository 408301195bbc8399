package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// teller tells what a command plans and does. Its calls never overlap.
type teller interface {
	// evaluated tells what is wrong with a configuration. Where that stops it, the plan is the empty one that
	// would have been made of it, and no other is told.
	evaluated(p *plan.Plan, diags hcl.Diagnostics, files map[string]*hcl.File) error
	// planned tells a plan, what is wrong with it, and what a policy says of it. A saved plan has no configuration: nil.
	planned(p *plan.Plan, c *configuration, v *verdict) error
	// aside tells people something that is no result.
	aside(format string, args ...any)
	committed()
	// held tells that another process acts in this one's place, and which.
	held(err error)
	// pending tells what is pending, each time that it has changed.
	pending(all []plan.Finding, elapsed time.Duration)
	// still tells that this has been pending for long.
	still(all []plan.Finding, elapsed time.Duration)
	// done tells that a plan was carried out; the word is apply or destroy.
	done(p *plan.Plan, word string) error
	outputs(list []schema.Output) error
	// ended is the last call, with what went wrong; it returns that.
	ended(err error) error
}

// text tells people.
type text struct {
	*app
	out  io.Writer
	last []plan.Finding
}

func newText(a *app) *text { return &text{app: a, out: a.stdout} }

// teller returns how a command that acts tells what it does.
func (a *app) teller(asJSON bool) teller {
	if asJSON {
		return newEvents(a)
	}
	return newText(a)
}

// planTeller returns how a command that only plans tells that. What is not the plan goes to standard error
// where the plan is JSON.
func (a *app) planTeller(asJSON bool) teller {
	if asJSON {
		return &document{text: &text{app: a, out: a.stderr}}
	}
	return newText(a)
}

func (t *text) evaluated(_ *plan.Plan, diags hcl.Diagnostics, files map[string]*hcl.File) error {
	t.diagnose(diags, files)
	return nil
}

func (t *text) planned(p *plan.Plan, c *configuration, v *verdict) error {
	if err := (plan.Text{Color: t.colored(t.out)}).Write(t.out, p); err != nil {
		return err
	}
	if c != nil && len(p.Problems) > 0 {
		fmt.Fprintln(t.stderr)
		t.report(c, p.Problems)
	}
	t.tellVerdict(v)
	return nil
}

func (t *text) aside(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

func (t *text) committed() { t.aside("\nCommitted.\n") }

func (t *text) held(err error) {
	if by := (*store.HeldError)(nil); errors.As(err, &by) {
		t.aside("  Waiting for %s, which makes and removes what is outside the store since %s\n", by.Holder, by.Since.Local().Format(time.TimeOnly))
		return
	}
	t.aside("  Waiting for another process: %s\n", err)
}

// pending prints what is new or different.
func (t *text) pending(all []plan.Finding, elapsed time.Duration) {
	for _, f := range all {
		if !slices.Contains(t.last, f) {
			t.aside("  %s: %s [%s]\n", f.Addr, f.Message, elapsed.Round(100*time.Millisecond))
		}
	}
	t.last = all
}

func (t *text) still(all []plan.Finding, elapsed time.Duration) {
	for _, f := range all {
		t.aside("Still %s... [%s elapsed]\n", engine.Doing(f), elapsed.Round(time.Second))
	}
}

func (t *text) done(p *plan.Plan, word string) error {
	add, change, destroy := p.Counts()
	t.aside("\n%s complete: %s.\n", title(word), carriedOut(plan.Summary{
		Add: add, Change: change, Destroy: destroy, Import: p.Imported(), Forget: p.Forgotten(),
	}))
	return nil
}

// carriedOut says in words what became of the store.
func carriedOut(s plan.Summary) string {
	words := fmt.Sprintf("%d added, %d changed, %d destroyed", s.Add, s.Change, s.Destroy)
	if s.Import > 0 {
		words = fmt.Sprintf("%d imported, %s", s.Import, words)
	}
	if s.Forget > 0 {
		words += fmt.Sprintf(", %d forgotten", s.Forget)
	}
	return words
}

func (t *text) outputs(list []schema.Output) error {
	if len(list) == 0 {
		return nil
	}
	t.aside("\nOutputs:\n\n")
	for _, o := range list {
		t.aside("%s = %s\n", o.Name, shownOutput(o))
	}
	return nil
}

func (t *text) ended(err error) error { return err }

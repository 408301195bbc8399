package main

import (
	"fmt"
	"time"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// lines tells programs what an apply does, as a stream of events. What only people want goes to standard
// error.
type lines struct {
	*app
	*stream
	changes []plan.Change
	summary plan.Summary
	last    []plan.Finding
}

func newLines(a *app) *lines {
	l := &lines{app: a, stream: newStream(a.stdout, time.Now)}
	l.Version()
	return l
}

// planned tells a plan and what is wrong with it. A saved plan has no configuration: nil.
func (l *lines) planned(p *plan.Plan, c *configuration) error {
	d, err := plan.NewDocument(p, version, l.diagnostics(p, c))
	if err != nil {
		return err
	}
	l.changes, l.summary = p.Changes, d.Summary
	l.Plan(d)
	for _, diagnostic := range d.Diagnostics {
		l.Diagnostic(diagnostic)
	}
	return l.Err()
}

// diagnostics are a plan's problems, with their places where the configuration is known.
func (a *app) diagnostics(p *plan.Plan, c *configuration) []schema.Diagnostic {
	if c == nil {
		return nil
	}
	return c.diagnostics(p.Problems)
}

func (l *lines) aside(format string, args ...any) { fmt.Fprintf(l.stderr, format, args...) }

// committed tells that the rows of all objects are as planned: they are written at once.
func (l *lines) committed() {
	for _, c := range l.changes {
		l.ApplyStart(hookOf(c, 0))
		l.ApplyComplete(hookOf(c, 0))
	}
}

// held tells that another process acts in this one's place.
func (l *lines) held(err error) { l.aside("Waiting for another process: %s\n", err) }

// pending tells what has come, what is different, and what is done.
func (l *lines) pending(all []plan.Finding, elapsed time.Duration) {
	before, now := byObject(l.last), byObject(all)
	for _, f := range l.last {
		if _, still := now[f.Addr]; !still {
			l.ApplyComplete(hookOfLive(f, elapsed))
			now[f.Addr] = "" // said once
		}
	}
	for _, f := range all {
		message, known := before[f.Addr]
		if !known {
			l.ApplyStart(hookOfLive(f, elapsed))
			before[f.Addr] = f.Message
		}
		if message != f.Message {
			l.ApplyProgress(hookOfLive(f, elapsed), f.Message)
		}
	}
	l.last = all
}

func byObject(findings []plan.Finding) map[schema.Addr]string {
	messages := map[schema.Addr]string{}
	for _, f := range findings {
		messages[f.Addr] = f.Message
	}
	return messages
}

// still tells that this has been pending for long.
func (l *lines) still(all []plan.Finding, elapsed time.Duration) {
	for _, f := range all {
		l.ApplyProgress(hookOfLive(f, elapsed), f.Message)
	}
}

// done tells that a plan was carried out; the word is apply or destroy.
func (l *lines) done(_ *plan.Plan, word string) error {
	l.pending(nil, 0)
	l.ChangeSummary(word, l.summary)
	return l.Err()
}

func (l *lines) outputs(list []schema.Output) error {
	if err := l.Outputs(list); err != nil {
		return err
	}
	return l.Err()
}

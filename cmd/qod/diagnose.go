package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// diagnose prints diagnostics with their places. With --compact-warnings each warning is one line.
func (a *app) diagnose(diags hcl.Diagnostics, files map[string]*hcl.File) {
	if !a.compact {
		_ = config.WriteDiagnostics(a.stderr, diags, files, a.colored(a.stderr)) // nothing can be said on a closed pipe
		return
	}
	var rest hcl.Diagnostics
	var summaries []string
	places := map[string][]string{}
	for _, d := range diags {
		if d.Severity != hcl.DiagWarning {
			rest = append(rest, d)
			continue
		}
		if _, known := places[d.Summary]; !known {
			summaries = append(summaries, d.Summary)
		}
		places[d.Summary] = append(places[d.Summary], place(d))
	}
	for _, summary := range summaries {
		more := ""
		if n := len(places[summary]) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
		fmt.Fprintf(a.stderr, "Warning: %s%s%s\n", summary, places[summary][0], more)
	}
	_ = config.WriteDiagnostics(a.stderr, rest, files, a.colored(a.stderr))
}

func place(d *hcl.Diagnostic) string {
	if d.Subject == nil {
		return ""
	}
	return fmt.Sprintf(" (%s line %d)", d.Subject.Filename, d.Subject.Start.Line)
}

// report prints a plan's problems with their places in the configuration.
func (a *app) report(c *configuration, problems []plan.Problem) {
	var diags hcl.Diagnostics
	for _, p := range problems {
		diags = append(diags, c.placed(p))
	}
	a.diagnose(diags, c.Files())
}

// diagnostics returns a plan's problems for programs, with their places in the configuration.
func (c *configuration) diagnostics(problems []plan.Problem) []schema.Diagnostic {
	out := []schema.Diagnostic{}
	for _, p := range problems {
		d := config.Diagnostics(hcl.Diagnostics{c.placed(p)}, c.Files())[0]
		named := p.Diagnostic()
		d.Address, d.Path = named.Address, named.Path
		out = append(out, d)
	}
	return out
}

func (c *configuration) placed(p plan.Problem) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: p.Summary, Detail: p.Detail, Subject: p.Range}
	if p.Warning {
		d.Severity = hcl.DiagWarning
	}
	if r := c.Range(p.Address, p.Path); d.Subject == nil && r.Filename != "" {
		d.Subject = &r
	}
	return d
}

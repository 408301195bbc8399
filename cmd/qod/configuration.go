package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/store"
)

// lockFile is committed beside the configuration: it tells this stack from another of the same name.
const lockFile = ".qod.lock.hcl"

// given collects -var and -var-file in the order in which they are written.
type given struct {
	list *[]config.Given
	file bool
}

func (g given) String() string { return "" }
func (g given) Type() string   { return map[bool]string{true: "FILE", false: "NAME=VALUE"}[g.file] }

func (g given) Set(text string) error {
	if g.file {
		*g.list = append(*g.list, config.Given{File: text})
		return nil
	}
	for i := range text {
		if text[i] == '=' {
			*g.list = append(*g.list, config.Given{Name: text[:i], Value: text[i+1:]})
			return nil
		}
	}
	return fmt.Errorf("want NAME=VALUE")
}

func varFlags(cmd *cobra.Command) *[]config.Given {
	list := &[]config.Given{}
	cmd.Flags().Var(given{list: list}, "var", "set a variable; may be repeated")
	cmd.Flags().Var(given{list: list, file: true}, "var-file", "read variables from this file; may be repeated")
	completeFiles(cmd, "var-file")
	return list
}

// configuration is an evaluated directory.
type configuration struct {
	*config.Desired
	dir    string
	policy *config.Policy // for what is planned of it; nil without
}

var errConfiguration = exitError{code: 1}

// evaluate reads the working directory's configuration. What is wrong with it has been printed when it
// returns errConfiguration.
func (a *app) evaluate(vars []config.Given) (*configuration, error) {
	c, diags, files := a.read(vars)
	a.diagnose(diags, files)
	if diags.HasErrors() {
		return nil, errConfiguration
	}
	return c, nil
}

// read evaluates the working directory's configuration. It is only good for its stack's name when the
// diagnostics have errors. The files are their sources.
func (a *app) read(vars []config.Given) (*configuration, hcl.Diagnostics, map[string]*hcl.File) {
	loaded, diags := config.Load(a.paths.Shown)
	desired, more := loaded.Evaluate(a.inputs(vars))
	diags = append(diags, more...)
	if desired.Stack == systemStack {
		diags = append(diags, &hcl.Diagnostic{
			Severity: hcl.DiagError, Summary: "Reserved name of a stack", Subject: &desired.StackRange,
			Detail: fmt.Sprintf("Stack %q is qod's own: give this one another name.", systemStack),
		})
	}
	return &configuration{Desired: desired, dir: a.paths.Dir}, diags, desired.Files()
}

// inputs are what a configuration is evaluated with.
func (a *app) inputs(vars []config.Given) config.Inputs {
	vars = slices.Clone(vars)
	for i := range vars {
		vars[i].File = a.paths.shown(vars[i].File)
	}
	return config.Inputs{Given: vars, Env: a.env, Now: time.Now()}
}

// How much garbage there may be beside what is in use, in percent of it. An estate of 15,000 objects takes about
// 130 MB. With Go's own 100 percent, a third of the time of a plan went into looking for garbage; with 300 it
// is less than a tenth, and the process stays below 450 MB. An apply has the plan and what it writes in use as well,
// and after the commit what it reads again: then it only waits for others, and has time to look. So it stays
// below 450 MB too. A limit of memory would do worse: close to it, nothing but collecting is done.
const (
	garbageOfPlans   = 300
	garbageOfApplies = 50
	garbageOfWaiting = 20
)

// collect sets how much garbage there may be. GOGC in the environment prevails.
func (a *app) collect(percent int) {
	if _, set := a.env("GOGC"); !set {
		debug.SetGCPercent(percent)
	}
}

// stack returns the configuration's stack with the lineage of the lock file, if there is one.
func (c *configuration) stack() (store.Stack, error) {
	lineage, err := readLineage(c.dir, c.Stack)
	return store.Stack{Name: c.Stack, Lineage: lineage}, err
}

func readLineage(dir, stack string) (string, error) {
	src, err := os.ReadFile(filepath.Join(dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read lineage: %w", err)
	}
	lineage, err := lineageIn(src, stack)
	if err != nil {
		return "", fmt.Errorf("%s is damaged: %w; take it from version control again, or from who made the stack", lockFile, err)
	}
	return lineage, nil
}

// lineageIn returns the stack's lineage in a lock file, "" where it is not there.
func lineageIn(src []byte, stack string) (string, error) {
	f, diags := hclparse.NewParser().ParseHCL(src, lockFile)
	if diags.HasErrors() {
		return "", diags
	}
	content, diags := f.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "stack", LabelNames: []string{"name"}}}})
	if diags.HasErrors() {
		return "", diags
	}
	for _, b := range content.Blocks {
		attrs, diags := b.Body.JustAttributes()
		if diags.HasErrors() {
			return "", diags
		}
		if attr := attrs["lineage"]; b.Labels[0] == stack && attr != nil {
			v, diags := attr.Expr.Value(nil)
			if diags.HasErrors() || v.IsNull() || v.Type() != cty.String {
				return "", fmt.Errorf("lineage on line %d is not a string", attr.Range.Start.Line)
			}
			return v.AsString(), nil
		}
	}
	return "", nil
}

// writeLineage adds a stack to the lock file, which it makes when there is none.
func writeLineage(dir, stack, lineage string) error {
	name := filepath.Join(dir, lockFile)
	f := hclwrite.NewEmptyFile()
	if src, err := os.ReadFile(name); err == nil {
		parsed, diags := hclwrite.ParseConfig(src, name, hcl.InitialPos)
		if diags.HasErrors() {
			return diags
		}
		f = parsed
	} else {
		f.Body().AppendUnstructuredTokens(hclwrite.Tokens{{
			Type: hclsyntax.TokenComment, Bytes: []byte("# Made by qod. Commit it: it tells this stack from another of the same name.\n"),
		}})
	}
	f.Body().AppendNewBlock("stack", []string{stack}).Body().SetAttributeValue("lineage", cty.StringVal(lineage))
	if err := os.WriteFile(name, hclwrite.Format(f.Bytes()), 0o644); err != nil {
		return fmt.Errorf("write lineage: %w", err)
	}
	return nil
}

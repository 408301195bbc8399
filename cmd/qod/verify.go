package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/runtime/node"
	"github.com/qod-io/qod/schema"
)

// verifyFormat is the version of verify's JSON form.
const verifyFormat = "1.1"

func newVerify(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that what the configuration refers to is there and can be used",
		Long: "verify checks the configuration, the state and the rights on it, the objects that are referred to by name, databases\n" +
			"and data directories, DuckDB's extensions, the program that nodes run, and certificates. It writes nothing.",
		Example: "  qod verify\n  qod verify --json",
		Args:    noArguments,
	}
	vars := varFlags(cmd)
	inJSON := cmd.Flags().Bool("json", false, "print the checks as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := &verification{app: a, inJSON: *inJSON, diagnostics: []schema.Diagnostic{}}
		v.run(cmd.Context(), *vars)
		return v.write()
	}
	return cmd
}

// check is one thing that was looked at.
type check struct {
	Name   string `json:"check"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why it failed
}

type verification struct {
	*app
	inJSON      bool
	checks      []check
	diagnostics []schema.Diagnostic // of the configuration, where they are told as JSON
}

// note records a check: it is good when nothing is wrong.
func (v *verification) note(name string, wrong ...string) {
	wrong = slices.DeleteFunc(wrong, func(s string) bool { return s == "" })
	v.checks = append(v.checks, check{Name: name, OK: len(wrong) == 0, Reason: strings.Join(wrong, "; ")})
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (v *verification) write() error {
	failed := slices.ContainsFunc(v.checks, func(c check) bool { return !c.OK })
	if v.inJSON {
		if err := v.printJSON(struct {
			Format      string              `json:"format_version"`
			Checks      []check             `json:"checks"`
			Diagnostics []schema.Diagnostic `json:"diagnostics"`
		}{verifyFormat, v.checks, v.diagnostics}); err != nil {
			return err
		}
	} else {
		for _, c := range v.checks {
			if c.OK {
				v.printf("ok    %s\n", c.Name)
			} else {
				v.printf("FAIL  %s: %s\n", c.Name, strings.ReplaceAll(c.Reason, "\n", " "))
			}
		}
	}
	if failed {
		return exitError{code: 1}
	}
	return nil
}

func (v *verification) run(ctx context.Context, vars []config.Given) {
	c := v.configuration(vars)
	v.extensions()
	v.program()
	v.certificate()
	w, err := v.open(ctx, openOptions{})
	if err != nil {
		v.note("state", err.Error())
		return
	}
	defer w.Close()
	if w.imagined {
		v.note("state", "there is none yet: run qod apply, which makes it")
	} else {
		v.state(ctx, w)
	}
	if c != nil {
		v.objects(ctx, w, c)
	}
}

// configuration checks the files, and returns what they say, or nil where that is not known.
func (v *verification) configuration(vars []config.Given) *configuration {
	c, diags, files := v.read(vars)
	where := "above"
	if v.inJSON {
		v.diagnostics, where = config.Diagnostics(diags, files), "diagnostics"
	} else {
		v.diagnose(diags, files)
	}
	if diags.HasErrors() {
		v.note("configuration", "it is not valid, see "+where)
		return nil
	}
	v.note("configuration")
	return c
}

func (v *verification) state(ctx context.Context, w *world) {
	missing, err := w.postgres.Rights(ctx)
	v.note("state", append(missing, words(err))...)
}

// objects checks what the objects of the configuration refer to.
func (v *verification) objects(ctx context.Context, w *world, c *configuration) {
	stack, err := c.stack()
	if err == nil {
		err = w.checkStack(ctx, stack, false)
	}
	v.note("stack "+c.Stack, words(err))
	if err != nil {
		return
	}
	p, err := w.plans.Plan(ctx, stack, c.Desired.Desired, engine.PlanOptions{})
	if err != nil {
		v.note("objects", err.Error())
		return
	}
	wrong := map[string][]string{}
	for _, problem := range p.Problems {
		if !problem.Warning {
			wrong[problem.Address] = append(wrong[problem.Address], problem.Summary)
		}
	}
	lacks := map[schema.Addr]string{}
	for _, f := range p.Live {
		lacks[f.Addr] = f.Message
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		v.note("objects", err.Error())
		return
	}
	databases := map[schema.Addr]bool{}
	stored := map[schema.Addr]bool{}
	for _, o := range snap.Objects {
		databases[o.Addr()] = o.Kind.Name == lakes && !o.Tombstone
		stored[o.Addr()] = !o.Tombstone
	}
	for _, o := range c.Objects {
		databases[o.Addr()] = databases[o.Addr()] || o.Kind.Name == lakes
	}
	for _, o := range c.Objects {
		found := wrong[o.Address]
		if o.Kind.Name == lakes && stored[o.Addr()] {
			found = append(found, lacks[o.Addr()])
		}
		v.note(o.Address, append(found, unknownCatalogs(o, databases)...)...)
		delete(wrong, o.Address)
	}
	for _, address := range slices.Sorted(maps.Keys(wrong)) {
		v.note(address, wrong[address]...)
	}
}

// unknownCatalogs says which databases the permissions of a role name in vain.
func unknownCatalogs(o schema.Object, databases map[schema.Addr]bool) []string {
	if o.Kind.Name != "role" {
		return nil
	}
	complete, _ := o.Kind.Complete(o.Value) // evaluated objects have no problems
	role, err := schema.As[schema.Role](complete)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	for _, p := range role.Permission {
		addr := schema.NewAddr(lakes, role.Tenant, p.Catalog)
		switch {
		case p.Catalog == "*" || databases[addr]:
		case slices.Contains(o.Sensitive, "permission"):
			wrong = append(wrong, "a permission names a database that does not exist; its name is sensitive")
		default:
			wrong = append(wrong, fmt.Sprintf("a permission names %s, which does not exist", addr))
		}
	}
	return wrong
}

func (v *verification) extensions() {
	for _, name := range slices.Sorted(maps.Keys(node.ExtensionDigests()[node.ExtensionPlatform()])) {
		v.note("extension "+name, words(node.CheckExtensions(v.paths.ExtensionDir, name)))
	}
}

// program checks that nodes can be started: they are this very program.
func (v *verification) program() {
	binary, err := os.Executable()
	if err != nil {
		v.note("program of nodes", err.Error())
		return
	}
	info, err := os.Stat(binary)
	switch {
	case err != nil:
		v.note("program of nodes", err.Error())
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		v.note("program of nodes", binary+" cannot be executed")
	default:
		v.note("program of nodes")
	}
}

// certificate checks the operator's certificate, or the one that serve made.
func (v *verification) certificate() {
	cert, key, made := v.paths.TLSCertFile, v.paths.TLSKeyFile, v.paths.in("tls", "edge.crt")
	if cert == "" {
		if _, err := os.Stat(made); errors.Is(err, fs.ErrNotExist) {
			v.note("certificate") // the first serve makes it
			return
		}
		cert, key = made, v.paths.in("tls", "edge.key")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		v.note("certificate", err.Error())
		return
	}
	now := time.Now()
	switch leaf := pair.Leaf; {
	case now.After(leaf.NotAfter):
		v.note("certificate", fmt.Sprintf("%s is out of date since %s", cert, leaf.NotAfter.Format(time.DateOnly)))
	case now.Before(leaf.NotBefore):
		v.note("certificate", fmt.Sprintf("%s is good only from %s on", cert, leaf.NotBefore.Format(time.DateOnly)))
	default:
		v.note("certificate")
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

type exportOptions struct {
	stack, out, format string
	unowned, json      bool
}

func newExport(a *app) *cobra.Command {
	o := &exportOptions{}
	cmd := &cobra.Command{
		Use:   "export [ADDRESS...]",
		Short: "Write what is stored as configuration",
		Long: "export writes the objects of a stack as the configuration that has them: applying it changes nothing, and exporting\n" +
			"again writes the same bytes. Secrets are not in it. With addresses it writes those objects only; references to\n" +
			"others are their names. A file that exists is never overwritten.",
		Example: "  qod export\n  qod export --unowned -o found.qod.hcl\n  qod export pool.bi 'user.all[\"ana\"]' --json\n" +
			"  qod export --format terraform -o platform/",
	}
	f := cmd.Flags()
	f.StringVar(&o.stack, "stack", "", stackUsage)
	f.BoolVar(&o.unowned, "unowned", false, "export objects without an owner, each with the import block that takes it over")
	f.BoolVar(&o.json, "json", false, "write HCL's JSON syntax, as in files named *.qod.json")
	f.StringVar(&o.format, "format", "hcl", "write this `FORMAT`: hcl, json, or terraform with an import block for each object")
	completeChoices(cmd, "format", "hcl", "json", "terraform")
	cmd.MarkFlagsMutuallyExclusive("json", "format")
	f.StringVarP(&o.out, "out", "o", "", "write to this `FILE`, or into this directory; default: standard output")
	completeFiles(cmd, "out")
	cmd.ValidArgsFunction = a.completeAddresses(-1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args, o) }
	return cmd
}

func (a *app) export(ctx context.Context, addresses []string, o *exportOptions) error {
	w, err := a.open(ctx, openOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	if w.imagined {
		return errors.New("there is no state yet, so there is nothing to export: run qod apply")
	}
	if o.json {
		o.format = "json"
	}
	if !slices.Contains([]string{"hcl", "json", "terraform"}, o.format) {
		return fmt.Errorf("--format %q: want hcl, json or terraform", o.format)
	}
	options := export.Options{Import: o.unowned}
	if !o.unowned {
		if options.Stack, err = a.stackName(o.stack); err != nil {
			return err
		}
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	objects, err := exported(snap, options.Stack, addresses)
	if err != nil {
		return err
	}
	if len(objects) == 0 && options.Stack != "" {
		return fmt.Errorf("stack %q has no objects%s", options.Stack, schema.DidYouMean(options.Stack, stacks(snap)))
	}
	options.Outputs = a.exportedOutputs(snap, options.Stack)
	if len(addresses) > 0 {
		options.Stack, options.Outputs = "", nil // a part, to be put where it belongs
	}
	if o.format == "terraform" {
		text, warnings := export.Terraform(options.Stack, objects)
		a.warn(warnings)
		return a.writeExport(text, "main.tf", o.out)
	}
	document, err := export.New(options, objects)
	if err != nil {
		return err
	}
	a.warn(document.Warnings)
	return a.writeDocument(document, o.format == "json", o.out)
}

func (a *app) warn(warnings []string) {
	for _, warning := range warnings {
		fmt.Fprintln(a.stderr, "Warning:", warning)
	}
}

// exported lists what a stack owns, or, without a name, what nobody does.
func exported(snap *store.Snapshot, stack string, addresses []string) ([]export.Object, error) {
	chosen, err := chosen(living(snap, stack), addresses)
	if err != nil {
		return nil, err
	}
	var out []export.Object
	for _, o := range chosen {
		out = append(out, export.Object{
			Kind: o.Kind, Address: o.Address, Value: o.Spec, Sensitive: o.Sensitive, Lifecycle: schema.Lifecycle{PreventDestroy: o.Protected},
		})
	}
	return out, nil
}

// exportedOutputs lists the outputs of a stack that can be written, and warns of the others.
func (a *app) exportedOutputs(snap *store.Snapshot, stack string) []schema.Output {
	var out []schema.Output
	for _, o := range snap.Outputs[stack] {
		if o.Sensitive {
			fmt.Fprintf(a.stderr, "Warning: output %q is sensitive and not exported: write it anew, or the next apply takes it away.\n", o.Name)
			continue
		}
		out = append(out, o)
	}
	return out
}

func stacks(snap *store.Snapshot) []string {
	var names []string
	for name := range snap.Stacks {
		names = append(names, name)
	}
	return names
}

// named reports whether an object is what a person calls it: by its place in the configuration, as in
// pool.bi, user.all or module.eu, or by its own address, as in pool.acme/bi.
func named(o store.Object, name string) bool {
	if o.Addr().String() == name {
		return true
	}
	want, err := schema.ParseAddress(name)
	if err != nil {
		return false
	}
	have, err := schema.ParseAddress(o.Address)
	return err == nil && want.Contains(have)
}

// chosen returns the objects that any of the names means, all of them where there are no names.
func chosen(objects []store.Object, names []string) ([]store.Object, error) {
	if len(names) == 0 {
		return objects, nil
	}
	var out []store.Object
	met := map[string]bool{}
	for _, o := range objects {
		takes := false
		for _, name := range names {
			if named(o, name) {
				met[name], takes = true, true
			}
		}
		if takes {
			out = append(out, o)
		}
	}
	for _, name := range names {
		if !met[name] {
			return nil, noObject(objects, name)
		}
	}
	return out, nil
}

func noObject(objects []store.Object, name string) error {
	var known []string
	for _, o := range objects {
		known = append(known, o.Address, o.Addr().String())
		if a, err := schema.ParseAddress(o.Address); err == nil && a.Keyed {
			a.Step = schema.Step{Name: a.Name}
			known = append(known, a.String())
		}
	}
	if _, err := schema.ParseAddress(name); err != nil {
		if _, err := schema.ParseAddr(name); err != nil {
			return fmt.Errorf("%q is no address: want one like pool.bi, user.all[\"ana\"], module.eu or pool.acme/bi", name)
		}
	}
	return fmt.Errorf("there is no object %s.%s", name, schema.DidYouMean(name, known))
}

// stackName returns the given name, or that of the directory's configuration, which need not be complete.
func (a *app) stackName(given string) (string, error) {
	stack, err := a.ownStack(scope{stack: &given})
	return stack.Name, err
}

func (a *app) writeDocument(d *export.Document, inJSON bool, out string) error {
	if !inJSON {
		return a.writeExport(d.HCL(), "main.qod.hcl", out)
	}
	text, err := d.JSON()
	if err != nil {
		return err
	}
	return a.writeExport(text, "main.qod.json", out)
}

// writeExport prints a text, or writes it to a file that must not exist yet: the one of that name where out is a
// directory.
func (a *app) writeExport(text []byte, name, out string) error {
	if out == "" {
		_, err := a.stdout.Write(text)
		return err
	}
	directory := strings.HasSuffix(out, string(filepath.Separator))
	if info, err := os.Stat(a.paths.file(out)); err == nil && info.IsDir() || directory {
		if err := os.MkdirAll(a.paths.file(out), 0o755); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		out = filepath.Join(out, name)
	}
	f, err := os.OpenFile(a.paths.file(out), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists, and is not overwritten: name another file", out)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	fmt.Fprintf(a.stderr, "Wrote %s.\n", out)
	return nil
}

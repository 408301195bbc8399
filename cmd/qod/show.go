package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

func newShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [PLAN]",
		Short: "Show a saved plan, or what is stored of the stack",
		Long: "show prints the objects and outputs of a stack as Postgres has them, without defaults and without secrets.\n" +
			"With a PLAN saved by plan --out it prints that plan, also when it can no longer be applied, and with --policy what that\n" +
			"says of it. It writes nothing.",
		Example: "  qod show\n  qod show next.qodplan\n  qod show --json --stack sales",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: completeFileArgs(1),
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON, described in docs/reference/plan-json.md")
	stack, policy := cmd.Flags().String("stack", "", stackUsage), policyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *policy != "" && len(args) == 0 {
			return errors.New("--policy is for a saved plan: name its file")
		}
		rules, err := a.goodPolicy(*policy, newText(a))
		if err != nil {
			return err
		}
		w, err := a.open(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		if len(args) == 1 {
			return a.showPlan(cmd.Context(), w, args[0], *asJSON, rules)
		}
		return a.showStack(cmd.Context(), w, *stack, *asJSON)
	}
	return cmd
}

// readPlan reads a file that may be a plan, and no larger one.
func readPlan(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, plan.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	return raw, nil
}

func (a *app) showPlan(ctx context.Context, w *world, name string, asJSON bool, rules *config.Policy) error {
	raw, err := readPlan(a.paths.file(name))
	if err != nil {
		return err
	}
	if w.imagined {
		return errors.New("there is no state here, and only the master key of the state that a plan was made from opens it")
	}
	p, err := w.plans.Open(ctx, raw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	note := staleness(p.Plan, snap)
	v, err := judgePlan(rules, p.Plan, nil)
	if err != nil {
		return err
	}
	if asJSON {
		diagnostics := v.diagnostics(p.Plan, nil)
		if note != "" {
			diagnostics = append(diagnostics, schema.Diagnostic{Severity: "warning", Summary: "Plan cannot be applied", Detail: note})
		}
		return errors.Join(a.writePlan(p.Plan, diagnostics, v), v.err())
	}
	a.printf("Plan of %s for stack %q.\n\n", p.Created.Local().Format(time.DateTime), p.Stack)
	if err := (plan.Text{Color: a.colored(a.stdout)}).Write(a.stdout, p.Plan); err != nil {
		return err
	}
	if note != "" {
		a.printf("\nNote: %s\n", note)
	}
	newText(a).tellVerdict(v)
	return v.err()
}

// writePlan prints a plan for programs, and what a policy says of it.
func (a *app) writePlan(p *plan.Plan, diagnostics []schema.Diagnostic, v *verdict) error {
	d, err := plan.NewDocument(p, version, diagnostics)
	if err != nil {
		return err
	}
	d.PolicyResults = v.outcomes()
	document, err := d.Encode()
	if err != nil {
		return err
	}
	if _, err := a.stdout.Write(document); err != nil {
		return fmt.Errorf("print plan: %w", err)
	}
	return nil
}

// staleness says in a sentence why a saved plan can no longer be applied, or "" while it can. The ids of new
// objects are made with the plan, so whoever has one of them has applied it.
func staleness(p *plan.Plan, snap *store.Snapshot) string {
	if have, known := snap.Stacks[p.Stack]; known && have.Lineage != p.Lineage {
		return fmt.Sprintf("The plan is of another stack that is also called %q.", p.Stack)
	}
	objects := map[string]store.Object{}
	for _, o := range snap.Objects {
		objects[o.ID] = o
	}
	moved := ""
	for _, c := range p.Changes {
		made := c.NewID
		if c.Action == plan.Create {
			made = c.ID
		}
		if _, exists := objects[made]; exists {
			return "The plan has been applied."
		}
		o, exists := objects[c.ID]
		if c.Action != plan.Create && moved == "" && (!exists || o.Tombstone || int64(o.Revision) != c.Saw) {
			moved = fmt.Sprintf("%s has changed since, by this plan or by somebody else: make the plan anew.", c.Addr)
		}
	}
	return moved
}

// storedStack is what show --json prints of a stack.
type storedStack struct {
	FormatVersion string                  `json:"format_version"`
	QodVersion    string                  `json:"qod_version"`
	Stack         string                  `json:"stack"`
	Revision      int64                   `json:"revision"`
	Objects       []storedObject          `json:"objects"`
	Outputs       map[string]streamOutput `json:"outputs"`
}

// storedObject is an object without its defaults and secrets.
type storedObject struct {
	Address    string          `json:"address"`
	Kind       string          `json:"kind"`
	Object     string          `json:"object"`
	ID         string          `json:"id"`
	Values     json.RawMessage `json:"values"`
	Sensitive  map[string]bool `json:"sensitive"`
	Protected  bool            `json:"protected"`
	Deleting   bool            `json:"deleting"`
	Generation int64           `json:"generation"`
	Revision   int64           `json:"revision"`
	Status     *store.Status   `json:"status,omitempty"`
}

func (a *app) showStack(ctx context.Context, w *world, stack string, asJSON bool) error {
	stack, err := a.stackName(stack)
	if err != nil {
		return err
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	if _, known := snap.Stacks[stack]; !known {
		return fmt.Errorf("nothing is stored of stack %q.%s", stack, schema.DidYouMean(stack, stacks(snap)))
	}
	if asJSON {
		document, err := describeStack(snap, stack)
		if err != nil {
			return err
		}
		return a.printJSON(document)
	}
	return a.printStack(snap, stack)
}

func describeStack(snap *store.Snapshot, stack string) (*storedStack, error) {
	d := &storedStack{
		FormatVersion: plan.FormatVersion, QodVersion: version, Stack: stack, Revision: int64(snap.Revision),
		Objects: []storedObject{}, Outputs: map[string]streamOutput{},
	}
	for _, o := range owned(snap, stack) {
		so := storedObject{
			Address: o.Address, Kind: o.Kind.Name, Object: o.Addr().Path, ID: o.ID, Protected: o.Protected, Deleting: o.Tombstone,
			Generation: o.Generation, Revision: int64(o.Revision),
		}
		if o.Status != (store.Status{}) {
			so.Status = &o.Status
		}
		var err error
		if so.Values, so.Sensitive, err = plan.ShowValue(o.Kind, o.Spec, o.Conceals); err != nil {
			return nil, fmt.Errorf("show %s: %w", o.Addr(), err)
		}
		d.Objects = append(d.Objects, so)
	}
	for _, o := range snap.Outputs[stack] {
		shown, err := showOutput(o)
		if err != nil {
			return nil, err
		}
		d.Outputs[o.Name] = shown
	}
	return d, nil
}

func owned(snap *store.Snapshot, stack string) []store.Object {
	var list []store.Object
	for _, o := range snap.Objects {
		if o.Stack == stack {
			list = append(list, o)
		}
	}
	return list
}

func (a *app) printStack(snap *store.Snapshot, stack string) error {
	objects := owned(snap, stack)
	a.printf("Stack %q at revision %d: %d objects.\n", stack, snap.Revision, len(objects))
	for _, o := range objects {
		a.printf("\n# %s is %s%s\n%s", o.Addr(), o.Address, remarks(o), objectText(o))
	}
	if outputs := snap.Outputs[stack]; len(outputs) > 0 {
		a.printf("\nOutputs:\n\n%s", outputText(outputs))
	}
	return nil
}

func remarks(o store.Object) string {
	words := ""
	if o.Protected {
		words += ", protected"
	}
	if o.Tombstone || o.Status.Phase != "" {
		words += ", " + phase(o)
	}
	return words
}

// objectText writes what is stored as its block, with what is secret left out.
func objectText(o store.Object) string {
	f := hclwrite.NewEmptyFile()
	body := f.Body().AppendNewBlock(o.Kind.Name, []string{o.Addr().Name()}).Body()
	for _, name := range o.Kind.Names() {
		v := o.Spec.GetAttr(name)
		_, isAttr := o.Kind.Attr(name)
		switch {
		case v.IsNull():
		case o.Conceals(name):
			body.SetAttributeRaw(name, raw(plan.Hidden))
		case isAttr:
			body.SetAttributeValue(name, v)
		default:
			for _, block := range plan.Blocks(v) {
				writeBlock(body.AppendNewBlock(name, nil).Body(), block)
			}
		}
	}
	_, rest, _ := strings.Cut(string(hclwrite.Format(f.Bytes())), "\n")
	return plan.Header(o.Addr(), o.Address) + " {\n" + rest // a key is no part of a block that HCL could write
}

func writeBlock(body *hclwrite.Body, v cty.Value) {
	for it := v.ElementIterator(); it.Next(); {
		if key, value := it.Element(); !value.IsNull() {
			body.SetAttributeValue(key.AsString(), value)
		}
	}
}

// raw is text in place of a value.
func raw(text string) hclwrite.Tokens {
	return hclwrite.Tokens{{Type: hclsyntax.TokenIdent, Bytes: []byte(text)}}
}

func outputText(outputs []schema.Output) []byte {
	f := hclwrite.NewEmptyFile()
	for _, o := range outputs {
		if o.Sensitive || o.Value == cty.NilVal {
			f.Body().SetAttributeRaw(o.Name, raw(plan.Hidden))
			continue
		}
		f.Body().SetAttributeValue(o.Name, o.Value)
	}
	return hclwrite.Format(f.Bytes())
}

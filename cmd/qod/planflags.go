package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// planFlags say what a plan is made from, and for what.
type planFlags struct {
	vars                     *[]config.Given
	target, exclude, replace []string
	refreshOnly, destroy     bool
}

// selectionFlags adds what every command has that plans.
func selectionFlags(a *app, cmd *cobra.Command) *planFlags {
	f := &planFlags{vars: varFlags(cmd)}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.target, "target", nil, "take only this `ADDRESS` and what it needs; may be repeated")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "leave out this `ADDRESS` and what needs it; may be repeated")
	a.completePlanned(cmd, "target", "exclude")
	flags.BoolVar(&a.compact, compactFlag, false, "print warnings in one line each")
	return f
}

// addPlanFlags adds the flags that plan and apply share.
func addPlanFlags(a *app, cmd *cobra.Command) *planFlags {
	f := selectionFlags(a, cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.replace, "replace", nil, "destroy this `ADDRESS` and make it anew; may be repeated")
	a.completePlanned(cmd, "replace")
	flags.BoolVar(&f.destroy, "destroy", false, "plan the end of everything the stack owns")
	flags.BoolVar(&f.refreshOnly, "refresh-only", false, "only take what others changed as applied")
	cmd.MarkFlagsMutuallyExclusive("destroy", "refresh-only")
	cmd.MarkFlagsMutuallyExclusive("destroy", "replace")
	cmd.MarkFlagsMutuallyExclusive("refresh-only", "replace")
	return f
}

// options returns what the flags say. An address that cannot be read is an error that names its flag.
func (f *planFlags) options() (planOptions, error) {
	o := planOptions{vars: *f.vars}
	switch {
	case f.destroy:
		o.mode = plan.Destroy
	case f.refreshOnly:
		o.mode = plan.RefreshOnly
	}
	var errs [3]error
	o.selection.Targets, errs[0] = addresses("target", f.target)
	o.selection.Exclude, errs[1] = addresses("exclude", f.exclude)
	o.selection.Replace, errs[2] = addresses("replace", f.replace)
	return o, errors.Join(errs[:]...)
}

func addresses(flag string, texts []string) ([]schema.Address, error) {
	var out []schema.Address
	for _, text := range texts {
		address, err := schema.ParseNamed(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		out = append(out, address)
	}
	return out, nil
}

func jsonFlags(cmd *cobra.Command, usage string) *bool { return cmd.Flags().Bool("json", false, usage) }

// applyFlags say how a plan is carried out.
type applyFlags struct {
	approve     bool
	parallelism int
	lockTimeout time.Duration
	json        *bool
	policy      *policyDir
}

func addApplyFlags(cmd *cobra.Command) *applyFlags {
	f := &applyFlags{json: jsonFlags(cmd, "tell what is done in lines of JSON, described in docs/reference/plan-json.md"), policy: policyFlag(cmd)}
	flags := cmd.Flags()
	flags.BoolVar(&f.approve, "auto-approve", false, "do not ask")
	flags.IntVar(&f.parallelism, "parallelism", 10, "make or remove up to `N` databases at the same time")
	flags.DurationVar(&f.lockTimeout, "lock-timeout", lockTimeout, lockTimeoutUsage)
	return f
}

func (f *applyFlags) options(word string) (applyOptions, error) {
	if f.parallelism < 1 {
		return applyOptions{}, fmt.Errorf("--parallelism=%d: want 1 or more", f.parallelism)
	}
	if f.lockTimeout < 0 {
		return applyOptions{}, fmt.Errorf("--lock-timeout=%s: want 0s or more", f.lockTimeout)
	}
	return applyOptions{approve: f.approve, parallelism: f.parallelism, lockTimeout: f.lockTimeout, json: *f.json, policy: *f.policy, word: word}, nil
}

// carriesOut reports whether a flag says how a plan is carried out or told, and not what is planned.
func carriesOut(name string) bool {
	cmd := &cobra.Command{}
	addApplyFlags(cmd)
	return cmd.Flags().Lookup(name) != nil || name == adoptFlag || name == compactFlag
}

// How long another process that acts is waited for, and how help says so.
const (
	lockTimeout      = 2 * time.Minute
	lockTimeoutUsage = "wait no longer than this `DURATION` for another process that acts here and finishes nothing"
)

const (
	adoptFlag   = "adopt-stack"
	compactFlag = "compact-warnings"
)

// refuseWithSaved refuses flags that say what to plan beside a plan that was made before.
func refuseWithSaved(cmd *cobra.Command) error {
	var given []string
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && !carriesOut(f.Name) {
			given = append(given, "--"+f.Name)
		}
	})
	if len(given) == 0 {
		return nil
	}
	slices.Sort(given)
	return fmt.Errorf("a saved plan is carried out as it is: leave out %s, or make a new plan with it", strings.Join(given, ", "))
}

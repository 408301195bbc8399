package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// accessFormat is the version of the JSON form of qod access.
const accessFormat = "1.0"

// tenantUsage documents --tenant, which is the same everywhere.
const tenantUsage = "`NAME` of the user's tenant, where USER does not say it"

func newAccess(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access USER",
		Short: "Explain what a user may do, and why",
		Long: "access says which roles a user holds and through which groups, which pools it may connect to, what its roles\n" +
			"allow, and which policies restrict it, as stored. With --on it says of each privilege on a table why it is allowed\n" +
			"or not. It names the places in the configuration where that is here. USER may be TENANT/NAME\n" +
			"or an address, as in user.acme/ana.",
		Example: "  qod access ana\n  qod access ana --on main.orders\n  qod access ann@corp.com --tenant acme --json",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeUsers,
	}
	q := &access.Question{}
	cmd.Flags().StringVar(&q.On, "on", "", "say of each privilege on this `TABLE` whether it is allowed: orders, main.orders or sales.main.orders")
	cmd.Flags().StringVar(&q.Database, "database", "", "only what concerns this `DATABASE`")
	cmd.Flags().StringVar(&q.Tenant, "tenant", "", tenantUsage)
	asJSON := cmd.Flags().Bool("json", false, "print the explanation as JSON")
	vars := varFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := askFor(args[0], q); err != nil {
			return err
		}
		return a.explain(cmd.Context(), *q, *vars, *asJSON)
	}
	cmd.AddCommand(newAccessTest(a))
	return cmd
}

// askFor reads a user's name or address.
func askFor(user string, q *access.Question) error {
	if !strings.HasPrefix(user, "user.") {
		q.Tenant, q.User = splitUser(user, q.Tenant)
		return nil
	}
	q.User = user
	kind, _ := schema.Lookup("user")
	addr, err := kind.ParseKey(strings.TrimPrefix(user, "user."))
	if err != nil {
		return nil // it is a name that looks so
	}
	parts := addr.Parts()
	if q.User = parts[len(parts)-1]; len(parts) == 1 {
		return nil
	}
	if q.Tenant != "" && schema.Fold(q.Tenant) != parts[0] {
		return fmt.Errorf("%s is not of tenant %s", user, q.Tenant)
	}
	q.Tenant = parts[0]
	return nil
}

// directory reads who may do what, as stored.
func (w *world) directory(ctx context.Context) (*access.Directory, *store.Snapshot, error) {
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	d, err := access.New(snap, w.sealer)
	return d, snap, err
}

func (a *app) explain(ctx context.Context, q access.Question, vars []config.Given, asJSON bool) error {
	w, err := a.openState(ctx, openOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	d, snap, err := w.directory(ctx)
	if err != nil {
		return err
	}
	e, err := d.Explain(q)
	if err != nil {
		return err
	}
	places := a.places(snap, vars)
	if !asJSON {
		return e.Write(a.stdout, func(address string) string { return places[address] })
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Format string `json:"format_version"`
		*access.Explanation
		Places map[string]string `json:"places"`
	}{accessFormat, e, mentioned(e, places)})
}

// places says of stored objects which block of which stack made them, and where that is written, as far as the
// configuration is here and valid.
func (a *app) places(snap *store.Snapshot, vars []config.Given) map[string]string {
	silent := &app{stdin: a.stdin, stdout: io.Discard, stderr: io.Discard, env: a.env, paths: a.paths, log: a.log}
	c, err := silent.evaluate(vars)
	if err != nil {
		c = nil
	}
	places := map[string]string{}
	for _, o := range snap.Objects {
		if o.Address == "" || o.Tombstone {
			continue
		}
		place := fmt.Sprintf("%s of stack %s", o.Address, o.Stack)
		if c != nil && c.Stack == o.Stack {
			if r := c.Range(o.Address, nil); r.Filename != "" {
				place = fmt.Sprintf("%s, %s:%d", o.Address, r.Filename, r.Start.Line)
			}
		}
		places[o.Addr().String()] = place
	}
	return places
}

// mentioned are the places of what an explanation names.
func mentioned(e *access.Explanation, places map[string]string) map[string]string {
	out := map[string]string{}
	add := func(addresses ...string) {
		for _, address := range addresses {
			if place, ok := places[address]; ok {
				out[address] = place
			}
		}
	}
	add(e.User)
	for _, h := range e.Roles {
		add(h.Role, h.Group)
	}
	for _, p := range e.Pools {
		add(p.Pool)
		add(p.Grants...)
	}
	return out
}

// completeUsers offers the names of users as they are stored.
func (a *app) completeUsers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, o := range a.ownObjects(cmd) {
		if o.Kind.Name == "user" {
			names = append(names, o.Kind.NameOf(o.Spec))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func newAccessTest(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Check which statements users may run against what is expected",
		Long: "test judges the statements of a file with the permissions as stored, as a node would, without running them:\n\n" +
			"  expect \"ana\" {\n    database  = \"sales\"\n    statement = \"DELETE FROM orders\"\n    allow     = false\n  }\n\n" +
			"tenant and database may be left out where there is one; reason, where allow is false, is a part of what the user\n" +
			"is told. It ends with 1 when something is not as expected, and names the place.",
		Example: "  qod access test access.hcl",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: completeFileArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.testAccess(cmd.Context(), args[0]) }
	return cmd
}

func (a *app) testAccess(ctx context.Context, name string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read expectations: %w", err)
	}
	expectations, err := access.Expectations(src, name)
	if err != nil {
		return err
	}
	w, err := a.openState(ctx, openOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	d, _, err := w.directory(ctx)
	if err != nil {
		return err
	}
	g, err := guard.New(guard.Config{})
	if err != nil {
		return err
	}
	defer g.Close()
	failed := 0
	for _, e := range expectations {
		if wrong := e.Check(ctx, d, judge(g)); wrong != "" {
			failed++
			a.printf("%s\n", wrong)
		}
	}
	a.printf("%s as expected, %d not.\n", plural(len(expectations)-failed, "statement"), failed)
	if failed > 0 {
		return exitError{code: 1}
	}
	return nil
}

// judge has a guard judge statements as a node does, for a session that has just begun.
func judge(g *guard.Guard) access.Judge {
	return func(ctx context.Context, p wire.Permissions, database, in, statement string) (string, error) {
		rights, err := g.Rights(ctx, p, database)
		if err != nil {
			return "", err
		}
		_, err = g.Check(ctx, statement, guard.Scope{Catalog: database, Path: []string{in}, Rights: rights, Prepared: true})
		if refusal := (*guard.Refusal)(nil); errors.As(err, &refusal) {
			return refusal.Message, nil
		}
		return "", err
	}
}

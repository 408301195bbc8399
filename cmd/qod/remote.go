package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// serverFlag is the flag of the setting that names a server.
const serverFlag = "server"

// placesOf says where a command works, given a server: there, or on the files here. For one of the others, which are about
// this host, it is "".
func placesOf(command string) string {
	top, _, _ := strings.Cut(command, " ")
	switch top {
	case "plan", "apply", "destroy", "drift", "wait", "show", "output", "state", "history", "diff", "rollback", "export", "graph",
		"restart", "status", "token", "login", "logout":
		return "server"
	case "validate", "fmt", "render", "console", "schema", "config", "version", "help", "completion", "node", "__complete",
		"__completeNoDesc", "sql":
		return "files"
	}
	return ""
}

// away refuses a command that is about this host where a server is meant.
func (a *app) away(cmd *cobra.Command) error {
	_, command, _ := strings.Cut(cmd.CommandPath(), " ")
	if a.paths.Server == "" || command == "" || placesOf(command) != "" {
		return nil
	}
	given := "--" + serverFlag
	if a.paths.sources["server"] != "flag" {
		given = "QOD_SERVER"
	}
	return fmt.Errorf("qod %s is about the host that it runs on, and %s names a server: leave that out, or run it on the server's host", command, given)
}

// tellServer says where a plan is made and carried out. Standard output has the same as on the server's host.
func (a *app) tellServer() {
	if a.paths.Server != "" {
		fmt.Fprintf(a.stderr, "Server: %s\n", a.paths.Server)
	}
}

// remote is the state of a server. Configurations are evaluated here; plans are made, kept and carried out there, so that
// the rights of the token, and the decisions, are the server's.
type remote struct {
	client *client.Client
	// What each plan of this process is by its id: sealed for the server, and what it was made from.
	sealed map[string][]byte
	from   map[string]*api.StackPlan
}

// reach has the server that is set stand for everything.
func (w *world) reach(a *app) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	w.server = &remote{client: c, sealed: map[string][]byte{}, from: map[string]*api.StackPlan{}}
	w.store, w.plans = w.server, w.server
	return nil
}

// client is a client of the server that is set: with the token that is set, else the one of qod login.
func (a *app) client() (*client.Client, error) {
	kept, err := a.credentials()
	if err != nil {
		return nil, err
	}
	k := kept.of(a.paths.Server)
	config := client.Config{
		Server: a.paths.Server, Token: a.paths.Token, CAFile: a.paths.file(a.paths.ServerCA), Agent: "qod/" + version, Log: a.quiet(),
	}
	if config.Token == "" {
		config.Token = k.Token
	}
	if config.CAFile == "" {
		config.CAFile = k.CAFile
	}
	if config.Token == "" {
		return nil, fmt.Errorf("there is no token for %s: run qod login --server %s, or set QOD_TOKEN", a.paths.Server, a.paths.Server)
	}
	return client.New(config)
}

// do makes a request, and says in its errors what the caller can do.
func (r *remote) do(ctx context.Context, method, path string, query url.Values, body, out any) error {
	repeatable := method == http.MethodGet || path != "stack/addresses"
	return r.explained(r.client.Do(ctx, method, path, query, body, out, repeatable))
}

func (r *remote) explained(err error) error {
	var told *client.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &told):
		return fmt.Errorf("server %s: %w", r.client.Server(), err)
	case told.Code == client.Unauthenticated:
		return fmt.Errorf("server %s: %w: run qod login --server %s, or set QOD_TOKEN", r.client.Server(), err, r.client.Server())
	case told.Code == client.NotFound:
		return fmt.Errorf("server %s: it is not there, or not for you, or the server is of an older version of qod", r.client.Server())
	case told.Code == client.Conflict, told.Code == "lineage", told.Code == "plan_used":
		return err
	}
	return fmt.Errorf("server %s: %w", r.client.Server(), err)
}

// Plan implements planner.
func (r *remote) Plan(ctx context.Context, stack store.Stack, c schema.Desired, o engine.PlanOptions) (*engine.Plan, error) {
	configuration, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	from := &api.StackPlan{
		Stack: stack.Name, Lineage: stack.Lineage, Adopt: o.AdoptStack, Mode: o.Mode, Configuration: configuration,
		Targets: texts(o.Selection.Targets), Exclude: texts(o.Selection.Exclude), Replace: texts(o.Selection.Replace),
	}
	p, err := r.planned(ctx, "stack/plan", from, stack)
	if err == nil {
		r.from[p.ID] = from
	}
	return p, err
}

func texts(list []schema.Address) []string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return out
}

func (r *remote) planned(ctx context.Context, path string, body any, stack store.Stack) (*engine.Plan, error) {
	var out api.StackPlanned
	if err := r.do(ctx, http.MethodPost, path, nil, body, &out); err != nil {
		if client.Is(err, "lineage") {
			return nil, &store.StackError{Name: stack.Name, Have: "another", Want: stack.Lineage}
		}
		return nil, err
	}
	p, err := plan.Received(out.Plan)
	if err != nil {
		return nil, err
	}
	r.sealed[p.ID] = out.Sealed
	return &engine.Plan{Plan: p}, nil
}

// Marshal implements planner: a plan is saved as the server has sealed it.
func (r *remote) Marshal(p *engine.Plan) ([]byte, error) { return r.sealed[p.ID], nil }

// Open implements planner.
func (r *remote) Open(ctx context.Context, saved []byte) (*engine.Plan, error) {
	p, err := r.planned(ctx, "stack/open", api.StackOpen{Sealed: saved}, store.Stack{})
	if err == nil {
		r.sealed[p.ID] = saved
	}
	return p, err
}

// Check implements planner.
func (r *remote) Check(ctx context.Context, p *engine.Plan, adopt bool) error {
	err := r.do(ctx, http.MethodPost, "stack/open", nil, api.StackOpen{Sealed: r.sealed[p.ID], Check: true, Adopt: adopt}, nil)
	if client.Is(err, "lineage") {
		return &store.StackError{Name: p.Stack, Have: "another", Want: p.Lineage}
	}
	return err
}

// Pending implements planner.
func (r *remote) Pending(ctx context.Context, stack string) ([]plan.Finding, error) {
	var out api.StackPending
	err := r.do(ctx, http.MethodGet, "stack/pending", url.Values{"stack": {stack}}, nil, &out)
	return findingsOf(out), err
}

func findingsOf(p api.StackPending) []plan.Finding {
	var out []plan.Finding
	for _, c := range p.Pending {
		out = append(out, plan.Finding{Addr: schema.Addr{Kind: c.Kind, Path: c.Object}, Message: c.Message})
	}
	return out
}

// wayBack plans the way of a stack back to a revision.
func (r *remote) wayBack(ctx context.Context, stack store.Stack, rev store.Revision, empty bool) (*engine.Plan, error) {
	return r.planned(ctx, "stack/rollback", api.StackRollback{
		Stack: stack.Name, Lineage: stack.Lineage, Revision: rev, AllowEmpty: empty,
	}, stack)
}

// stored reads what is stored, with the commits that led to it where the token may know them.
func (r *remote) stored(ctx context.Context, history bool) (*store.Snapshot, []store.Apply, error) {
	query := url.Values{}
	if history {
		query.Set("history", "true")
	}
	var out store.SnapshotJSON
	if err := r.do(ctx, http.MethodGet, "store", query, nil, &out); err != nil {
		return nil, nil, err
	}
	return out.Decode()
}

// Snapshot implements objects. What must not be shown is not in it.
func (r *remote) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	snap, _, err := r.stored(ctx, false)
	return snap, err
}

func (r *remote) past(ctx context.Context) (*past, error) {
	snap, applies, err := r.stored(ctx, true)
	if err == nil && applies == nil {
		err = fmt.Errorf("server %s: the history is for system administrators", r.client.Server())
	}
	return &past{Snapshot: snap, applies: applies}, err
}

// Commit implements objects, for changes of addresses alone.
func (r *remote) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	body := api.StackAddresses{Stack: c.Stack.Name, Lineage: c.Stack.Lineage, Note: c.Note}
	for _, w := range c.Writes {
		body.Writes = append(body.Writes, api.StackAddress{ID: w.ID, Saw: w.Saw, Address: w.Address})
	}
	var out struct {
		Revision store.Revision `json:"revision"`
	}
	err := r.do(ctx, http.MethodPost, "stack/addresses", nil, body, &out)
	return out.Revision, err
}

// outputs are those of a stack, with nulls in place of what is sensitive.
func (r *remote) outputs(ctx context.Context, stack string) ([]schema.Output, error) {
	snap, err := r.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	outputs := slices.Clone(snap.Outputs[stack])
	for i := range outputs {
		if outputs[i].Sensitive {
			outputs[i].Value = cty.NullVal(cty.DynamicPseudoType)
		}
	}
	return outputs, nil
}

// withheld refuses to print an output whose value the server keeps to itself.
func (a *app) withheld(outputs []schema.Output, name string) error {
	if a.paths.Server != "" && slices.ContainsFunc(outputs, func(o schema.Output) bool { return o.Name == name && o.Sensitive }) {
		return fmt.Errorf("output %s is sensitive, and its value does not leave the server: run qod output %s on its host", name, name)
	}
	return nil
}

func (r *remote) status(ctx context.Context) (api.Status, error) {
	var out api.Status
	err := r.do(ctx, http.MethodGet, "status", nil, nil, &out)
	return out, err
}

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
)

func newAudit(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who logged in, what was refused, and what was revoked",
		Long: "audit shows logins and failed ones, statements that were refused and why, and what was done to tokens and sessions, the\n" +
			"newest first. Literals of statements are replaced. Rows come from every serve of the store, half a second late.",
		Example: "  qod audit --since 24h\n  qod audit --user ana --action sql.denied --limit 0\n  qod audit --action auth --json",
		Args:    noArguments,
	}
	flags := cmd.Flags()
	user := userFlag(cmd)
	tenant := cmd.Flags().String("tenant", "", "of this `TENANT`")
	action := flags.String("action", "", "only this `ACTION`, as auth.login, or all that begin with it, as auth")
	since := flags.String("since", "", "only what came after this `TIME`, as 24h, 7d or 2026-01-31T08:00:00Z")
	limit := flags.Int("limit", 100, "show at most `N`; 0: all")
	asJSON := flags.Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		f := store.EventFilter{Action: *action, Limit: *limit}
		f.Tenant, f.User = splitUser(*user, *tenant)
		var err error
		if f.Since, err = sinceOf(*since, time.Now()); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		w, err := a.openState(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		events, err := w.postgres.ListEvents(cmd.Context(), f)
		if err != nil {
			return err
		}
		if *asJSON {
			return a.printJSON(auditOf(events))
		}
		return a.printAudit(events)
	}
	return cmd
}

// sinceOf reads a moment, or a span before now.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	d, err := access.Span(text)
	return now.Add(-d), err
}

// eventJSON is an event for programs.
type eventJSON struct {
	At        time.Time `json:"at"`
	ID        string    `json:"id"`
	User      string    `json:"user"`
	Tenant    string    `json:"tenant,omitempty"`
	Realm     string    `json:"realm,omitempty"`
	From      string    `json:"from,omitempty"`
	Action    string    `json:"action"`
	Object    string    `json:"object,omitempty"`
	Code      string    `json:"code,omitempty"`
	Privilege string    `json:"privilege,omitempty"`
	Detail    string    `json:"detail,omitempty"`
	SQL       string    `json:"sql,omitempty"`
}

type auditJSON struct {
	Format string      `json:"format_version"`
	Events []eventJSON `json:"events"`
}

func auditOf(events []store.Event) auditJSON {
	out := auditJSON{Format: "1.0", Events: []eventJSON{}}
	for _, e := range events {
		out.Events = append(out.Events, eventJSON{
			At: e.At, ID: e.ID, User: e.User, Tenant: e.Tenant, Realm: e.Realm, From: e.From, Action: e.Action, Object: e.Object,
			Code: e.Code, Privilege: e.Privilege, Detail: e.Detail, SQL: e.SQL,
		})
	}
	return out
}

func (a *app) printAudit(events []store.Event) error {
	if len(events) == 0 {
		a.printf("Nothing like that is in the audit.\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "WHEN\tWHO\tBY\tFROM\tACTION\tOBJECT\tWHY\tDETAIL\n")
	for _, e := range events {
		why := strings.TrimSpace(e.Code + " " + e.Privilege)
		detail := e.Detail
		if e.SQL != "" {
			detail += " | " + e.SQL
		}
		row := []string{account{name: e.User, tenant: e.Tenant}.String(), e.Realm, e.From, e.Action, e.Object, why, detail}
		for i, text := range row {
			row[i] = orDash(plainText(text))
		}
		fmt.Fprintf(table, "%s\t%s\n", e.At.Local().Format(time.DateTime), strings.Join(row, "\t"))
	}
	return table.Flush()
}

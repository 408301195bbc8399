package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store"
)

// longestSession is the longest that session_ttl_sec allows a bearer to live, on any serve: a revocation
// must not be forgotten before the last bearer that it is about.
const longestSession = 365 * 24 * time.Hour

func newSession(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "session",
		Short:   "End sessions of clients",
		Long:    "session ends what clients have begun, before it ends by itself.",
		Example: "  qod session revoke --user acme/ana",
	}
	cmd.AddCommand(newSessionRevoke(a))
	onlyGroups(cmd)
	return cmd
}

func newSessionRevoke(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke [ID...]",
		Short: "End sessions, by their ids or of a user",
		Long: "revoke ends sessions: within a second no serve takes their bearers, and what runs in them is cancelled and rolled back.\n" +
			"With --user it ends all that the user has begun until now; whoever still knows a password or has a token may log in\n" +
			"again. qod audit --action auth.login shows the ids of sessions.",
		Example: "  qod session revoke 6f1e0a51-52a8-4a2b-9a61-0d6d3f7b9a10\n  qod session revoke --user ana --tenant acme",
	}
	user := userFlag(cmd)
	tenant := tenantFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (*user == "") == (len(args) == 0) {
			return errors.New("name sessions by their ids, or a user with --user")
		}
		for _, id := range args {
			if uuid.Validate(id) != nil {
				return fmt.Errorf("%q is not the id of a session: qod audit --action auth.login shows them", id)
			}
		}
		w, err := a.openState(cmd.Context(), openOptions{write: true})
		if err != nil {
			return err
		}
		defer w.Close()
		if *user == "" {
			return a.revokeSessions(cmd, w, args)
		}
		snap, err := w.store.Snapshot(cmd.Context())
		if err != nil {
			return err
		}
		u, err := accountOf(snap, *user, *tenant)
		if err != nil {
			return err
		}
		now := time.Now()
		r := store.Revocation{User: u.id, At: now, Expires: now.Add(longestSession)}
		if err := w.postgres.Revoke(cmd.Context(), r, caused("session.revoke", "user "+u.String(), u, "all sessions until now")); err != nil {
			return err
		}
		a.printf("Ended all sessions of user %s.\n", u)
		return nil
	}
	return cmd
}

func (a *app) revokeSessions(cmd *cobra.Command, w *world, ids []string) error {
	now := time.Now()
	for _, id := range ids {
		r := store.Revocation{Session: id, At: now, Expires: now.Add(longestSession)}
		if err := w.postgres.Revoke(cmd.Context(), r, caused("session.revoke", "session "+id, account{}, "")); err != nil {
			return err
		}
		a.printf("Ended session %s.\n", id)
	}
	return nil
}

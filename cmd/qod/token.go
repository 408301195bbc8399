package main

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/api"
)

func newToken(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke personal access tokens",
		Long: "A personal access token lets a program in as its owner: it goes where a password or a bearer would, has the rights\n" +
			"that its owner has at each moment, and ends with its time, its revocation or its owner. Only a digest of it is kept.",
		Example: "  qod token create ana --name laptop\n  qod token list\n  qod token revoke k3v5zq2m7xwa",
	}
	cmd.AddCommand(newTokenCreate(a), newTokenList(a), newTokenRevoke(a))
	onlyGroups(cmd)
	return cmd
}

func newTokenCreate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create USER",
		Short: "Make a token of a user and print it once",
		Long: "create prints the token to standard output, alone in its line, and what it is to standard error. It cannot be shown\n" +
			"again. USER is a name, or TENANT/NAME. A token may live for up to " + inDays(access.MaxTokenLife) + ".",
		Example: "  qod token create ana --name laptop\n  qod token create acme/etl --expires 365d > etl.token\n" +
			"  qod token create ana --name dashboard --read-only",
		Args: cobra.ExactArgs(1),
	}
	name := cmd.Flags().String("name", "", "call it `NAME`, for lists")
	expires := cmd.Flags().String("expires", inDays(access.TokenLife), "let it expire after this `TIME`")
	readOnly := cmd.Flags().Bool("read-only", false, "let it change nothing: it reads the REST API, and runs no SQL")
	tenant := tenantFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		life, err := access.Span(*expires)
		if err != nil {
			return fmt.Errorf("--expires: %w", err)
		}
		if a.paths.Server != "" {
			of, user := splitUser(args[0], *tenant)
			return a.createThere(cmd.Context(), api.TokenBody{User: user, Tenant: of, Name: *name, Expires: life.String(), ReadOnly: *readOnly})
		}
		w, snap, err := a.openSnapshot(cmd.Context(), openOptions{write: true})
		if err != nil {
			return err
		}
		defer w.Close()
		u, err := accountOf(snap, args[0], *tenant)
		if err != nil {
			return err
		}
		row, secret, err := access.NewToken(u.id, *name, time.Now(), life)
		if err != nil {
			return err
		}
		row.ReadOnly = *readOnly
		until := row.Expires.Local().Format(time.DateTime)
		if err := w.postgres.AddToken(cmd.Context(), row, caused("token.create", "token "+row.ID, u, fmt.Sprintf("of user %s until %s", u, until))); err != nil {
			return err
		}
		a.printToken(row.ID, u, row.Expires, secret)
		return nil
	}
	return cmd
}

func (a *app) printToken(id string, u account, expires time.Time, secret string) {
	fmt.Fprintf(a.stderr, "Token %s of user %s, until %s. It is shown this once:\n", id, u, expires.Local().Format(time.DateTime))
	a.printf("%s\n", secret)
}

type tokensJSON struct {
	Format string      `json:"format_version"`
	Tokens []api.Token `json:"tokens"`
}

func newTokenList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [USER]",
		Short: "List tokens, of one user or of all",
		Long: "list shows who has which tokens, the newest first. One that expired is shown for 30 days more. The tokens themselves\n" +
			"are not known to qod.",
		Example: "  qod token list\n  qod token list acme/ana --json",
		Args:    cobra.MaximumNArgs(1),
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	tenant := tenantFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if a.paths.Server != "" {
			return a.listThere(cmd.Context(), args, *tenant, *asJSON)
		}
		w, snap, err := a.openSnapshot(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		owner := ""
		if len(args) == 1 {
			u, err := accountOf(snap, args[0], *tenant)
			if err != nil {
				return err
			}
			owner = u.id
		}
		return a.listTokens(tokensOf(snap, owner, *tenant, time.Now()), *asJSON)
	}
	return cmd
}

// tokensOf lists the tokens of an owner, or of a tenant's users, or all, newest first.
func tokensOf(snap *store.Snapshot, owner, tenant string, now time.Time) []api.Token {
	owners := accountsByID(snap)
	list := []api.Token{}
	for _, t := range snap.Tokens {
		u, ok := owners[t.Owner]
		if !ok || owner != "" && owner != t.Owner || tenant != "" && u.tenant != tenant {
			continue
		}
		list = append(list, api.TokenOf(t, u.name, u.tenant, now))
	}
	slices.SortStableFunc(list, func(a, b api.Token) int { return b.Created.Compare(a.Created) })
	return list
}

func (a *app) listTokens(list []api.Token, asJSON bool) error {
	if asJSON {
		return a.printJSON(tokensJSON{Format: "1.0", Tokens: list})
	}
	if len(list) == 0 {
		a.printf("There are no tokens.\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "ID\tUSER\tNAME\tCREATED\tEXPIRES\tSTATE\n")
	for _, t := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, account{name: t.User, tenant: t.Tenant}, orDash(plainText(t.Name)),
			t.Created.Local().Format(time.DateTime), t.Expires.Local().Format(time.DateTime), t.State)
	}
	return table.Flush()
}

func newTokenRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID...",
		Short: "Revoke tokens, and end what they began",
		Long: "revoke ends tokens for good: within a second no serve takes them, sessions that they began are over, and what runs in\n" +
			"those is cancelled and rolled back. ID is what qod token list shows, and the part of a token between its underscores.",
		Example: "  qod token revoke k3v5zq2m7xwa",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.paths.Server != "" {
				return a.revokeThere(cmd.Context(), args)
			}
			w, snap, err := a.openSnapshot(cmd.Context(), openOptions{write: true})
			if err != nil {
				return err
			}
			defer w.Close()
			var errs []error
			for _, id := range args {
				errs = append(errs, a.revokeToken(cmd, w, snap, id))
			}
			return errors.Join(errs...)
		},
	}
}

var errTokenAsID = errors.New("this is a token and not its ID: it has been on a command line, so revoke it by its ID, the part between its underscores")

func (a *app) revokeToken(cmd *cobra.Command, w *world, snap *store.Snapshot, id string) error {
	if access.IsToken(id) {
		return errTokenAsID
	}
	i := slices.IndexFunc(snap.Tokens, func(t store.Token) bool { return t.ID == id })
	if i < 0 {
		return fmt.Errorf("there is no token with the ID %s: qod token list shows them", id)
	}
	u := accountsByID(snap)[snap.Tokens[i].Owner]
	if err := w.postgres.RevokeToken(cmd.Context(), id, time.Now(), caused("token.revoke", "token "+id, u, "of user "+u.String())); err != nil {
		return err
	}
	a.printf("Revoked token %s of user %s.\n", id, u)
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// reached opens the server that is set.
func (a *app) reached() (*remote, error) {
	w := &world{paths: a.paths}
	err := w.reach(a)
	return w.server, err
}

// createThere makes a token of a server's user.
func (a *app) createThere(ctx context.Context, wish api.TokenBody) error {
	r, err := a.reached()
	if err != nil {
		return err
	}
	defer r.client.Close()
	var made api.Token
	err = r.client.Do(ctx, http.MethodPost, "token", nil, wish, &made, false)
	if client.Is(err, client.NotFound) {
		return fmt.Errorf("there is no user %s that you administer", account{name: wish.User, tenant: wish.Tenant})
	}
	if err != nil {
		return r.explained(err)
	}
	a.printToken(made.ID, account{name: made.User, tenant: made.Tenant}, made.Expires, made.Token)
	return nil
}

// tokens are those on the server that the caller may see, newest first.
func (r *remote) tokens(ctx context.Context) ([]api.Token, error) {
	var out tokensJSON
	err := r.do(ctx, http.MethodGet, "token", nil, nil, &out)
	return out.Tokens, err
}

func (a *app) listThere(ctx context.Context, args []string, tenant string, asJSON bool) error {
	r, err := a.reached()
	if err != nil {
		return err
	}
	defer r.client.Close()
	list, err := r.tokens(ctx)
	if err != nil {
		return err
	}
	user := ""
	if len(args) == 1 {
		tenant, user = splitUser(args[0], tenant)
	}
	list = slices.DeleteFunc(list, func(t api.Token) bool {
		return user != "" && schema.Fold(t.User) != schema.Fold(user) || tenant != "" && schema.Fold(t.Tenant) != schema.Fold(tenant)
	})
	return a.listTokens(list, asJSON)
}

func (a *app) revokeThere(ctx context.Context, ids []string) error {
	r, err := a.reached()
	if err != nil {
		return err
	}
	defer r.client.Close()
	list, err := r.tokens(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, a.revokeOneThere(ctx, r, list, id))
	}
	return errors.Join(errs...)
}

func (a *app) revokeOneThere(ctx context.Context, r *remote, list []api.Token, id string) error {
	if access.IsToken(id) {
		return errTokenAsID
	}
	i := slices.IndexFunc(list, func(t api.Token) bool { return t.ID == id })
	if i < 0 {
		return fmt.Errorf("there is no token with the ID %s: qod token list shows them", id)
	}
	if err := r.do(ctx, http.MethodDelete, "token/"+url.PathEscape(id), nil, nil, nil); err != nil {
		return err
	}
	a.printf("Revoked token %s of user %s.\n", id, account{name: list[i].User, tenant: list[i].Tenant})
	return nil
}

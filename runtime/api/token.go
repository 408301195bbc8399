package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/schema"
)

// Token is a personal access token as lists show it.
type Token struct {
	ID       string     `json:"id"`
	User     string     `json:"user"`
	Tenant   string     `json:"tenant,omitempty"`
	Name     string     `json:"name,omitempty"`
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires"`
	Revoked  *time.Time `json:"revoked,omitempty"`
	State    string     `json:"state"` // good, expired or revoked
	ReadOnly bool       `json:"read_only"`
	Token    string     `json:"token,omitempty"` // once, when it is made
}

// TokenOf describes a token of the user with that name and tenant.
func TokenOf(t store.Token, user, tenant string, now time.Time) Token {
	out := Token{
		ID: t.ID, User: user, Tenant: tenant, Name: t.Name, Created: t.Created, Expires: t.Expires, State: "good", ReadOnly: t.ReadOnly,
	}
	switch {
	case !t.Revoked.IsZero():
		out.Revoked, out.State = &t.Revoked, "revoked"
	case !now.Before(t.Expires):
		out.State = "expired"
	}
	return out
}

// TokenBody asks for a token.
type TokenBody struct {
	User     string `json:"user"`
	Tenant   string `json:"tenant"`
	Name     string `json:"name"`
	Expires  string `json:"expires"` // a time, or a span as 30d or 12h
	ReadOnly bool   `json:"read_only"`
}

// owner is the user that a request for a token names: the caller unless it says otherwise.
func (c *call) owner(user, tenant string) (access.Account, *failure) {
	if user == "" && tenant == "" {
		return c.caller.Account, nil
	}
	if before, after, ok := strings.Cut(user, "/"); ok && tenant == "" {
		tenant, user = before, after
	}
	if tenant == "" {
		tenant = c.caller.Tenant
	}
	for _, a := range c.rest.Directory.Current().Accounts() {
		if schema.Fold(a.Name) == schema.Fold(user) && schema.Fold(a.Tenant) == schema.Fold(tenant) && c.caller.administers(a) {
			return a, nil
		}
	}
	return access.Account{}, notFound().at("user")
}

// administers reports whether the caller sees to a user: that it could be as well.
func (c caller) administers(a access.Account) bool {
	return a.ID == c.ID || c.System || !a.System && c.sees(schema.Fold(a.Tenant))
}

func (c *call) createToken() *failure {
	var in TokenBody
	if f := c.read(&in); f != nil {
		return f
	}
	owner, f := c.owner(in.User, in.Tenant)
	if f != nil {
		return f
	}
	now := time.Now()
	life, f := lifeOf(in.Expires, now)
	if f != nil {
		return f
	}
	// What a token makes does not outlive it.
	if at := c.caller.expires; !at.IsZero() && c.caller.life.Token != "" && now.Add(life).After(at) {
		life = at.Sub(now)
	}
	row, secret, err := access.NewToken(owner.ID, in.Name, now, life)
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "invalid", err.Error())
	}
	row.ReadOnly = in.ReadOnly
	e := c.event("token.create", "token "+row.ID)
	e.Detail = "of user " + owner.String() + " until " + row.Expires.UTC().Format(time.RFC3339)
	switch err := c.rest.State.AddToken(c.Context(), row, e); {
	case errors.Is(err, store.ErrNotFound):
		return notFound().at("user")
	case err != nil:
		return broken(err)
	}
	c.rest.learned(c.Context(), func(d *access.Directory) bool { return d.Knows(row.ID) })
	out := TokenOf(row, owner.Name, owner.Tenant, now)
	out.Token = secret
	c.answer(http.StatusCreated, out)
	return nil
}

// lifeOf reads a moment, or a span from now.
func lifeOf(text string, now time.Time) (time.Duration, *failure) {
	if text == "" {
		return access.TokenLife, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.Sub(now), nil
	}
	if d, err := access.Span(text); err == nil {
		return d, nil
	}
	return 0, refuse(http.StatusUnprocessableEntity, "invalid", "want a time as 2026-01-31T08:00:00Z, or a span as 30d or 12h").at("expires")
}

func (c *call) tokens() *failure {
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return broken(err)
	}
	owners := map[string]access.Account{}
	for _, a := range c.rest.Directory.Current().Accounts() {
		owners[a.ID] = a
	}
	list := []Token{}
	now := time.Now()
	for _, t := range snap.Tokens {
		if a, ok := owners[t.Owner]; ok && c.caller.administers(a) {
			list = append(list, TokenOf(t, a.Name, a.Tenant, now))
		}
	}
	slices.SortStableFunc(list, func(a, b Token) int { return b.Created.Compare(a.Created) })
	return c.ok(map[string]any{"format_version": plan.FormatVersion, "tokens": list})
}

func (c *call) revokeToken() *failure {
	id := c.params[0]
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return broken(err)
	}
	i := slices.IndexFunc(snap.Tokens, func(t store.Token) bool { return t.ID == id })
	if i < 0 {
		return notFound()
	}
	var owner access.Account
	for _, a := range c.rest.Directory.Current().Accounts() {
		if a.ID == snap.Tokens[i].Owner {
			owner = a
		}
	}
	if owner.ID == "" || !c.caller.administers(owner) {
		return notFound()
	}
	e := c.event("token.revoke", "token "+id)
	e.Detail = "of user " + owner.String()
	switch err := c.rest.State.RevokeToken(c.Context(), id, time.Now(), e); {
	case errors.Is(err, store.ErrNotFound):
		return notFound()
	case err != nil:
		return broken(err)
	}
	return c.ok(map[string]string{"id": id})
}

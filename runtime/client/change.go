package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/qod-io/qod/schema"
)

// What a change does.
const (
	Put    = "put"
	Delete = "delete"
)

// Change puts one object, with its whole value, or deletes it.
type Change struct {
	Action string `json:"action"`
	Kind   string `json:"kind"`
	// Key is what the object is called now. It may be left out of a put whose spec has the same key.
	Key       string          `json:"key,omitempty"`
	Spec      json.RawMessage `json:"spec,omitempty"`
	Protected bool            `json:"protected,omitempty"`
	// TakeOver lets a put have what belongs to another stack or to none.
	TakeOver bool `json:"take_over,omitempty"`
	// IfMatch is the revision that the caller saw; zero: any.
	IfMatch int64 `json:"if_match,omitempty"`
}

// Request is a set of changes of objects of one stack.
type Request struct {
	Stack   string   `json:"stack"`
	Lineage string   `json:"lineage,omitempty"`
	Changes []Change `json:"changes"`
}

// Applied is what came of a request: the objects that were put or deleted, as they are now.
type Applied struct {
	Revision int64           `json:"revision"`
	Plan     json.RawMessage `json:"plan"`
	Objects  []Object        `json:"objects"`
}

// Object returns the object of that address.
func (a Applied) Object(at schema.Addr) (Object, bool) {
	for _, o := range a.Objects {
		if o.Addr() == at {
			return o, true
		}
	}
	return Object{}, false
}

// Plan returns what Apply of the request would do: the document of qod plan --json.
func (c *Client) Plan(ctx context.Context, r Request) (json.RawMessage, error) {
	var plan json.RawMessage
	err := c.do(ctx, call{method: http.MethodPost, path: "plan", body: r, repeatable: true}, &plan)
	return plan, err
}

// Apply makes the changes in one commit, or none of them. It is sent again when its connection breaks: what was
// committed then is found as it should be, but a deletion may get not_found, and a change with IfMatch revision.
func (c *Client) Apply(ctx context.Context, r Request) (Applied, error) {
	var a Applied
	err := c.do(ctx, call{method: http.MethodPost, path: "apply", body: r, repeatable: true}, &a)
	return a, err
}

// Token is a personal access token. Secret is there only where it was just made.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	User    string    `json:"user"`
	Tenant  string    `json:"tenant"`
	Expires time.Time `json:"expires"`
	Secret  string    `json:"token"`
}

// TokenRequest asks for a token: of the caller, or, by an administrator, of another user.
type TokenRequest struct {
	User     string    `json:"user,omitempty"`
	Tenant   string    `json:"tenant,omitempty"`
	Name     string    `json:"name,omitempty"`
	Expires  time.Time `json:"expires"`
	ReadOnly bool      `json:"read_only,omitempty"`
}

// NewToken makes a token.
func (c *Client) NewToken(ctx context.Context, r TokenRequest) (Token, error) {
	var t Token
	err := c.do(ctx, call{method: http.MethodPost, path: "token", body: r}, &t)
	if err == nil && t.Secret == "" {
		return t, fmt.Errorf("make token: the answer has none")
	}
	return t, err
}

// RevokeToken ends a token. One that is gone already is no error.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	err := c.do(ctx, call{method: http.MethodDelete, path: "token/" + url.PathEscape(id), repeatable: true}, nil)
	if Is(err, NotFound) {
		return nil
	}
	return err
}

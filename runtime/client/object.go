package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Object is an object as the API shows it.
type Object struct {
	Kind       string          `json:"kind"`
	Key        string          `json:"key"` // the path of its address: acme/bi
	ID         string          `json:"id"`
	Stack      string          `json:"stack"` // "": nobody owns it
	Address    string          `json:"address"`
	Revision   int64           `json:"revision"`
	Generation int64           `json:"generation"`
	Protected  bool            `json:"protected"`
	Deleting   bool            `json:"deleting"`
	Spec       json.RawMessage `json:"spec"`      // as it was written
	Effective  json.RawMessage `json:"effective"` // with defaults and everything that the kind has
	Status     Status          `json:"status"`
}

// Status is how far the outside of an object is.
type Status struct {
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
	Nodes  []Node `json:"nodes,omitempty"` // of a pool
}

// Node is a node of a pool.
type Node struct {
	ID     string `json:"id"`
	Role   string `json:"role"`
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
}

// Addr returns the object's address by kind and key.
func (o Object) Addr() schema.Addr { return schema.Addr{Kind: o.Kind, Path: o.Key} }

// Values returns what was written and the same with defaults in place. Secrets are null in both.
func (o Object) Values(k *schema.Kind) (spec, effective cty.Value, err error) {
	if spec, err = k.Decode(o.Spec); err != nil {
		return cty.NilVal, cty.NilVal, fmt.Errorf("read %s: %w", o.Addr(), err)
	}
	if effective, err = k.Decode(o.Effective); err != nil {
		return cty.NilVal, cty.NilVal, fmt.Errorf("read %s: %w", o.Addr(), err)
	}
	return spec, effective, nil
}

// Get returns the object at an address, or a not_found [*Error].
func (c *Client) Get(ctx context.Context, a schema.Addr) (Object, error) {
	var o Object
	err := c.do(ctx, call{method: http.MethodGet, path: pathOf(a), repeatable: true}, &o)
	return o, err
}

// ByID returns the object with that id, also while it is being deleted; then the answer is a not_found [*Error].
func (c *Client) ByID(ctx context.Context, id string) (Object, error) {
	var o Object
	err := c.do(ctx, call{method: http.MethodGet, path: "object/" + url.PathEscape(id), repeatable: true}, &o)
	return o, err
}

// Restart has all nodes of the object at an address replaced, and returns the object, which is ready again once they are.
// The id is a uuid of the request: the same one twice is one request.
func (c *Client) Restart(ctx context.Context, a schema.Addr, id string) (Object, error) {
	var o Object
	body := map[string]string{"id": id}
	err := c.do(ctx, call{method: http.MethodPost, path: pathOf(a) + "/restart", body: body, repeatable: true}, &o)
	return o, err
}

// Filter chooses among the objects of a kind. What is empty does not count.
type Filter struct{ Tenant, Stack, Name string }

// pageSize is the most that the server gives at once.
const pageSize = 1000

// List yields the objects of a kind in order of their keys, as they were at one revision. It ends with the first error.
func (c *Client) List(ctx context.Context, kind string, f Filter) iter.Seq2[Object, error] {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for name, value := range map[string]string{"tenant": f.Tenant, "stack": f.Stack, "name": f.Name} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return func(yield func(Object, error) bool) {
		for {
			var page struct {
				Revision int64    `json:"revision"`
				Items    []Object `json:"items"`
				Next     string   `json:"next"`
			}
			if err := c.do(ctx, call{method: http.MethodGet, path: kind, query: query, repeatable: true}, &page); err != nil {
				yield(Object{}, err)
				return
			}
			for _, o := range page.Items {
				if !yield(o, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("after", page.Next)
		}
	}
}

// pathOf writes an address as parts of a path.
func pathOf(a schema.Addr) string {
	parts := strings.Split(a.Path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return a.Kind + "/" + strings.Join(parts, "/")
}

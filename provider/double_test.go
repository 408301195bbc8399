package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// double answers as qod serve does, over maps: docs/decisions/012-rest.md. It is for what a real server does not do on
// request. Pools need a look or two until they are ready, and until they are gone.
type double struct {
	URL string

	mu       sync.Mutex
	revision int64
	objects  map[string]*stored
	tokens   map[string]bool // by id; false once revoked
	stuck    string          // why pools never get ready
	secrets  []string        // all that were ever sent
	applies  []client.Request
	restarts map[string]bool // by id of the request
	moved    []string        // what was refused since it had moved on
	order    *rand.Rand      // of all that has none; nil: it stays the same
}

type stored struct {
	client.Object
	kind  *schema.Kind
	spec  cty.Value // without secrets
	looks int
}

const doubleToken = "qod_pat_double"

func newDouble(t *testing.T) *double {
	t.Helper()
	d := &double{objects: map[string]*stored{}, tokens: map[string]bool{}, restarts: map[string]bool{}}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	d.URL = server.URL
	return d
}

// with looks at what the double has, or changes it, between two requests.
func (d *double) with(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *double) count() (n int) {
	d.with(func() { n = len(d.objects) })
	return n
}

// last returns the last secret that was sent.
func (d *double) last() (secret string) {
	d.with(func() { secret = d.secrets[len(d.secrets)-1] })
	return secret
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var out any
	err := refuse(http.StatusUnauthorized, client.Unauthenticated, "who are you?", "")
	if r.Header.Get("Authorization") == "Bearer "+doubleToken {
		out, err = d.route(r)
	}
	var refused *client.Error
	if errors.As(err, &refused) {
		if refused.Status == http.StatusPreconditionFailed {
			d.moved = append(d.moved, refused.Message)
		}
		w.WriteHeader(refused.Status)
		out = client.Detail{Code: refused.Code, Message: refused.Message, Path: refused.Path}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func refuse(status int, code, message, path string) error {
	return &client.Error{Status: status, Code: code, Message: message, Path: path}
}

func (d *double) route(r *http.Request) (any, error) {
	head, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
	switch {
	case head == "apply" && r.Method == http.MethodPost:
		var request client.Request
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			return nil, refuse(http.StatusBadRequest, client.BadRequest, err.Error(), "")
		}
		return d.apply(request)
	case head == "token":
		return d.token(r, rest)
	case head == "object":
		if o, ok := d.objects[rest]; ok {
			return d.look(o), nil
		}
		return nil, refuse(http.StatusNotFound, client.NotFound, "there is no such object", r.URL.Path)
	case r.Method == http.MethodPost && strings.HasSuffix(rest, "/restart"):
		return d.restart(schema.Addr{Kind: head, Path: strings.TrimSuffix(rest, "/restart")}, r)
	case rest != "":
		if o := d.at(schema.Addr{Kind: head, Path: rest}); o != nil {
			return d.look(o), nil
		}
		return nil, refuse(http.StatusNotFound, client.NotFound, fmt.Sprintf("there is no %s.%s", head, rest), r.URL.Path)
	}
	return d.list(head, r), nil
}

func (d *double) list(kind string, r *http.Request) any {
	items := []client.Object{}
	for _, o := range d.objects {
		tenant := o.kind.KeyValues(o.Addr())["tenant"]
		q := r.URL.Query()
		if o.Kind == kind && !o.Deleting && (!q.Has("stack") || q.Get("stack") == o.Stack) && (!q.Has("tenant") || q.Get("tenant") == tenant) {
			items = append(items, o.Object)
		}
	}
	slices.SortFunc(items, func(a, b client.Object) int { return cmp.Compare(a.Key, b.Key) })
	for i := range items {
		items[i] = d.shuffled(items[i])
	}
	return map[string]any{"revision": d.revision, "items": items, "next": ""}
}

func (d *double) token(r *http.Request, id string) (any, error) {
	if r.Method == http.MethodDelete {
		d.tokens[id] = false
		return map[string]any{}, nil
	}
	var asked client.TokenRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, refuse(http.StatusBadRequest, client.BadRequest, err.Error(), "")
	}
	id = fmt.Sprintf("token-%d", len(d.tokens))
	d.tokens[id] = true
	d.secrets = append(d.secrets, "qod_pat_ephemeral")
	return client.Token{ID: id, Name: asked.Name, User: asked.User, Expires: asked.Expires, Secret: "qod_pat_ephemeral"}, nil
}

func (d *double) restart(a schema.Addr, r *http.Request) (any, error) {
	var asked struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, refuse(http.StatusBadRequest, client.BadRequest, err.Error(), "")
	}
	o := d.at(a)
	if o == nil {
		return nil, refuse(http.StatusNotFound, client.NotFound, "there is no "+a.String(), r.URL.Path)
	}
	if !d.restarts[asked.ID] {
		d.restarts[asked.ID], o.looks = true, 0
	}
	return d.seen(o), nil
}

// at returns the live object of that address.
func (d *double) at(a schema.Addr) *stored {
	for _, o := range d.objects {
		if !o.Deleting && o.Addr() == a {
			return o
		}
	}
	return nil
}

// look is a request for one object.
func (d *double) look(o *stored) client.Object {
	o.looks++
	if o.Deleting && o.looks > 1 {
		delete(d.objects, o.ID)
	}
	return d.seen(o)
}

func (d *double) seen(o *stored) client.Object {
	seen := d.shuffled(o.Object)
	if o.Kind == "pool" {
		seen.Status = client.Status{Phase: ready}
		if o.looks < 2 || d.stuck != "" {
			seen.Status = client.Status{Phase: "provisioning", Reason: d.stuck, Nodes: []client.Node{
				{ID: "n1", Role: "dual", Phase: serving}, {ID: "n2", Role: "dual", Phase: "starting", Reason: d.stuck},
			}}
		}
	}
	return seen
}

// apply makes all changes or none.
func (d *double) apply(r client.Request) (any, error) {
	d.applies = append(d.applies, r)
	before := maps.Clone(d.objects)
	for id, o := range before {
		kept := *o
		before[id] = &kept
	}
	d.revision++
	touched, err := d.changes(r)
	if err != nil {
		d.objects = before
		return nil, err
	}
	out := client.Applied{Revision: d.revision, Plan: json.RawMessage("{}"), Objects: []client.Object{}}
	for _, o := range touched {
		if o.Deleting && o.Kind != "pool" {
			delete(d.objects, o.ID)
		}
		out.Objects = append(out.Objects, d.seen(o))
	}
	if d.order != nil {
		d.order.Shuffle(len(out.Objects), func(i, j int) { out.Objects[i], out.Objects[j] = out.Objects[j], out.Objects[i] })
	}
	return out, nil
}

func (d *double) changes(r client.Request) ([]*stored, error) {
	var touched []*stored
	rank := map[string]int{}
	for i, k := range schema.Kinds() {
		rank[k.Name] = i
	}
	order := make([]int, len(r.Changes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := r.Changes[a], r.Changes[b]
		if x.Action != y.Action {
			return cmp.Compare(y.Action, x.Action) // puts first
		}
		if x.Action == client.Delete {
			return rank[y.Kind] - rank[x.Kind]
		}
		return rank[x.Kind] - rank[y.Kind]
	})
	for _, i := range order {
		c, at := r.Changes[i], fmt.Sprintf("changes[%d]", i)
		do := d.put
		if c.Action == client.Delete {
			do = d.delete
		}
		o, err := do(r.Stack, c, at)
		if err != nil {
			return nil, err
		}
		touched = append(touched, o)
	}
	return touched, nil
}

func (d *double) delete(stack string, c client.Change, at string) (*stored, error) {
	o := d.at(schema.Addr{Kind: c.Kind, Path: c.Key})
	if err := d.mayChange(o, stack, c, at); err != nil {
		return nil, err
	}
	for _, other := range d.objects {
		for _, ref := range other.kind.Refs(other.spec) {
			if ref.To == o.Addr() && !other.Deleting {
				return nil, refuse(http.StatusConflict, client.Conflict, fmt.Sprintf("%s refers to %s", other.Addr(), o.Addr()), at)
			}
		}
	}
	if o.Protected || o.kind.Holds != "" && o.spec.GetAttr(o.kind.Holds).RawEquals(cty.False) {
		return nil, refuse(http.StatusUnprocessableEntity, client.Invalid, fmt.Sprintf("%s may not be destroyed", o.Addr()), at)
	}
	o.Deleting, o.looks, o.Revision = true, 0, d.revision
	return o, nil
}

func (d *double) mayChange(o *stored, stack string, c client.Change, at string) error {
	switch {
	case o == nil:
		return refuse(http.StatusNotFound, client.NotFound, fmt.Sprintf("there is no %s.%s", c.Kind, c.Key), at)
	case c.IfMatch != 0 && c.IfMatch != o.Revision:
		return refuse(http.StatusPreconditionFailed, client.Revision, fmt.Sprintf("%s is at revision %d, not %d", o.Addr(), o.Revision, c.IfMatch), at)
	case o.Stack != stack && !c.TakeOver:
		return refuse(http.StatusConflict, client.Conflict, fmt.Sprintf("%s %s", o.Addr(), ownedBy(o.Stack)), at)
	}
	return nil
}

func (d *double) put(stack string, c client.Change, at string) (*stored, error) {
	k, _ := schema.Lookup(c.Kind)
	v, err := k.Decode(c.Spec)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, client.BadRequest, err.Error(), at+".spec")
	}
	whole, problems := k.Complete(v)
	if len(problems) > 0 {
		return nil, refuse(http.StatusUnprocessableEntity, client.Invalid, problems[0].Message, at+".spec."+pathOf(problems[0].Path).String())
	}
	for _, ref := range k.Refs(v) {
		if d.at(ref.To) == nil {
			return nil, refuse(http.StatusUnprocessableEntity, client.Invalid, fmt.Sprintf("there is no %s", ref.To), at+".spec."+ref.Attr)
		}
	}
	if c.Key == "" {
		c.Key = k.Addr(v).Path
	}
	o := d.at(schema.Addr{Kind: k.Name, Path: c.Key})
	if o != nil || c.IfMatch != 0 {
		if err := d.mayChange(o, stack, c, at); err != nil {
			return nil, err
		}
	}
	if taken := d.at(k.Addr(v)); taken != nil && taken != o {
		return nil, refuse(http.StatusConflict, client.Conflict, fmt.Sprintf("%s exists and %s", taken.Addr(), ownedBy(taken.Stack)), at)
	}
	if o == nil {
		o = &stored{kind: k, Object: client.Object{ID: uuid.NewString()}}
		d.objects[o.ID] = o
	} else {
		d.follow(k.Addr(o.spec), k.Addr(v), v)
	}
	o.Stack, o.Address, o.Protected, o.looks = stack, k.Addr(v).String(), c.Protected, 0
	return o, d.write(o, v, whole)
}

// write stores a value without its secrets, which it notes.
func (d *double) write(o *stored, v, whole cty.Value) error {
	values, effective := v.AsValueMap(), whole.AsValueMap()
	for _, a := range o.kind.Attrs {
		if a.Secret {
			if !v.GetAttr(a.Name).IsNull() {
				d.secrets = append(d.secrets, v.GetAttr(a.Name).AsString())
			}
			values[a.Name], effective[a.Name] = cty.NullVal(a.Type), cty.NullVal(a.Type)
		}
	}
	o.spec = cty.ObjectVal(values)
	var err, err2 error
	o.Spec, err = o.kind.Encode(o.spec)
	o.Effective, err2 = o.kind.Encode(cty.ObjectVal(effective))
	o.Kind, o.Key, o.Revision = o.kind.Name, o.kind.Addr(v).Path, d.revision
	o.Generation++
	return errors.Join(err, err2)
}

// follow has all references to what is renamed name it as it is called now.
func (d *double) follow(was, now schema.Addr, v cty.Value) {
	if was == now {
		return
	}
	k, _ := schema.Lookup(now.Kind)
	for _, o := range d.objects {
		renames := schema.Renames{}
		for _, ref := range o.kind.Refs(o.spec) {
			if ref.To == was {
				renames.Add(ref.Attr, was.Name(), k.NameOf(v))
			}
		}
		if len(renames) > 0 {
			before := o.kind.Addr(o.spec)
			spec := renames.Apply(o.spec)
			whole, _ := o.kind.Complete(spec)
			_ = d.write(o, spec, whole)
			d.follow(before, o.kind.Addr(spec), spec)
		}
	}
}

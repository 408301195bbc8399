package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// secret is the password of all users: it and what is made of it must be in no answer.
const secret = "canary-correct-horse"

// site is REST over a store in Postgres. Pools have no nodes there, and databases nothing outside: stories with
// those are in package test.
type site struct {
	*testing.T
	store *postgres.Store
	rest  *api.REST
	url   string
	root  string // authorization of a system administrator

	mu     *sync.Mutex
	events []store.Event
	log    *bytes.Buffer
}

func newSite(t *testing.T, change ...func(*api.RESTConfig)) *site {
	t.Helper()
	sealer, err := store.NewSealer(bytes.Repeat([]byte{7}, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, log: &bytes.Buffer{}, mu: &sync.Mutex{}, root: basic("root", secret)}
	log := slog.New(slog.NewTextHandler(&guarded{s: s}, nil))
	if s.store, err = postgres.Open(t.Context(), postgres.Config{URL: pgtest.Database(t), Sealer: sealer, Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	e := engine.New(engine.Config{Store: s.store, Nodes: s.store, Sealer: sealer, Hash: access.Hash, Holder: "test", Log: log})
	s.boot(e)
	ring, err := wire.NewKeyring(wire.Key{ID: 1, Key: bytes.Repeat([]byte{9}, wire.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	holder := access.NewHolder(s.directory(sealer))
	follow(t, s, sealer, holder)
	c := api.RESTConfig{
		Engine: e, State: s.store, Directory: holder, Keyring: func() *wire.Keyring { return ring }, Note: s.note,
		Status:     func(context.Context) (api.Status, error) { return api.Status{}, nil },
		BearerLife: time.Hour, Version: "0", Log: log, Rate: 10_000, Burst: 10_000,
	}
	for _, f := range change {
		f(&c)
	}
	if s.rest, err = api.NewREST(c); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.Handler(api.Config{REST: s.rest}))
	t.Cleanup(server.Close)
	s.url = server.URL + api.Root
	return s
}

type guarded struct{ s *site }

func (g *guarded) Write(p []byte) (int, error) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	return g.s.log.Write(p)
}

func (s *site) note(e store.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *site) directory(sealer *store.Sealer) *access.Directory {
	s.Helper()
	snap, err := s.store.Snapshot(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	d, err := access.New(snap, sealer)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

// follow keeps the holder as the store is, until the test ends.
func follow(t *testing.T, s *site, sealer *store.Sealer, holder *access.Holder) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.store.Watch(ctx, func(r store.Revision) {
			if snap, err := s.store.Snapshot(ctx); err == nil {
				if d, err := access.New(snap, sealer); err == nil {
					holder.Swap(d)
				}
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// boot makes a system administrator.
func (s *site) boot(e *engine.Engine) {
	s.Helper()
	k, _ := schema.Lookup("user")
	attrs := k.Empty().AsValueMap()
	attrs["name"], attrs["system"], attrs["password"] = cty.StringVal("root"), cty.True, cty.StringVal(secret)
	p, err := e.Request(s.Context(), engine.Request{Stack: store.Stack{Name: "boot"}, Changes: []engine.Asked{{Kind: k, Value: cty.ObjectVal(attrs)}}})
	if err == nil {
		err = e.Commit(s.Context(), p, engine.Who{By: "test"}, false)
	}
	if err != nil {
		s.Fatal(err)
	}
}

func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// answer is what came back.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   []byte
}

// as makes a request. A body that is no text is sent as JSON. Headers are "Name: value".
func (s *site) as(auth, method, path string, body any, headers ...string) answer {
	s.Helper()
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			s.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, bytes.NewReader(raw))
	if err != nil {
		s.Fatal(err)
	}
	if auth != "" {
		r.Header.Set("Authorization", auth)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	a := answer{t: s.T, what: method + " " + path, status: got.StatusCode, header: got.Header}
	if a.body, err = io.ReadAll(got.Body); err != nil {
		s.Fatal(err)
	}
	if a.header.Get("X-Request-Id") == "" {
		s.Errorf("%s: no request id", a.what)
	}
	for _, canary := range []string{secret, "argon2id", "hmac"} {
		if bytes.Contains(a.body, []byte(canary)) && path != "/openapi.json" {
			s.Errorf("%s: %q is in the answer: %s", a.what, canary, a.body)
		}
	}
	return a
}

// bearer is the authorization that a login gives.
func (s *site) bearer(login string) string {
	s.Helper()
	return "Bearer " + s.as("", "POST", "/login", login).want(200).get("token").(string)
}

func (s *site) do(method, path string, body any, headers ...string) answer {
	s.Helper()
	return s.as(s.root, method, path, body, headers...)
}

// want checks the status, and what the body has at some places: "error=conflict", "status.phase=ready".
func (a answer) want(status int, parts ...string) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d, want %d: %s", a.what, a.status, status, a.body)
	}
	for _, part := range parts {
		path, want, _ := strings.Cut(part, "=")
		if got := fmt.Sprint(a.get(path)); got != want {
			a.t.Errorf("%s: %s is %s, want %s: %s", a.what, path, got, want, a.body)
		}
	}
	return a
}

// get returns what is at a path of the body, nil for nothing.
func (a answer) get(path string) any {
	a.t.Helper()
	var at any
	dec := json.NewDecoder(bytes.NewReader(a.body))
	dec.UseNumber()
	if err := dec.Decode(&at); err != nil {
		a.t.Fatalf("%s: %v in %q", a.what, err, a.body)
	}
	for name := range strings.SplitSeq(path, ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	return at
}

// sample is a value of a kind in a tenant, whose references mean the samples of their kinds there.
func sample(k *schema.Kind, tenant string) map[string]any {
	spec := map[string]any{}
	for _, part := range k.Key {
		spec[strings.Split(part, "|")[0]] = ""
	}
	for _, a := range k.Attrs {
		_, key := spec[a.Name]
		switch {
		case a.StoredAs != "":
			spec[a.Name] = secret
		case a.Name == k.Holds:
			spec[a.Name] = true
		case !key && (a.Mode != schema.Required || a.Default != cty.NilVal):
		case a.Ref != "":
			spec[a.Name] = nameOf(a.Ref, tenant)
		case len(a.OneOf) > 0:
			spec[a.Name] = a.OneOf[0]
		default:
			spec[a.Name] = nameOf(k.Name, tenant)
		}
	}
	return spec
}

func nameOf(kind, tenant string) string {
	if kind == "tenant" {
		return tenant
	}
	return tenant + "-" + kind
}

// pathOf is where the sample is.
func pathOf(k *schema.Kind, tenant string) string {
	spec := sample(k, tenant)
	var parts []string
	for _, part := range k.Key {
		name := strings.Split(part, "|")[0]
		text := spec[name].(string)
		if name != part {
			text = name + ":" + text
		}
		parts = append(parts, text)
	}
	return "/" + k.Name + "/" + strings.Join(parts, "/")
}

// estate makes a sample of each kind in the tenant, and an administrator of it.
func (s *site) estate(tenant string) (admin string) {
	s.Helper()
	for _, k := range schema.Kinds() {
		s.do("PUT", pathOf(k, tenant), map[string]any{"stack": tenant, "spec": sample(k, tenant)}).want(201)
	}
	name := tenant + "-admin"
	s.do("PUT", "/user/"+tenant+"/"+name, map[string]any{"stack": tenant, "spec": map[string]any{"admin": true, "password": secret}}).want(201)
	return basic(tenant+"/"+name, secret)
}

func reversed() []*schema.Kind {
	kinds := slices.Clone(schema.Kinds())
	slices.Reverse(kinds)
	return kinds
}

func with(spec map[string]any, name string, v any) map[string]any {
	out := maps.Clone(spec)
	out[name] = v
	return out
}

package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// Root is the path below which all of REST is.
const Root = "/v1"

const (
	maxBody        = 4 << 20  // bytes
	maxLargeBody   = 64 << 20 // bytes, of a whole configuration
	maxRequestID   = 128      // bytes
	defaultRate    = 200      // requests of a caller in a second
	defaultBurst   = 1000
	requestIDField = "X-Request-Id"
)

// State is what REST reads and changes beside the engine's objects.
type State interface {
	store.Tokens
	store.Revocations
	store.Audit
	store.Applies
	store.Statements
}

// RESTConfig is what REST works with. All of it is needed unless it says otherwise.
type RESTConfig struct {
	Engine    *engine.Engine
	State     State
	Directory *access.Holder
	Keyring   func() *wire.Keyring
	// Stale says for how long grants count that the store has not confirmed. Nil or 0: for ever.
	Stale func() time.Duration
	Note  func(store.Event) // takes an event for the audit; it must not block
	// Status looks at all nodes now.
	Status     func(context.Context) (Status, error)
	BearerLife time.Duration // of what a login gives
	Version    string        // of qod
	Log        *slog.Logger
	// Ending is closed when the server is to end: who watches is let go. Nil: never.
	Ending <-chan struct{}
	// Rate is how many requests of one caller are let through in a second, and Burst how many at once. Zero:
	// 200 and 1000.
	Rate, Burst int
}

// REST serves all that is below Root.
type REST struct {
	RESTConfig
	routes   []route
	callers  *buckets     // by user
	failures *buckets     // logins that failed, by address and name
	noted    access.Quota // logins with each request
	denied   access.Quota // and failed ones
	listings *listings
	watchers atomic.Int64
	openAPI  []byte
}

// NewREST returns a handler of what is below Root.
func NewREST(c RESTConfig) (*REST, error) {
	rate, burst := float64(defaultRate), defaultBurst
	if c.Rate > 0 {
		rate = float64(c.Rate)
	}
	if c.Burst > 0 {
		burst = c.Burst
	}
	a := &REST{
		RESTConfig: c, callers: newBuckets(rate, burst), failures: newBuckets(failureRate, failureBurst),
		noted: access.Quota{Most: 1}, denied: access.Quota{Most: mostFailures}, listings: &listings{},
	}
	a.routes = a.table()
	var err error
	a.openAPI, err = OpenAPI(c.Version)
	return a, err
}

// call is a request on its way.
type call struct {
	http.ResponseWriter
	*http.Request
	rest   *REST
	id     string
	from   string // address of the client, without port
	caller caller
	kind   *schema.Kind
	route  *route
	params []string // the parts of the path that the route leaves open, unescaped once
	status int
	code   string // of the error, for the log and the audit
}

// WriteHeader notes the status for the log.
func (c *call) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *call) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// ServeHTTP implements http.Handler.
func (a *REST) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	c := &call{ResponseWriter: w, Request: r, rest: a, id: requestID(r), from: host(r.RemoteAddr)}
	w.Header().Set(requestIDField, c.id)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if f := c.serve(); f != nil {
		c.fail(f)
	}
	a.Log.InfoContext(r.Context(), "request", "id", c.id, "method", shorten(r.Method), "path", shorten(r.URL.EscapedPath()),
		"status", c.status, "error", c.code, "user", c.caller.String(), "from", c.from, "took", time.Since(start))
}

// serve finds the route and the caller, and lets the route answer.
func (c *call) serve() *failure {
	if c.TLS == nil && !loopback(c.from) {
		return refuse(http.StatusForbidden, "forbidden", "credentials do not travel in clear: use https")
	}
	found := c.find()
	most := int64(maxBody)
	if c.route != nil && c.route.large {
		most = maxLargeBody
	}
	c.Body = http.MaxBytesReader(c.ResponseWriter, c.Body, most)
	if c.route != nil && c.route.open {
		return c.route.run(c)
	}
	// Who nobody knows learns nothing, not even which routes there are.
	if f := c.identify(); f != nil {
		return f
	}
	if wait := c.rest.callers.take(c.caller.ID); wait > 0 {
		return tooMany(wait)
	}
	if found != nil {
		return found
	}
	if c.route.changes && c.caller.readOnly {
		c.refusedChange("read_only")
		return refuse(http.StatusForbidden, "read_only", "the token is read-only")
	}
	if c.route.system && !c.caller.System {
		return notFound()
	}
	return c.route.run(c)
}

// requestID is the client's, if it can be shown, or a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(requestIDField)
	if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return uuid.NewString()
	}
	return id
}

func shorten(text string) string {
	const most = 512
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// route is a method of a path, and what answers it.
type route struct {
	method, path string                  // parts in braces are open; {kind} and {key...} are of the kinds
	kinds        func(*schema.Kind) bool // of those with {kind}; nil: all
	name         string                  // the operation, for OpenAPI
	doc          string
	open         bool // to everybody
	system       bool // to system administrators only; others see nothing there
	changes      bool // refused to read-only tokens
	large        bool // takes whole configurations
	query        []parameter
	body, answer string // names of schemas
	run          func(*call) *failure
}

// find chooses the route by the path and the method.
func (c *call) find() *failure {
	parts, ok := pathParts(c.URL.EscapedPath())
	if !ok {
		return notFound()
	}
	var methods []string
	path := "" // of the first route that matches: no other path counts then
	for i := range c.rest.routes {
		r := &c.rest.routes[i]
		kind, params, ok := r.match(parts)
		if !ok || path != "" && r.path != path {
			continue
		}
		path = r.path
		if r.method == c.Method {
			c.route, c.kind, c.params = r, kind, params
			return nil
		}
		methods = append(methods, r.method)
	}
	if len(methods) == 0 {
		return notFound()
	}
	slices.Sort(methods)
	c.Header().Set("Allow", strings.Join(slices.Compact(methods), ", "))
	return refuse(http.StatusMethodNotAllowed, "method_not_allowed", "this path takes "+strings.Join(slices.Compact(methods), ", "))
}

// Header is that of the answer.
func (c *call) Header() http.Header { return c.ResponseWriter.Header() }

func (r *route) match(parts []string) (kind *schema.Kind, params []string, ok bool) {
	want := strings.Split(strings.Trim(r.path, "/"), "/")
	if before, after, ok := strings.Cut(r.path, "{key...}/"); ok { // what follows may also be the name of an object
		rest := len(parts) - 1
		if rest < 0 || parts[rest] != after {
			return nil, nil, false
		}
		key := route{path: before + "{key...}", kinds: r.kinds}
		if kind, params, ok = key.match(parts[:rest]); ok {
			_, ok = keyOf(kind, params)
		}
		return kind, params, ok
	}
	for i, w := range want {
		switch {
		case w == "{key...}":
			return kind, parts[i:], kind != nil && len(parts) > i
		case i >= len(parts):
			return nil, nil, false
		case w == "{kind}":
			if kind, ok = schema.Lookup(parts[i]); !ok || r.kinds != nil && !r.kinds(kind) {
				return nil, nil, false
			}
		case strings.HasPrefix(w, "{"):
			params = append(params, parts[i])
		case w != parts[i]:
			return nil, nil, false
		}
	}
	return kind, params, len(parts) == len(want)
}

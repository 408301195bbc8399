package terraform

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// point is a moment of an apply: that of a request after its first change.
type point struct {
	nth      int  // request; 0 is that change
	answered bool // the server has done it, and nobody knows; else it has not got it yet
	whole    bool // the provider ends with Terraform; else it outlives it for as long as the request takes
}

// gate is between a provider and its server, and can hold a request.
type gate struct {
	URL    string
	server http.Handler

	mu   sync.Mutex
	stop *stop // nil: all go through
	seen int   // requests since the first change of this apply, which is one of them
}

// stop is a request that is to be held.
type stop struct {
	point
	reached, passed chan struct{}
	free            chan struct{}
	once            sync.Once
}

func (s *stop) release() { s.once.Do(func() { close(s.free) }) }

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{server: &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog: log.New(io.Discard, "", 0), // who asked may be gone
	}}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	g.URL = front.URL
	return g
}

// arm has the next apply held at that point, until it is released.
func (g *gate) arm(at point) *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen = 0
	g.stop = &stop{point: at, reached: make(chan struct{}), passed: make(chan struct{}), free: make(chan struct{})}
	return g.stop
}

// meets returns the stop of a request that is to be held.
func (g *gate) meets(r *http.Request) *stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	change := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/apply")
	if g.stop == nil || g.seen == 0 && !change {
		return nil
	}
	g.seen++
	if g.seen <= g.stop.nth {
		return nil
	}
	s := g.stop
	g.stop = nil
	return s
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.meets(r)
	if s == nil {
		g.server.ServeHTTP(w, r)
		return
	}
	defer close(s.passed)
	if !s.answered {
		close(s.reached)
		<-s.free
		g.server.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	g.server.ServeHTTP(answer, r)
	close(s.reached)
	<-s.free
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

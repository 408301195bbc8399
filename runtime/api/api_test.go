package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/qod-io/qod/runtime/api"
)

func TestHealthFollowsTheFirstPass(t *testing.T) {
	var ready atomic.Pointer[api.Readiness]
	ready.Store(&api.Readiness{})
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "statements_total", Help: "x"}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- api.Run(ctx, l, api.Handler(api.Config{Ready: func() api.Readiness { return *ready.Load() }, Gatherer: registry}), nil)
	}()
	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	expect := func(path string, code int, part string) {
		t.Helper()
		if got, body := get(path); got != code || !strings.Contains(body, part) {
			t.Errorf("%s: %d %s, want %d with %q", path, got, body, code, part)
		}
	}
	expect("/live", 200, `"live":true`)
	expect("/health", 503, `"healthy":false`)
	expect("/ready", 503, `"edge":false`)
	ready.Store(&api.Readiness{Settled: true, Edge: true, Postgres: false})
	expect("/health", 200, `"healthy":true`)
	expect("/ready", 200, `"postgres":false`)
	expect("/metrics", 200, "statements_total 0")
	expect("/nothing", 404, `"path":"/nothing"`)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

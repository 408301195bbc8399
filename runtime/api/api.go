// Package api is the HTTP side of qod serve: health for machines that look after it, and metrics. The
// REST form of the kinds is not in it yet.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 5 * time.Second
)

// Readiness says what works now.
type Readiness struct {
	Settled  bool `json:"settled"`  // the first pass over all pools is done
	Edge     bool `json:"edge"`     // Flight SQL accepts connections
	Postgres bool `json:"postgres"` // the store answered within the last seconds
	Acting   bool `json:"acting"`   // this process starts and stops nodes; another does otherwise
}

// Config is what the handlers look at.
type Config struct {
	Ready    func() Readiness
	Gatherer prometheus.Gatherer
}

// Handler serves /live, /health, /ready and /metrics.
func Handler(c Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { reply(w, true, map[string]bool{"live": true}) })
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		settled := c.Ready().Settled
		reply(w, settled, map[string]bool{"healthy": settled})
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		r := c.Ready()
		reply(w, r.Settled && r.Edge, r)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(c.Gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]string{ // the client is gone when this fails
			"error": "not_found", "message": "there is /live, /health, /ready and /metrics", "path": r.URL.Path,
		})
	})
	return mux
}

func reply(w http.ResponseWriter, good bool, body any) {
	w.Header().Set("Content-Type", "application/json")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(body) // the client is gone when this fails
}

// Run serves until ctx ends, then gives requests in flight five seconds.
func Run(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := server.Shutdown(ending)
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("stop HTTP: %w", err)
	}
	return nil
}

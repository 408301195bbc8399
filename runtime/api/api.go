// Package api is the HTTP side of qod serve: health for machines that look after it, metrics, and REST.
//
// REST is generic over the kinds: what it takes, shows and describes follows from their definitions, and no
// kind or attribute is named here. What changes something is an [engine.Request] and nothing else, so it meets
// the checks, owners and commits of plans. docs/decisions/012-rest.md is the contract.
package api

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
	REST     http.Handler // below Root; nil: there is none
}

// Handler serves /live, /health, /ready and /metrics, and REST.
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
	words := "there is /live, /health, /ready and /metrics"
	if c.REST != nil {
		mux.Handle(Root+"/", c.REST)
		words = "there is " + Root + ", /live, /health, /ready and /metrics"
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]string{ // the client is gone when this fails
			"error": "not_found", "message": words, "path": r.URL.Path,
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

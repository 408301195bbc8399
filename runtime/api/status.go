package api

import (
	"time"

	"github.com/qod-io/qod/engine/store"
)

// Status is what status --json prints, and REST shows.
type Status struct {
	FormatVersion string         `json:"format_version"`
	QodVersion    string         `json:"qod_version"`
	Revision      int64          `json:"revision"`
	Serves        []StatusServe  `json:"serves"`
	Objects       []StatusObject `json:"objects"`
	Pools         []StatusPool   `json:"pools"`
}

type StatusServe struct {
	PID    int    `json:"pid"`
	Flight string `json:"flight"`
	HTTP   string `json:"http"`
}

// StatusObject is an object that has an outside, or waits for its own to go.
type StatusObject struct {
	Kind     string       `json:"kind"`
	Object   string       `json:"object"`
	ID       string       `json:"id"`
	Deleting bool         `json:"deleting"`
	Status   store.Status `json:"status"`
}

type StatusPool struct {
	Object  string       `json:"object"`
	ID      string       `json:"id"`
	Serving int          `json:"serving"`
	Nodes   []StatusNode `json:"nodes"`
}

// StatusNode is a node. Without an answer of its own it has no load.
type StatusNode struct {
	ID      string      `json:"id"`
	Role    string      `json:"role"`
	Phase   string      `json:"phase"`
	PID     int         `json:"pid"`
	Host    string      `json:"host"`
	Silent  string      `json:"silent,omitempty"`
	Seen    *time.Time  `json:"seen,omitempty"`
	Load    *StatusLoad `json:"load,omitempty"`
	Message string      `json:"message,omitempty"`
}

type StatusLoad struct {
	Served       int64   `json:"served"`
	InFlight     int     `json:"in_flight"`
	Sessions     int     `json:"sessions"`
	Transactions int     `json:"transactions"`
	P50          float64 `json:"p50_seconds"`
	P95          float64 `json:"p95_seconds"`
	P99          float64 `json:"p99_seconds"`
	MemoryBytes  int64   `json:"memory_bytes"`
}

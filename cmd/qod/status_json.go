package main

import (
	"time"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
)

// statusDocument is what status --json prints.
type statusDocument struct {
	FormatVersion string         `json:"format_version"`
	QodVersion    string         `json:"qod_version"`
	Revision      int64          `json:"revision"`
	Serves        []statusServe  `json:"serves"`
	Objects       []statusObject `json:"objects"`
	Pools         []statusPool   `json:"pools"`
}

type statusServe struct {
	PID    int    `json:"pid"`
	Flight string `json:"flight"`
	HTTP   string `json:"http"`
}

// statusObject is an object that has an outside, or waits for its own to go.
type statusObject struct {
	Kind     string       `json:"kind"`
	Object   string       `json:"object"`
	ID       string       `json:"id"`
	Deleting bool         `json:"deleting"`
	Status   store.Status `json:"status"`
}

type statusPool struct {
	Object  string       `json:"object"`
	ID      string       `json:"id"`
	Serving int          `json:"serving"`
	Nodes   []statusNode `json:"nodes"`
}

// statusNode is a node. Without an answer of its own it has no load.
type statusNode struct {
	ID      string      `json:"id"`
	Role    string      `json:"role"`
	Phase   string      `json:"phase"`
	PID     int         `json:"pid"`
	Host    string      `json:"host"`
	Silent  string      `json:"silent,omitempty"`
	Seen    *time.Time  `json:"seen,omitempty"`
	Load    *statusLoad `json:"load,omitempty"`
	Message string      `json:"message,omitempty"`
}

type statusLoad struct {
	Served       int64   `json:"served"`
	InFlight     int     `json:"in_flight"`
	Sessions     int     `json:"sessions"`
	Transactions int     `json:"transactions"`
	P50          float64 `json:"p50_seconds"`
	P95          float64 `json:"p95_seconds"`
	P99          float64 `json:"p99_seconds"`
	MemoryBytes  int64   `json:"memory_bytes"`
}

// document describes what was seen for programs. Without state all of it is empty.
func (s seen) document(serves []presence) statusDocument {
	d := statusDocument{
		FormatVersion: plan.FormatVersion, QodVersion: version,
		Serves: []statusServe{}, Objects: []statusObject{}, Pools: []statusPool{},
	}
	for _, s := range serves {
		d.Serves = append(d.Serves, statusServe{PID: s.PID, Flight: s.Flight, HTTP: s.HTTP})
	}
	if s.snap == nil {
		return d
	}
	d.Revision = int64(s.snap.Revision)
	for _, o := range s.snap.Objects {
		if o.Status.Phase != "" || o.Tombstone {
			d.Objects = append(d.Objects, statusObject{
				Kind: o.Kind.Name, Object: o.Addr().Path, ID: o.ID, Deleting: o.Tombstone, Status: o.Status,
			})
		}
		if o.Kind.Name == "pool" {
			d.Pools = append(d.Pools, s.pool(o))
		}
	}
	return d
}

func (s seen) pool(o store.Object) statusPool {
	p := statusPool{Object: o.Addr().Path, ID: o.ID, Nodes: []statusNode{}}
	for _, row := range s.rows {
		if row.PoolID != o.ID {
			continue
		}
		r := s.reports[row.ID]
		n := statusNode{ID: row.ID, Role: row.Role, Phase: r.phase(row), PID: row.PID, Host: row.Host, Message: row.Reason}
		if !row.Seen.IsZero() {
			n.Seen = &row.Seen
		}
		if r.err != nil {
			n.Silent = told(r.err).Error()
			p.Nodes = append(p.Nodes, n)
			continue
		}
		if n.Phase == string(backend.Serving) {
			p.Serving++
			n.Message = ""
		}
		n.Load = &statusLoad{
			Served: r.Served, InFlight: r.InFlight, Sessions: r.Sessions, Transactions: r.Transactions,
			P50: r.P50.Seconds(), P95: r.P95.Seconds(), P99: r.P99.Seconds(), MemoryBytes: r.MemoryBytes,
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

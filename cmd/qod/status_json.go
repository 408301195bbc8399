package main

import (
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/runtime/backend"
)

func servesOf(serves []presence) []api.StatusServe {
	out := []api.StatusServe{}
	for _, s := range serves {
		out = append(out, api.StatusServe{PID: s.PID, Flight: s.Flight, HTTP: s.HTTP})
	}
	return out
}

// document describes what was seen for programs. Without state all of it is empty.
func (s seen) document(serves []presence) api.Status {
	d := api.Status{
		FormatVersion: plan.FormatVersion, QodVersion: version,
		Serves: servesOf(serves), Objects: []api.StatusObject{}, Pools: []api.StatusPool{},
	}
	if s.snap == nil {
		return d
	}
	d.Revision = int64(s.snap.Revision)
	for _, o := range s.snap.Objects {
		if o.Status.Phase != "" || o.Tombstone {
			d.Objects = append(d.Objects, api.StatusObject{
				Kind: o.Kind.Name, Object: o.Addr().Path, ID: o.ID, Deleting: o.Tombstone, Status: o.Status,
			})
		}
		if o.Kind.Name == "pool" {
			d.Pools = append(d.Pools, s.pool(o))
		}
	}
	return d
}

func (s seen) pool(o store.Object) api.StatusPool {
	p := api.StatusPool{Object: o.Addr().Path, ID: o.ID, Nodes: []api.StatusNode{}}
	for _, row := range s.rows {
		if row.PoolID != o.ID {
			continue
		}
		r := s.reports[row.ID]
		n := api.StatusNode{ID: row.ID, Role: row.Role, Phase: r.phase(row), PID: row.PID, Host: row.Host, Message: row.Reason}
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
		n.Load = &api.StatusLoad{
			Served: r.Served, InFlight: r.InFlight, Sessions: r.Sessions, Transactions: r.Transactions,
			P50: r.P50.Seconds(), P95: r.P95.Seconds(), P99: r.P99.Seconds(), MemoryBytes: r.MemoryBytes,
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

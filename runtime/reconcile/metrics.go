package reconcile

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/qod-io/qod/runtime/backend"
)

// collector reads the loop when it is scraped, so no series outlives its pool or node.
type collector struct{ l *Loop }

func poolNodes() *prometheus.Desc {
	return prometheus.NewDesc("pool_nodes", "Nodes of a pool by phase.", []string{"tenant", "pool", "phase"}, nil)
}

func nodeHealthy() *prometheus.Desc {
	return prometheus.NewDesc("node_healthy", "Whether a node takes statements.", []string{"tenant", "pool", "node"}, nil)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- poolNodes()
	ch <- nodeHealthy()
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	type name struct{ tenant, pool string }
	counts := map[name]map[backend.Phase]int{} // a deleted pool may have the name of a new one
	for _, p := range c.l.pools {
		counts[name{p.tenant, p.name}] = map[backend.Phase]int{}
	}
	for _, m := range c.l.members {
		p := c.l.pools[m.node.PoolID]
		if p == nil || m.phase == backend.Gone {
			continue
		}
		counts[name{p.tenant, p.name}][m.phase]++
		healthy := 0.0
		if m.phase == backend.Serving {
			healthy = 1
		}
		ch <- gauge(nodeHealthy(), healthy, p.tenant, p.name, m.node.ID)
	}
	for n, count := range counts {
		for _, phase := range []backend.Phase{backend.Starting, backend.Serving, backend.Quarantined, backend.Draining} {
			ch <- gauge(poolNodes(), float64(count[phase]), n.tenant, n.pool, string(phase))
		}
	}
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "") // the one thing that makes a label invalid
	}
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

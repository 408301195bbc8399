package edge

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/sqltext"
)

// Record is one executed or refused statement, for history.
type Record struct {
	ID, Tenant, Pool, User, Node string
	SQL                          string // literals replaced, cut to 2,000 bytes
	Class                        string // read, write, ddl, transaction or other
	Status                       string // ok, denied, no_pool, no_node, pin_lost, transient, permanent, cancelled or timeout
	Error                        string // what the client was told
	Started                      time.Time
	Duration                     time.Duration
	Rows, Bytes                  int64 // as far as known
}

const maxSQL = 2000

// record makes the statement's row, if this call is the one that counts.
func (c *call) record(o outcome, f *failure) {
	c.audited(o, f)
	if !c.counts(o, f) {
		return
	}
	r := Record{
		ID: c.statement, Tenant: c.access.Tenant, Pool: c.access.Pool, User: c.access.UserName, Node: c.node,
		SQL: storable(sqltext.Redact(c.request.sql, maxSQL)), Class: classWord(c.class(o)), Status: statusOK,
		Started: c.started, Duration: time.Since(c.started), Rows: o.rows, Bytes: o.bytes,
	}
	if c.access.Pool == "" {
		r.Tenant, r.Pool, r.User = c.refusedAt()
	}
	if f != nil {
		r.Status, r.Error = f.status, storable(cut(f.text, maxMessage))
	}
	m := c.edge.metrics
	m.statements.WithLabelValues(c.access.Tenant, c.access.Pool, r.Status).Inc()
	if c.access.Pool != "" {
		m.duration.WithLabelValues(r.Tenant, r.Pool).Observe(r.Duration.Seconds())
	}
	c.edge.note(r)
}

// refusedAt says where a call that may enter no pool is recorded: in the history of its user's own
// tenant, whatever it asked for. A name that only the client vouches for is left out unless it is plain.
func (c *call) refusedAt() (tenant, pool, user string) {
	d := c.edge.directory.Current()
	tenant, user = d.Tenant(c.who.user), d.Name(c.who.user)
	if (c.who.tenant == "" || c.who.tenant == tenant) && access.Plain(c.who.pool) {
		pool = c.who.pool
	}
	return tenant, pool, user
}

// storable takes out what Postgres does not take as text.
func storable(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
}

func (c *call) counts(o outcome, f *failure) bool {
	switch c.request.counting {
	case onEnd:
		return true
	case onFailure:
		return f != nil
	case unlessRead:
		return f != nil || !isRead(c.class(o))
	}
	return false
}

// metrics has labels only for pools that the caller may enter: a stranger cannot make new ones.
type metrics struct {
	statements *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	inFlight   *prometheus.GaugeVec
	panics     prometheus.Counter
	suppressed prometheus.Counter
}

func newMetrics(r prometheus.Registerer, p *pins) (*metrics, error) {
	m := &metrics{
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "statements_total", Help: "Statements that ended, by how they did.",
		}, []string{"tenant", "pool", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "statement_duration_seconds", Help: "Time from a statement's arrival to its end.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 12),
		}, []string{"tenant", "pool"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "node_in_flight", Help: "Calls that this edge has out to a node.",
		}, []string{"tenant", "pool", "node"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "flightsql_panics_total", Help: "Calls that ended in a panic of the edge.",
		}),
		suppressed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "audit_suppressed_total", Help: "Logins and refusals that were one too many of their user in a minute for the audit.",
		}),
	}
	collectors := []prometheus.Collector{
		m.statements, m.duration, m.inFlight, m.panics, m.suppressed,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "flightsql_sessions_active", Help: "Sessions used in the last 30 minutes, or with state on a node.",
		}, func() float64 { active, _ := p.count(); return float64(active) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "flightsql_sessions_in_transaction", Help: "Sessions with an open transaction.",
		}, func() float64 { _, open := p.count(); return float64(open) }),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

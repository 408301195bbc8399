package node

import (
	"context"
	"sync"
)

// warmConns is how many clean connections are kept: opening one costs a round trip to Postgres.
const warmConns = 8

// pool hands out clean connections: in the lake's default schema, with nothing set or left on them.
type pool struct {
	engine *engine
	home   string // the statement that enters the default schema

	mu     sync.Mutex
	warm   []*conn
	closed bool
}

func (p *pool) get(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	if n := len(p.warm); n > 0 {
		c := p.warm[n-1]
		p.warm = p.warm[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	c, err := p.engine.connect()
	if err != nil {
		return nil, err
	}
	if err := c.run(ctx, p.home); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// put takes a connection back. Only one that is clean is kept: no transaction is open on it, and no
// statement ran on it that leaves anything.
func (p *pool) put(c *conn, clean bool) {
	p.mu.Lock()
	if clean && !p.closed && len(p.warm) < warmConns {
		p.warm = append(p.warm, c)
		c = nil
	}
	p.mu.Unlock()
	if c != nil {
		c.close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	warm := p.warm
	p.warm, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range warm {
		c.close()
	}
}

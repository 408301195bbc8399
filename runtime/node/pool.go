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
	root   string // the one that enters the lake when that schema was dropped
	plans  *latch

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
	if err := p.enter(ctx, c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// enter puts a connection into the default schema, or into the lake's own when there is none: then the
// connection is not kept.
func (p *pool) enter(ctx context.Context, c *conn) error {
	plan := p.plans.grip()
	if err := plan.share(ctx); err != nil {
		return err
	}
	defer plan.release()
	err := c.run(ctx, p.home)
	if err == nil || asFault(err).kind != "Catalog" {
		return err
	}
	c.strayed = true // so that somebody can make the schema again
	if c.run(ctx, p.root) != nil {
		return err
	}
	return nil
}

// put takes a connection back. Only one that is clean is kept: no transaction is open on it, and no
// statement ran on it that leaves anything.
func (p *pool) put(c *conn, clean bool) {
	p.mu.Lock()
	if clean && !c.strayed && !p.closed && len(p.warm) < warmConns {
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

package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
)

// stillEvery is how often people are told that something takes long.
const stillEvery = 10 * time.Second

// progress prints how far a convergence is: what is pending whenever that changes, and every ten seconds
// what still is.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
	last  []plan.Finding

	stop, done chan struct{}
}

func (a *app) newProgress() *progress {
	p := &progress{out: a.stdout, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *progress) run() {
	defer close(p.done)
	tick := time.NewTicker(stillEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			p.still()
		}
	}
}

// Close ends the printing.
func (p *progress) Close() {
	close(p.stop)
	<-p.done
}

// pending prints what is new or different among what is pending.
func (p *progress) pending(findings []plan.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range findings {
		if !slices.Contains(p.last, f) {
			fmt.Fprintf(p.out, "  %s: %s [%s]\n", f.Addr, f.Message, time.Since(p.start).Round(100*time.Millisecond))
		}
	}
	p.last = findings
}

func (p *progress) held(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "  Waiting for another process: %s\n", err)
}

func (p *progress) still() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.last {
		fmt.Fprintf(p.out, "Still %s... [%s elapsed]\n", engine.Doing(f), time.Since(p.start).Round(time.Second))
	}
}

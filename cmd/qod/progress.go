package main

import (
	"sync"
	"time"

	"github.com/qod-io/qod/engine/plan"
)

// stillEvery is how often it is told that something takes long.
const stillEvery = 10 * time.Second

// progress tells how far a convergence is: what is pending whenever that changes, and every ten seconds
// what still is.
type progress struct {
	mu    sync.Mutex // of the teller too
	tell  teller
	start time.Time
	last  []plan.Finding

	stop, done chan struct{}
}

func newProgress(tell teller) *progress {
	p := &progress{tell: tell, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
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
			p.mu.Lock()
			p.tell.still(p.last, time.Since(p.start))
			p.mu.Unlock()
		}
	}
}

// Close ends the telling.
func (p *progress) Close() {
	close(p.stop)
	<-p.done
}

func (p *progress) committed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell.committed()
}

func (p *progress) pending(all []plan.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell.pending(all, time.Since(p.start))
	p.last = all
}

func (p *progress) held(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell.held(err)
}

package backend

import (
	"sync"
	"time"
)

// Member is a node as routing sees it.
type Member struct {
	Node
	Incarnation string // of the process that answered the last good probe
	Phase       Phase
	Probed      time.Time // the last good probe; zero before the first
}

// Snapshot is every node of every pool at one moment. It must not be changed.
type Snapshot struct {
	Pools map[string][]Member // by pool id, each sorted by node id
}

// Fleet hands the current snapshot from the one that makes it to those that route by it, and their
// suspicions back. The zero Fleet is empty and ready to use.
type Fleet struct {
	mu       sync.Mutex
	current  *Snapshot
	changed  chan struct{}
	suspects chan string
}

// Current returns the latest snapshot, and a channel that is closed when a later one is there.
func (f *Fleet) Current() (*Snapshot, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	return f.current, f.changed
}

// Publish makes s the current snapshot.
func (f *Fleet) Publish(s *Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	f.current = s
	close(f.changed)
	f.changed = make(chan struct{})
}

// Suspect asks for a probe of the node now, since a call to it failed. It never blocks.
func (f *Fleet) Suspect(node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	select {
	case f.suspects <- node:
	default: // a full queue means that probes are on their way
	}
}

// Suspects is read by the one that probes.
func (f *Fleet) Suspects() <-chan string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.init()
	return f.suspects
}

func (f *Fleet) init() {
	if f.changed == nil {
		f.current = &Snapshot{}
		f.changed = make(chan struct{})
		f.suspects = make(chan string, 64)
	}
}

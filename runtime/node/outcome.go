package node

import (
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	// outcomeTTL is how long the result of a statement that ran once can be fetched, again and again.
	outcomeTTL = 5 * time.Minute
	// maxOutcomes and maxOutcomeBytes bound what is kept; the oldest go first.
	maxOutcomes     = 10_000
	maxOutcomeBytes = 256 << 20
)

// outcome is how a statement that ran once ended. It does not change after it was kept.
type outcome struct {
	id      string
	session string
	class   wire.Class
	schema  *arrow.Schema
	batches []arrow.RecordBatch // in Go's memory
	rows    int64               // changed, or returned
	err     *fault
	ended   time.Time
	size    int64
	fetched bool
}

// status is the outcome in a word.
func (o *outcome) status() string {
	if o.err == nil {
		return "ok"
	}
	return o.err.code.String()
}

// outcomes keeps what statements answered, by statement id. A statement that arrives again under an id
// that is kept is not run again.
type outcomes struct {
	mu    sync.Mutex
	byID  map[string]*outcome
	order []*outcome
	bytes int64
}

func (k *outcomes) keep(o *outcome) {
	for _, b := range o.batches {
		o.size += sizeOf(b)
	}
	o.ended = time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[o.id] = o
	k.order = append(k.order, o)
	k.bytes += o.size
	k.expire(o.ended)
}

func (k *outcomes) expire(now time.Time) {
	for len(k.order) > 0 {
		o := k.order[0]
		tooMany := len(k.order) > 1 && (len(k.order) > maxOutcomes || k.bytes > maxOutcomeBytes)
		if now.Sub(o.ended) < outcomeTTL && !tooMany {
			return
		}
		k.order = k.order[1:]
		k.bytes -= o.size
		if k.byID[o.id] == o {
			delete(k.byID, o.id)
		}
	}
}

// sweep drops what is too old.
func (k *outcomes) sweep(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(now)
}

// find returns the outcome of a statement of that session, or nil.
func (k *outcomes) find(id, session string) *outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(time.Now())
	o := k.byID[id]
	if o == nil || o.session != session || time.Since(o.ended) > outcomeTTL {
		return nil
	}
	return o
}

// fetch is find, and notes that the client has come for it.
func (k *outcomes) fetch(id, session string) *outcome {
	o := k.find(id, session)
	if o != nil {
		k.mu.Lock()
		o.fetched = true
		k.mu.Unlock()
	}
	return o
}

// unfetched says whether a result younger than age waits for its client.
func (k *outcomes) unfetched(age time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.order) - 1; i >= 0 && time.Since(k.order[i].ended) < age; i-- {
		if o := k.order[i]; !o.fetched && len(o.batches) > 0 {
			return true
		}
	}
	return false
}

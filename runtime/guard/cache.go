package guard

import (
	"container/list"
	"sync"
)

const (
	maxCachedText = 64 << 10 // bytes of one statement
	maxCacheBytes = 16 << 20 // of texts
)

// cache keeps what was found out about statements, by their whole text: an equal hash is not enough to
// let one run. What depends on permissions has them in its key, so nothing in it grows stale.
type cache[V any] struct {
	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	order   *list.List // of *cached[V], latest use first
	bytes   int
	limit   int
}

// cacheKey is a statement and, for what depends on it, the identity of the scope.
type cacheKey struct{ catalog, sql, scope string }

type cached[V any] struct {
	key   cacheKey
	value V
	size  int
}

func newCache[V any](limit int) *cache[V] {
	return &cache[V]{entries: map[cacheKey]*list.Element{}, order: list.New(), limit: limit}
}

func (c *cache[V]) get(key cacheKey) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached[V]).value, true
}

// put keeps a value whose own texts have so many bytes.
func (c *cache[V]) put(key cacheKey, value V, size int) {
	if len(key.sql) > maxCachedText {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[key]; ok {
		return
	}
	size += len(key.sql) + len(key.scope)
	c.entries[key] = c.order.PushFront(&cached[V]{key: key, value: value, size: size})
	c.bytes += size
	for c.order.Len() > c.limit || c.bytes > maxCacheBytes {
		last := c.order.Back()
		old := c.order.Remove(last).(*cached[V])
		delete(c.entries, old.key)
		c.bytes -= old.size
	}
}

package guard

import (
	"container/list"
	"sync"
)

const (
	maxCachedText = 64 << 10 // bytes of one statement
	maxCacheBytes = 16 << 20 // of texts
)

// cache keeps what statements are, by their whole text: an equal hash is not enough to let one run. It
// holds no permissions, so nothing in it grows stale.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	order   *list.List // of *cached, latest use first
	bytes   int
	limit   int
}

type cacheKey struct{ catalog, sql string }

type cached struct {
	key      cacheKey
	analysis *analysis
}

func newCache(limit int) *cache {
	return &cache{entries: map[cacheKey]*list.Element{}, order: list.New(), limit: limit}
}

func (c *cache) get(catalog, sql string) (*analysis, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[cacheKey{catalog, sql}]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).analysis, true
}

func (c *cache) put(catalog, sql string, a *analysis) {
	if len(sql) > maxCachedText {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := cacheKey{catalog, sql}
	if _, ok := c.entries[key]; ok {
		return
	}
	c.entries[key] = c.order.PushFront(&cached{key: key, analysis: a})
	c.bytes += len(sql)
	for c.order.Len() > c.limit || c.bytes > maxCacheBytes {
		last := c.order.Back()
		old := c.order.Remove(last).(*cached)
		delete(c.entries, old.key)
		c.bytes -= len(old.key.sql)
	}
}

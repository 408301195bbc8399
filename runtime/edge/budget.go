package edge

import "sync"

const (
	budgetShare = 0.1 // of a pool's statements may be retried
	budgetMost  = 20  // retries that may be saved up
)

// budgets limit the retries of each pool, so that a fault does not double the load that caused it.
type budgets struct {
	mu    sync.Mutex
	saved map[string]float64 // pool to retries; absent: as many as can be saved
}

func (b *budgets) earn(pool string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n, ok := b.saved[pool]; ok {
		b.saved[pool] = min(n+budgetShare, budgetMost)
	}
}

func (b *budgets) spend(pool string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.saved[pool]
	if !ok {
		n = budgetMost
	}
	if n < 1 {
		return false
	}
	b.saved[pool] = n - 1
	return true
}

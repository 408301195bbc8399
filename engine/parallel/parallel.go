// Package parallel has the same work done on many things on all processors. What it is done on must not
// depend on each other.
package parallel

import (
	"runtime"
	"sync"
)

// Do has work done on n things: each call is to do every step-th of them, from first on. There are as many calls
// at once as there are processors, but no more than leave each one a share of that many things. Do returns
// when all are done.
func Do(n, share int, work func(first, step int)) {
	step := min(runtime.GOMAXPROCS(0), 1+n/share)
	if step == 1 {
		work(0, 1)
		return
	}
	var group sync.WaitGroup
	for first := range step {
		group.Go(func() { work(first, step) })
	}
	group.Wait()
}

// Each is Do for work that keeps nothing from one thing to the next.
func Each(n, share int, work func(i int)) {
	Do(n, share, func(first, step int) {
		for i := first; i < n; i += step {
			work(i)
		}
	})
}

package plan

import (
	"runtime"
	"sync"
)

// enoughToShare is how many objects are worth a processor of their own.
const enoughToShare = 256

// spread has work done on all processors: each call is to do every step-th of n things, from first on. It
// returns when all are done.
func spread(n int, work func(first, step int)) {
	step := min(runtime.GOMAXPROCS(0), 1+n/enoughToShare)
	var group sync.WaitGroup
	for first := range step {
		group.Go(func() { work(first, step) })
	}
	group.Wait()
}

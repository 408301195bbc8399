package parallel_test

import (
	"sync/atomic"
	"testing"

	"github.com/qod-io/qod/engine/parallel"
)

func TestEachReachesEverythingOnce(t *testing.T) {
	for _, n := range []int{0, 1, 7, 64, 1000} {
		done := make([]atomic.Int32, n)
		parallel.Each(n, 8, func(i int) { done[i].Add(1) })
		for i := range done {
			if got := done[i].Load(); got != 1 {
				t.Fatalf("of %d, %d was done %d times", n, i, got)
			}
		}
	}
}

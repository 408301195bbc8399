package test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rss returns the resident memory of a process in MiB.
func rss(t testing.TB, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kib, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatalf("process %d has no VmRSS", pid)
	return 0
}

// A slow reader of 20 million rows costs neither the node nor serve memory.
func TestSlowReader(t *testing.T) {
	const most = 150 // MiB above idle
	i, s := shared(t)
	c := i.login(t, s.Flight, "analyst")
	c.run(t, "SELECT 1")
	pids := []int{s.PID}
	for _, node := range i.nodePIDs(t) {
		var pid int
		if _, err := fmt.Sscan(node, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	idle := map[int]int{}
	for _, pid := range pids {
		idle[pid] = rss(t, pid)
	}
	info, err := c.Execute(c.ctx, "SELECT range AS a, range * 2 AS b, range::VARCHAR AS c FROM range(20000000)")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.DoGet(c.ctx, info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	peak := map[int]int{}
	tick := time.NewTicker(5 * time.Millisecond) // the reader's pace: about 50,000 rows a tick
	defer tick.Stop()
	var rows int64
	for r.Next() {
		rows += r.RecordBatch().NumRows()
		<-tick.C
		for _, pid := range pids {
			peak[pid] = max(peak[pid], rss(t, pid))
		}
	}
	if r.Err() != nil || rows != 20_000_000 {
		t.Errorf("read %d rows: %v", rows, r.Err())
	}
	for _, pid := range pids {
		t.Logf("process %d: %d MiB idle, %d MiB at most", pid, idle[pid], peak[pid])
		if peak[pid]-idle[pid] > most {
			t.Errorf("process %d grew from %d to %d MiB: %d above idle are allowed", pid, idle[pid], peak[pid], most)
		}
	}
}

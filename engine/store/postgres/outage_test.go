package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/test/pgtest"
)

// TestLostAnswerToCommit breaks the connection after Postgres got the COMMIT.
func TestLostAnswerToCommit(t *testing.T) {
	url := pgtest.Database(t)
	direct := openAt(t, url)
	p := startProxy(t, url)
	s := openAt(t, p.url)
	plan := uuid.NewString()
	p.dropAnswerTo("commit\x00")
	rev, err := s.Commit(deadline(t, 20*time.Second), store.Change{
		Writes: []store.Write{storetest.New(t, "tenant", `{"name":"acme"}`)}, PlanID: plan,
	})
	if err != nil || rev != 1 {
		t.Fatalf("commit: revision %d, %v; want 1", rev, err)
	}
	if p.drops() != 1 {
		t.Fatal("no answer was dropped: this test shows nothing")
	}
	conn := session(t, url)
	if n := one[int](t, conn, `SELECT count(*) FROM qodstate_apply`); n != 1 {
		t.Errorf("%d apply records, want 1", n)
	}
	if got := tenants(t, direct); got != "acme" {
		t.Errorf("tenants: %s", got)
	}
}

// TestLostStatement breaks the connection in the middle of the transaction.
func TestLostStatement(t *testing.T) {
	url := pgtest.Database(t)
	p := startProxy(t, url)
	s := openAt(t, p.url)
	p.dropAnswerTo("INSERT INTO qodstate_object")
	rev, err := s.Commit(deadline(t, 20*time.Second), store.Change{Writes: []store.Write{storetest.New(t, "tenant", `{"name":"acme"}`)}})
	if err != nil || rev != 1 || p.drops() != 1 {
		t.Fatalf("commit: revision %d, %v, %d drops; want 1 and 1", rev, err, p.drops())
	}
	if got := tenants(t, s); got != "acme" {
		t.Errorf("tenants: %s", got)
	}
}

func TestWritesWaitForPostgres(t *testing.T) {
	url := pgtest.Database(t)
	p := startProxy(t, url)
	s := openAt(t, p.url)
	tenant := storetest.New(t, "tenant", `{"name":"acme"}`)
	writes := map[string]func(context.Context) error{
		"commit": func(ctx context.Context) error {
			_, err := s.Commit(ctx, store.Change{Writes: []store.Write{tenant}})
			return err
		},
		"put node": func(ctx context.Context) error { return s.PutNode(ctx, store.Node{ID: "n"}) },
		"add key": func(ctx context.Context) error {
			_, err := s.AddKey(ctx, store.Key{ID: 1, Sealed: store.Sealed("x"), Created: time.Now()})
			return err
		},
		"statements": func(ctx context.Context) error {
			return s.AppendStatements(ctx, []store.Statement{{ID: "s", Started: time.Now()}})
		},
	}
	for name, write := range writes {
		p.cut(true)
		short := deadline(t, 300*time.Millisecond)
		if err := write(short); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "password=") {
			t.Errorf("%s: got %v, want the deadline", name, err)
		}
		ended := make(chan error, 1)
		before := p.refusals()
		go func() { ended <- write(deadline(t, 20*time.Second)) }()
		soon(t, 10*time.Second, name+" keeps trying", func() bool { return p.refusals() >= before+4 })
		select {
		case err := <-ended:
			t.Errorf("%s: ended while Postgres was away: %v", name, err)
		default:
		}
		p.cut(false)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	start := time.Now()
	p.cut(true)
	if _, err := s.Snapshot(t.Context()); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("snapshot while Postgres is away: %v after %s", err, time.Since(start))
	}
	p.cut(false)
	// A stale connection in the pool is no reason to fail.
	if got := tenants(t, s); got != "acme" {
		t.Errorf("tenants: %s", got)
	}
}

// TestCutsAtRandom breaks connections all the time: each commit happens once. One commit is cut off so many
// times at most: a machine that is slow to connect would never get to its end.
func TestCutsAtRandom(t *testing.T) {
	url := pgtest.Database(t)
	p := startProxy(t, url)
	s := openAt(t, p.url)
	const commits, most = 150, 5
	var cuts atomic.Int64 // of the present commit
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(50+rand.N(100)) * time.Millisecond):
				if cuts.Add(1) <= most {
					p.cut(false)
				}
			}
		}
	}()
	for i := range commits {
		cuts.Store(0)
		rev, err := s.Commit(deadline(t, 30*time.Second), store.Change{
			Writes: []store.Write{storetest.New(t, "tenant", fmt.Sprintf(`{"name":"t%d"}`, i))},
		})
		if err != nil || rev != store.Revision(i+1) {
			t.Fatalf("commit %d: revision %d, %v", i+1, rev, err)
		}
	}
	close(stop)
	<-stopped
	conn := session(t, url)
	if n := one[int](t, conn, `SELECT count(*) FROM qodstate_apply`); n != commits {
		t.Errorf("%d apply records, want %d", n, commits)
	}
	if n := len(strings.Fields(tenants(t, s))); n != commits {
		t.Errorf("%d tenants, want %d", n, commits)
	}
}

// TestWatchSurvives drops notifications, cuts the connection, and takes Postgres away.
func TestWatchSurvives(t *testing.T) {
	url := pgtest.Database(t)
	p := startProxy(t, url)
	s := openAt(t, p.url)
	conn := session(t, url)
	var last atomic.Int64
	last.Store(-1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(ctx, func(r store.Revision) { last.Store(int64(r)) }) }()
	sees := func(step string, want int64, limit time.Duration) {
		t.Helper()
		took := soon(t, limit, step, func() bool { return last.Load() == want })
		t.Logf("%s: seen after %s", step, took.Round(time.Millisecond))
	}
	sees("start", 0, 5*time.Second)
	// Nobody notifies of this one.
	sql(t, conn, `UPDATE qodstate_revision SET revision = 1`)
	sees("without a notification", 1, time.Second)
	p.cut(false)
	sql(t, conn, `UPDATE qodstate_revision SET revision = 2`)
	sees("connection cut", 2, 2*time.Second)
	p.cut(true)
	sql(t, conn, `UPDATE qodstate_revision SET revision = 3`)
	soon(t, 10*time.Second, "watch keeps trying", func() bool { return p.refusals() >= 4 })
	if got := last.Load(); got != 2 {
		t.Errorf("revision %d was seen through a cut connection", got)
	}
	p.cut(false)
	sees("Postgres came back", 3, 5*time.Second)
	sql(t, conn, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	sql(t, conn, `UPDATE qodstate_revision SET revision = 4`)
	sees("all sessions ended", 4, 3*time.Second)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("watch ended with %v", err)
	}
}

// TestNotificationComesAtOnce shows that polling is not what makes changes fast.
func TestNotificationComesAtOnce(t *testing.T) {
	s := openAt(t, pgtest.Database(t))
	seen := make(chan store.Revision, 16)
	go func() { _ = s.Watch(t.Context(), func(r store.Revision) { seen <- r }) }()
	<-seen
	var fast int
	for range 5 {
		start := time.Now()
		if _, err := s.Commit(t.Context(), store.Change{}); err != nil {
			t.Fatal(err)
		}
		<-seen
		if time.Since(start) < 250*time.Millisecond {
			fast++
		}
	}
	if fast < 4 {
		t.Errorf("%d of 5 commits were seen within 250 ms, want 4", fast)
	}
}

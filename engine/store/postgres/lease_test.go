package postgres_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

// holderVariable makes the test binary a process that holds a lease. The database's URL, which has a
// password in it, is the first line of its input; each further line is the name of a tenant to commit.
const holderVariable = "QOD_STORE_TEST_HOLDER"

func holdLease(in io.Reader, out io.Writer) int {
	ctx := context.Background()
	lines := bufio.NewScanner(in)
	lines.Scan()
	say := json.NewEncoder(out)
	s, err := postgres.Open(ctx, postgres.Config{URL: lines.Text()})
	if err != nil {
		_ = say.Encode(err.Error())
		return 1
	}
	defer s.Close()
	l, err := s.Acquire(ctx, "act", "the holder")
	if err != nil {
		_ = say.Encode(err.Error())
		return 1
	}
	_ = say.Encode(fmt.Sprint("term ", l.Term()))
	kind, _ := schema.Lookup("tenant")
	for lines.Scan() {
		spec, err := kind.Decode([]byte(`{"name":"` + lines.Text() + `"}`))
		if err == nil {
			_, err = s.Commit(ctx, store.Change{Lease: l, Writes: []store.Write{{ID: uuid.NewString(), Kind: kind, Spec: spec}}})
		}
		switch {
		case errors.Is(err, store.ErrTermOver):
			_ = say.Encode("term over")
		case err != nil:
			_ = say.Encode(err.Error())
		default:
			_ = say.Encode("committed")
		}
	}
	return 0
}

// holder is such a process.
type holder struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *json.Decoder
}

func startHolder(t *testing.T, url string) *holder {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderVariable+"=1")
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &holder{t: t, cmd: cmd, in: in, out: json.NewDecoder(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h.ask(url, "term 1")
	return h
}

func (h *holder) tell(line string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		h.t.Fatal(err)
	}
}

func (h *holder) hear(want string) {
	h.t.Helper()
	var got string
	if err := h.out.Decode(&got); err != nil {
		h.t.Fatal(err)
	}
	if got != want {
		h.t.Fatalf("the holder says %q, want %q", got, want)
	}
}

func (h *holder) ask(line, want string) {
	h.t.Helper()
	h.tell(line)
	h.hear(want)
}

func (h *holder) signal(s syscall.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.t.Fatal(err)
	}
}

// soon waits until f is true.
func soon(t *testing.T, limit time.Duration, what string, f func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !f() {
		if time.Since(start) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
		<-ticker.C
	}
	return time.Since(start)
}

func acquireSoon(t *testing.T, s *postgres.Store, limit time.Duration) store.Lease {
	t.Helper()
	var l store.Lease
	took := soon(t, limit, "lease is free", func() bool {
		var err error
		l, err = s.Acquire(t.Context(), "act", "the next")
		if err != nil && !errors.Is(err, store.ErrHeld) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Logf("lease was taken over after %s", took.Round(time.Millisecond))
	t.Cleanup(l.Release)
	return l
}

func wantHeld(t *testing.T, s *postgres.Store) {
	t.Helper()
	_, err := s.Acquire(t.Context(), "act", "the next")
	var held *store.HeldError
	if !errors.As(err, &held) || held.Holder != "the holder" {
		t.Fatalf("got %v, want a HeldError naming the holder", err)
	}
}

func tenants(t *testing.T, s *postgres.Store) string {
	t.Helper()
	snapshot, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range snapshot.Objects {
		names = append(names, o.Addr().Path)
	}
	return strings.Join(names, " ")
}

func commitUnder(t *testing.T, s *postgres.Store, l store.Lease, tenant string) error {
	t.Helper()
	_, err := s.Commit(deadline(t, 20*time.Second), store.Change{
		Lease: l, Writes: []store.Write{storetest.New(t, "tenant", `{"name":"`+tenant+`"}`)},
	})
	return err
}

const cutLease = `SELECT count(pg_terminate_backend(pid)) FROM pg_locks
WHERE locktype = 'advisory' AND classid = 7434084 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

func cut(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	if n := one[int](t, conn, cutLease); n != 1 {
		t.Fatalf("%d lease connections were cut, want 1", n)
	}
}

func TestLeaseOfAKilledProcessIsFree(t *testing.T) {
	url := pgtest.Database(t)
	s := openAt(t, url)
	h := startHolder(t, url)
	h.ask("first", "committed")
	wantHeld(t, s)
	h.signal(syscall.SIGKILL)
	l := acquireSoon(t, s, 3*time.Second)
	if l.Term() != 2 {
		t.Errorf("term is %d, want 2", l.Term())
	}
	if err := commitUnder(t, s, l, "second"); err != nil {
		t.Error(err)
	}
	if got := tenants(t, s); got != "first second" {
		t.Errorf("tenants: %s", got)
	}
}

// TestFrozenHolderCannotCommit stops the holder, lets another take over, and wakes it up.
func TestFrozenHolderCannotCommit(t *testing.T) {
	url := pgtest.Database(t)
	s := openAt(t, url)
	conn := session(t, url)
	h := startHolder(t, url)
	h.ask("first", "committed")
	h.signal(syscall.SIGSTOP)
	wantHeld(t, s) // a frozen process still holds it: its session lives
	cut(t, conn)
	l := acquireSoon(t, s, 3*time.Second)
	h.tell("second")
	if err := commitUnder(t, s, l, "third"); err != nil {
		t.Error(err)
	}
	h.signal(syscall.SIGCONT)
	h.hear("term over")
	h.ask("fourth", "term over")
	if got := tenants(t, s); got != "first third" {
		t.Errorf("tenants: %s", got)
	}
}

// TestFrozenHolderLosesItsSession shows that nobody has to cut a frozen holder off by hand.
func TestFrozenHolderLosesItsSession(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := openAt(t, url)
	h := startHolder(t, url)
	h.signal(syscall.SIGSTOP)
	l := acquireSoon(t, s, 15*time.Second)
	h.tell("late")
	h.signal(syscall.SIGCONT)
	h.hear("term over")
	if err := commitUnder(t, s, l, "mine"); err != nil {
		t.Error(err)
	}
	if got := tenants(t, s); got != "mine" {
		t.Errorf("tenants: %s", got)
	}
}

// TestFrozenWriterLosesItsTransaction stops a process that holds the lock of all commits.
func TestFrozenWriterLosesItsTransaction(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	s := openAt(t, url)
	through := startProxy(t, url)
	frozen := openAt(t, through.url)
	through.freezeAt("INSERT INTO qodstate_apply")
	ended := make(chan error, 1)
	go func() { ended <- commitUnder(t, frozen, nil, "frozen") }()
	<-through.frozen
	start := time.Now()
	_, err := s.Commit(deadline(t, 40*time.Second), store.Change{Writes: []store.Write{storetest.New(t, "tenant", `{"name":"acme"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the lock was free after %s", time.Since(start).Round(time.Millisecond))
	through.thaw()
	<-ended
	if got := tenants(t, s); !strings.HasPrefix(got, "acme") {
		t.Errorf("tenants: %s", got)
	}
}

func TestCutLeaseIsNoticed(t *testing.T) {
	url := pgtest.Database(t)
	s := openAt(t, url)
	conn := session(t, url)
	l, err := s.Acquire(t.Context(), "act", "me")
	if err != nil {
		t.Fatal(err)
	}
	cut(t, conn)
	select {
	case <-l.Done():
	case <-time.After(3 * time.Second):
		t.Fatal("the lease was not lost within 3 s")
	}
	if err := commitUnder(t, s, l, "acme"); !errors.Is(err, store.ErrTermOver) {
		t.Errorf("commit: got %v, want ErrTermOver", err)
	}
	l.Release()
	acquireSoon(t, s, time.Second).Release()
}

// TestUnnoticedLossIsRefused takes the lease over before its holder has looked.
func TestUnnoticedLossIsRefused(t *testing.T) {
	url := pgtest.Database(t)
	s, other := openAt(t, url), openAt(t, url)
	conn := session(t, url)
	l, err := s.Acquire(t.Context(), "act", "me")
	if err != nil {
		t.Fatal(err)
	}
	cut(t, conn)
	acquireSoon(t, other, time.Second)
	if err := commitUnder(t, s, blind{l}, "acme"); !errors.Is(err, store.ErrTermOver) {
		t.Errorf("commit: got %v, want ErrTermOver", err)
	}
	if err := s.SetStatus(t.Context(), uuid.NewString(), store.Status{}, blind{l}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("status of nothing: got %v, want ErrNotFound", err)
	}
}

// blind is a lease whose holder never notices that it is lost.
type blind struct{ store.Lease }

func (blind) Done() <-chan struct{} { return nil }

func TestCloseGivesLeasesUp(t *testing.T) {
	url := pgtest.Database(t)
	s, other := openAt(t, url), openAt(t, url)
	l, err := s.Acquire(t.Context(), "act", "me")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	<-l.Done()
	next, err := other.Acquire(t.Context(), "act", "you")
	if err != nil {
		t.Fatal(err)
	}
	next.Release()
}

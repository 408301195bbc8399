package test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/qod-io/qod/test/attacks"
)

// TestAttacks runs the statements of attacks/*.txtar as a user who may see a part of a lake, through a
// real edge, and looks for what that user may not see in every byte that comes back.
func TestAttacks(t *testing.T) {
	i, s := besieged(t, binary(t))
	neighbour := i.processOf(t, "globex/vault")
	total := 0
	for _, section := range sections(t) {
		t.Run(section.Name, func(t *testing.T) {
			for _, session := range section.Sessions {
				i.attack(t, s, session)
				total += len(session)
			}
		})
	}
	if total < 200 {
		t.Errorf("%d attacks, want 200 at least", total)
	}
	i.unharmed(t, s)
	if now := i.processOf(t, "globex/vault"); now != neighbour {
		t.Errorf("the neighbour's node was %s and is %s", neighbour, now)
	}
}

func sections(t *testing.T) []attacks.Section {
	t.Helper()
	all, err := attacks.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// besieged is an installation of the world that is attacked, served by the binary.
func besieged(t *testing.T, bin string) (*installation, serving) {
	t.Helper()
	i := install(t, "")
	i.bin = bin
	configuration, err := attacks.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	i.writeFile(t, "main.qod.hcl", configuration)
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	statements, err := attacks.Lake()
	if err != nil {
		t.Fatal(err)
	}
	owner := i.login(t, s.Flight, "loader")
	for _, statement := range statements {
		owner.run(t, "%s", statement)
	}
	return i, s
}

// attack runs statements in a session of their own.
func (i *installation) attack(t *testing.T, s serving, session []attacks.Attack) {
	ear := &listener{}
	c := i.login(t, s.Flight, "analyst", grpc.WithStatsHandler(ear))
	for _, a := range session {
		ear.take()
		rows, err := c.within(time.Minute, a.SQL)
		if problem := judge(a.Verdict, rows, err); problem != "" {
			t.Errorf("%.2000s: %s", a.SQL, problem)
		}
		received := ear.take()
		for _, leak := range attacks.Leaks(received, a.SQL) {
			t.Errorf("%.2000s: the client received %q", a.SQL, leak)
		}
		if strings.Contains(received, i.root) {
			t.Errorf("%.2000s: the client received %s", a.SQL, i.root)
		}
		if err != nil {
			c.outlives(t, a.SQL)
		}
	}
}

// outlives asserts that the pool answers after an attack. One that cost the node has a new one by then; the
// manager waits longer each time, up to 30 seconds.
func (c *client) outlives(t *testing.T, sql string) {
	t.Helper()
	eventually(t, time.Minute, fmt.Sprintf("an answer after %.2000s", sql), func() bool {
		_, err := c.within(time.Minute, "SELECT 1")
		return status.Code(err) != codes.Unavailable
	})
}

// within runs a statement to its end.
func (c *client) within(limit time.Duration, sql string) (int64, error) {
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	bounded := &client{Client: c.Client, ctx: ctx}
	rows, _, err := bounded.query(sql)
	return rows, err
}

// judge says what is wrong with how a statement ended; nothing if it is as the verdict has it.
func judge(verdict string, rows int64, err error) string {
	count, counted := strings.CutPrefix(verdict, "rows ")
	switch {
	case verdict == "error" && err == nil:
		return "it runs"
	case verdict == "error" && status.Code(err) == codes.DeadlineExceeded && ctxEnded(err):
		return "it does not end"
	case verdict == "error":
		return ""
	case verdict == "denied" && status.Code(err) != codes.PermissionDenied:
		return fmt.Sprintf("not denied: %v", err)
	case verdict == "denied":
		return ""
	case err != nil:
		return err.Error()
	case counted && count != strconv.FormatInt(rows, 10):
		return fmt.Sprintf("%d rows, want %s", rows, count)
	case !counted && verdict != "ok":
		return "no such verdict: " + verdict
	}
	return ""
}

// ctxEnded reports whether the client gave up, and not the node.
func ctxEnded(err error) bool { return strings.Contains(err.Error(), context.DeadlineExceeded.Error()) }

// listener keeps all that a connection receives: messages, headers, trailers and statuses.
type listener struct {
	mu       sync.Mutex
	received strings.Builder
}

func (l *listener) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (l *listener) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (l *listener) HandleConn(context.Context, stats.ConnStats)                       {}

func (l *listener) HandleRPC(_ context.Context, s stats.RPCStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s := s.(type) {
	case *stats.InPayload:
		if m, ok := s.Payload.(proto.Message); ok {
			raw, err := proto.Marshal(m)
			if err != nil {
				raw = []byte("CANARY: a message that cannot be read")
			}
			l.received.Write(raw)
		}
	case *stats.InHeader:
		fmt.Fprintln(&l.received, s.Header)
	case *stats.InTrailer:
		fmt.Fprintln(&l.received, s.Trailer)
	case *stats.End:
		if s.Error != nil {
			fmt.Fprintln(&l.received, s.Error)
		}
	}
}

// take returns what was received since it was last called.
func (l *listener) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	received := l.received.String()
	l.received.Reset()
	return received
}

// unharmed shows that the attacks changed nothing of what they could not see.
func (i *installation) unharmed(t *testing.T, s serving) {
	owner := i.login(t, s.Flight, "loader")
	for statement, want := range map[string]string{
		"SELECT count(*) FROM orders": "6",
		"SELECT count(*) FROM orders WHERE note LIKE 'CANARY%' AND ssn LIKE 'CANARY%'": "3",
		"SELECT count(*) FROM salaries":          "2",
		"SELECT count(*) FROM accounts":          "2",
		"SELECT count(*) FROM hidden.members":    "2",
		"SELECT canary_column FROM canary_table": "CANARYVALUE",
		"SELECT count(*) FROM open_view":         "3",
		"SELECT count(*) FROM canary_view":       "2",
	} {
		if got := owner.value(t, statement); got != want {
			t.Errorf("%s is %s after the attacks, want %s", statement, got, want)
		}
	}
}

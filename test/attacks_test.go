package test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// TestAttacks runs the statements of attacks/*.txtar as a user who may see a part of a lake, through a
// real edge, and looks for what that user may not see in every byte that comes back.
func TestAttacks(t *testing.T) {
	i, s := besieged(t)
	files, err := filepath.Glob("attacks/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no attacks: %v", err)
	}
	total := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			name := strings.TrimSuffix(filepath.Base(file), ".txtar") + "/" + f.Name
			t.Run(name, func(t *testing.T) { total += i.attack(t, s, string(f.Data)) })
		}
	}
	if total < 200 {
		t.Errorf("%d attacks, want 200 at least", total)
	}
	i.unharmed(t, s)
}

// besieged is an installation of attacks/world.
func besieged(t *testing.T) (*installation, serving) {
	t.Helper()
	i := install(t, "")
	i.writeFile(t, "main.qod.hcl", readFile(t, "attacks/world/main.qod.hcl"))
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	owner := i.login(t, s.Flight, "loader")
	for statement := range strings.SplitSeq(readFile(t, "attacks/world/lake.sql"), ";\n") {
		if strings.TrimSpace(statement) != "" {
			owner.run(t, "%s", statement)
		}
	}
	return i, s
}

// attack runs the blocks of statements in text, each in a session of its own, and returns how many
// statements there were.
func (i *installation) attack(t *testing.T, s serving, text string) int {
	n := 0
	var c *client
	var ear *listener
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			c = nil
			continue
		}
		verdict, statement, ok := strings.Cut(line, " | ")
		if !ok {
			t.Fatalf("no verdict: %s", line)
		}
		if c == nil {
			ear = &listener{}
			c = i.login(t, s.Flight, "analyst", grpc.WithStatsHandler(ear))
		}
		ear.reset()
		sql := expand(t, statement)
		rows, err := c.within(time.Minute, sql)
		if problem := judge(verdict, rows, err); problem != "" {
			t.Errorf("%s: %s", statement, problem)
		}
		for _, leak := range ear.leaks(sql, i.root) {
			t.Errorf("%s: the client received %q", statement, leak)
		}
		n++
	}
	return n
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

var repetition = regexp.MustCompile(`⟨(\d+) ([^⟩]*)⟩`)

// expand writes out what is between ⟨ and ⟩ as often as the number before it says.
func expand(t *testing.T, text string) string {
	return repetition.ReplaceAllStringFunc(text, func(found string) string {
		part := repetition.FindStringSubmatch(found)
		n, err := strconv.Atoi(part[1])
		if err != nil {
			t.Fatal(err)
		}
		return strings.Repeat(part[2], n)
	})
}

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

func (l *listener) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.received.Reset()
}

var (
	hiddenText    = regexp.MustCompile(`CANARY[A-Z0-9]*|canary_[a-z_]*|731731\d{4}|root:x:0|qod-cluster-key`)
	hiddenNumbers = []uint64{7317310001, 7317310002, 7317310011, 7317310012, 7317310013, 7317310099, 7317310111, 7317310112}
)

// leaks lists what was received of what is hidden and not in the statement itself.
func (l *listener) leaks(statement, root string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	received := l.received.String()
	found := hiddenText.FindAllString(received, -1)
	for _, n := range hiddenNumbers {
		if strings.Contains(received, littleEndian(n)) {
			found = append(found, strconv.FormatUint(n, 10))
		}
	}
	if strings.Contains(received, root) {
		found = append(found, root)
	}
	var leaks []string
	for _, f := range found {
		if !strings.Contains(statement, f) {
			leaks = append(leaks, f)
		}
	}
	return leaks
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

// littleEndian is how a number lies in the columns of a result.
func littleEndian(n uint64) string {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return string(b[:])
}

package edge

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// A result of 1 GB that the client does not read stays at the node: nothing piles up in between.
func TestUnreadResultStaysAtTheNode(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx, cancel := context.WithCancel(s.login(c, "ana"))
	defer cancel()
	info, err := c.Execute(ctx, "SELECT rows 1024")
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	stream, err := c.Client.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	var made int64
	still := 0
	eventually(t, "the node stops making batches", func() bool {
		if now := p.batches.Load(); now != made {
			made, still = now, 0
		}
		still++
		return still > 100
	})
	if made > 100 {
		t.Errorf("the node made %d MiB that nobody read", made)
	}
	if grown := heap() - before; grown > 100<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	cancel()
	eventually(t, "the node is told", func() bool { return len(p.cancelled) == 1 })
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestCancelReachesTheNode(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	login := s.login(c, "ana")
	for _, sql := range []string{"SELECT hang", "SELECT stall"} {
		ctx, cancel := context.WithCancel(login)
		done := make(chan error, 1)
		go func() {
			_, _, err := query(ctx, c, sql)
			done <- err
		}()
		<-p.reached
		start := time.Now()
		cancel()
		if got := <-p.cancelled; got != sql {
			t.Errorf("%q was cancelled", got)
		}
		if d := time.Since(start); d > 100*time.Millisecond {
			t.Errorf("%s: the node heard of it after %s", sql, d)
		}
		if err := <-done; status.Code(err) != codes.Canceled {
			t.Errorf("err = %v", err)
		}
	}
	eventually(t, "history says so", func() bool {
		r := s.history()
		return len(r) == 2 && r[0].Status == statusCancelled && r[1].Status == statusCancelled
	})
	ctx, cancel := context.WithTimeout(login, 50*time.Millisecond)
	defer cancel()
	if _, _, err := query(ctx, c, "SELECT hang"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a deadline: %v", err)
	}
	eventually(t, "history says that too", func() bool { r := s.history(); return len(r) == 3 && r[2].Status == statusTimeout })
}

// Nothing is left of a thousand streams that ended in all the ways a stream can.
func TestKilledStreamsLeaveNothing(t *testing.T) {
	s := newStack(t)
	s.change("pool", poolID, `{"tenant":"acme","name":"bi","tenant_db":"sales","max_concurrent_per_node":1024}`)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	login := s.login(c, "ana")
	if _, _, err := query(login, c, "SELECT who"); err != nil {
		t.Fatal(err)
	}
	baseline := runtime.NumGoroutine()
	var all sync.WaitGroup
	slots := make(chan struct{}, 32)
	for i := range 1000 {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithCancel(login)
			defer cancel()
			switch i % 3 {
			case 0, 1:
				info, err := c.Execute(ctx, []string{"SELECT stall", "SELECT who"}[i%3])
				if err != nil {
					t.Error(err)
					return
				}
				stream, err := c.Client.DoGet(ctx, info.Endpoint[0].Ticket)
				if err == nil {
					_, err = stream.Recv()
				}
				if err != nil {
					t.Error(err)
				}
			case 2:
				put, err := c.Client.DoPut(ctx)
				if err == nil {
					err = put.Send(&flight.FlightData{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	eventually(t, "the goroutines of killed streams end", func() bool { return runtime.NumGoroutine() <= baseline+5 })
}

func TestIngestGoesThrough(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	ingest := func(records ...arrow.RecordBatch) (int64, error) {
		r, err := array.NewRecordReader(schemaOf(""), records)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		return c.ExecuteIngest(ctx, r, &flightsql.ExecuteIngestOpts{
			Table: "t", TableDefinitionOptions: &flightsql.TableDefinitionOptions{},
		})
	}
	var large []arrow.RecordBatch
	for i := range 24 {
		large = append(large, mebibyte(int64(i)))
	}
	if n, err := ingest(large...); err != nil || n != 24<<17 {
		t.Errorf("24 MiB: %d rows, %v", n, err)
	}
	one.refuseNext(wire.Draining)
	two.refuseNext(wire.Draining)
	s.serving(one, two, s.peer(backend.Dual))
	if n, err := ingest(number(1), number(2), number(3)); err != nil || n != 3 {
		t.Errorf("refused by two nodes before the third: %d rows, %v", n, err)
	}
	if r := s.history(); len(r) != 2 || r[0].SQL == "" || r[0].Class != "write" || r[0].Status != statusOK {
		t.Errorf("history has %+v", r)
	}
}

// counted is a codec that puts frames into buffers of its own and knows which are out.
type counted struct {
	codec
	mu  sync.Mutex
	out map[*[]byte]bool
	bad int // given back twice
}

func (c *counted) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok || data.Len() < 1<<16 { // gRPC does not count references to small ones
		return c.codec.Unmarshal(data, v)
	}
	b := c.Get(data.Len())
	data.CopyTo(*b)
	f.b = mem.BufferSlice{mem.NewBuffer(b, c)}
	return nil
}

func (c *counted) Get(n int) *[]byte {
	b := make([]byte, n)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out[&b] = true
	return &b
}

func (c *counted) Put(b *[]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.out[b] {
		c.bad++
	}
	delete(c.out, b)
}

func (c *counted) state() (out, bad int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.out), c.bad
}

// Every reference to a node's frame is given back, once, however the call ends.
func TestFramesAreGivenBackOnce(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	count := &counted{codec: newCodec(), out: map[*[]byte]bool{}}
	e, addr := s.edge()
	e.callOptions = []grpc.CallOption{grpc.ForceCodecV2(count), grpc.MaxCallRecvMsgSize(wire.MaxMessageSize)}
	c := s.client(addr)
	login := s.login(c, "ana")
	settled := func(what string) {
		t.Helper()
		eventually(t, what, func() bool { out, _ := count.state(); return out == 0 })
		if _, bad := count.state(); bad > 0 {
			t.Fatalf("%s: %d frames were given back twice", what, bad)
		}
	}
	open := func(ctx context.Context) flight.FlightService_DoGetClient {
		t.Helper()
		info, err := c.Execute(ctx, "SELECT rows 200")
		if err != nil {
			t.Fatal(err)
		}
		stream, err := c.Client.DoGet(ctx, info.Endpoint[0].Ticket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	if _, n, err := query(login, c, "SELECT rows 30"); err != nil || n != 30<<17 {
		t.Fatalf("%d rows, %v", n, err)
	}
	settled("read to the end")
	for range 30 {
		ctx, cancel := context.WithCancel(login)
		open(ctx)
		eventually(t, "frames are on their way", func() bool { out, _ := count.state(); return out > 0 })
		cancel()
	}
	settled("left in the middle")
	stream := open(login)
	p.kill()
	var err error
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		t.Fatal("the result of a killed node ended well")
	}
	settled("node killed")
}

func TestDrainLetsCallsEnd(t *testing.T) {
	tests := map[string]struct {
		limit time.Duration
		ends  bool
	}{"in time": {time.Minute, true}, "not in time": {50 * time.Millisecond, false}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			p := s.peer(backend.Dual)
			s.serving(p)
			e, addr := s.edge(func(c *Config) { c.DrainLimit = tc.limit })
			c := s.client(addr)
			ctx := s.login(c, "ana")
			info, err := c.Execute(ctx, "SELECT rows 16")
			if err != nil {
				t.Fatal(err)
			}
			stream, err := c.Client.DoGet(ctx, info.Endpoint[0].Ticket)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				s.stop[e]()
			}()
			if !tc.ends {
				<-drained
			}
			for err == nil {
				_, err = stream.Recv()
			}
			if (err == io.EOF) != tc.ends {
				t.Errorf("the stream ended with %v", err)
			}
			<-drained
		})
	}
}

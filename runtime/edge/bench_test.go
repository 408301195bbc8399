package edge

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// BenchmarkStatement is a statement of one row, both calls of it, through the edge and without it.
func BenchmarkStatement(b *testing.B) {
	s := newStack(b)
	p := s.peer(backend.Dual)
	p.reached = make(chan string, 1<<22)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	if _, _, err := query(ctx, c, "SELECT who"); err != nil {
		b.Fatal(err)
	}
	b.Run("edge", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := query(ctx, c, "SELECT who"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("direct", func(b *testing.B) {
		conn, err := wire.Dial(p.endpoint)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		sealed := p.took("DoGet")[0].md.Get(wire.AssertionKey)[0]
		ctx := metadata.AppendToOutgoingContext(testContext(b), wire.AssertionKey, sealed)
		c := flight.NewClientFromConn(conn, nil)
		d, err := flightDescriptor("SELECT who")
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			info, err := c.GetFlightInfo(ctx, d)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := collect(ctx, conn, info.Endpoint[0].Ticket); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func flightDescriptor(sql string) (*flight.FlightDescriptor, error) {
	command, err := anypb.New(&pb.CommandStatementQuery{Query: sql})
	if err != nil {
		return nil, err
	}
	raw, err := proto.Marshal(command)
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: raw}, err
}

// BenchmarkResult is a result of 64 MiB in batches of 1 MiB.
func BenchmarkResult(b *testing.B) {
	s := newStack(b)
	s.serving(s.peer(backend.Dual))
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	conn, err := grpc.NewClient(addr, s.transport())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	b.SetBytes(64 << 20)
	for b.Loop() {
		info, err := c.Execute(ctx, "SELECT rows 64")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := collect(ctx, conn, info.Endpoint[0].Ticket); err != nil {
			b.Fatal(err)
		}
	}
}

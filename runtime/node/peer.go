package node

import (
	"context"
	"time"

	"google.golang.org/grpc/stats"
)

// vanishWait is how long a cancelled call waits to learn whether its connection ended too. gRPC cancels
// the calls of a broken connection just before it reports the end of the connection.
const vanishWait = 250 * time.Millisecond

type peerKey struct{}

// peers marks each connection's calls with a channel that is closed when the connection ends. That
// tells an edge that vanished from a client that cancelled.
type peers struct{}

func (peers) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, peerKey{}, make(chan struct{}))
}

func (peers) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); ended {
		if gone, ok := ctx.Value(peerKey{}).(chan struct{}); ok {
			close(gone)
		}
	}
}

func (peers) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (peers) HandleRPC(context.Context, stats.RPCStats) {}

// vanished says, for a call whose context ended, whether its connection ended: then nobody cancelled it.
// It returns early when done is closed.
func vanished(ctx context.Context, done <-chan struct{}) bool {
	gone, ok := ctx.Value(peerKey{}).(chan struct{})
	if !ok {
		return false
	}
	timer := time.NewTimer(vanishWait)
	defer timer.Stop()
	select {
	case <-gone:
		return true
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

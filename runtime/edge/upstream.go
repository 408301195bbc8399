package edge

import (
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
)

// replayLimit is how many bytes of a client's stream are kept for a second attempt. A node refuses a
// call by its first message, so that little has gone by then.
const replayLimit = 1 << 20

// upstream carries the client's messages of one DoPut to the node of the current attempt. There is one
// reader for all attempts, since a read from the client cannot be given up without ending the call.
type upstream struct {
	client grpc.ServerStream

	mu      sync.Mutex
	node    grpc.ClientStream // nil between attempts
	kept    []*frame          // all that was sent, for as long as it is little
	size    int
	full    bool // more was sent than is kept
	ended   bool // by the client's half-close
	closed  bool // the call is over
	reading bool
}

// replayable reports whether another attempt could be given all that the client sent.
func (u *upstream) replayable() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.full
}

// attach sends what is kept to the node of a new attempt, and from then on what comes. The previous
// attempt has ended. Errors of the node show at its receiving end. False: more has been sent than is kept.
func (u *upstream) attach(node grpc.ClientStream, start func(func())) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.full {
		return false
	}
	for _, f := range u.kept {
		send(node, f.share())
	}
	if u.ended {
		node.CloseSend()
	}
	u.node = node
	if !u.reading {
		u.reading = true
		start(u.read)
	}
	return true
}

// read forwards until the client ends its side, or the call is over.
func (u *upstream) read() {
	for {
		f := &frame{}
		err := u.client.RecvMsg(f)
		u.mu.Lock()
		switch {
		case u.closed:
			f.free()
		case errors.Is(err, io.EOF):
			u.ended = true
			u.node.CloseSend()
		case err == nil:
			u.keep(f)
			send(u.node, f)
		}
		over := u.closed || err != nil
		u.mu.Unlock()
		if over {
			return
		}
	}
}

func (u *upstream) keep(f *frame) {
	if u.full {
		return
	}
	if u.size += f.b.Len(); u.size <= replayLimit {
		u.kept = append(u.kept, f.share())
		return
	}
	u.full = true
	u.drop()
}

// close gives back what is kept. The reader ends when the call's handler has returned.
func (u *upstream) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	u.drop()
}

func (u *upstream) drop() {
	for _, f := range u.kept {
		f.free()
	}
	u.kept = nil
}

// send gives the frame to the stream. That the stream has ended shows at its receiving end.
func send(s grpc.ClientStream, f *frame) {
	defer f.free()
	_ = s.SendMsg(f)
}

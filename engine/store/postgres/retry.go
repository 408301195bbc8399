package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// outagePatience bounds the waiting of a write whose context has no deadline.
	outagePatience = 30 * time.Second
	// clashes and reads are tried that often.
	maxClashes = 10
	maxReads   = 3

	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

// write repeats f while Postgres is away, until the context's deadline, and a few times when it clashed
// with another transaction. f must be able to run again after it took effect without being told so.
func (s *Store) write(ctx context.Context, what string, f func(ctx context.Context) error) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, outagePatience)
		defer cancel()
	}
	clashed := 0
	wait := pause{}
	for try := 1; ; try++ {
		err := f(ctx)
		switch {
		case err == nil:
			return nil
		case clash(err) && clashed < maxClashes:
			clashed++
		case !lost(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		if try == 1 {
			s.log.WarnContext(ctx, "write to Postgres is tried again", "write", what, "error", err)
		}
		if wait.next(ctx) != nil {
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		}
	}
}

// read repeats f when a connection turns out to be stale. It does not wait for Postgres to come back:
// readers have a snapshot to go on with.
func (s *Store) read(ctx context.Context, what string, f func(ctx context.Context) error) error {
	wait := pause{}
	for try := 1; ; try++ {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if !lost(err) || try == maxReads || wait.next(ctx) != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
}

// pause is a back-off: doubling, with jitter.
type pause struct{ last time.Duration }

// next waits, or returns the context's error at once when it ends.
func (p *pause) next(ctx context.Context) error {
	p.last = min(max(minPause, 2*p.last), maxPause)
	timer := time.NewTimer(p.last/2 + rand.N(p.last/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pause) reset() { p.last = 0 }

func asPgError(err error, target **pgconn.PgError) bool { return errors.As(err, target) }

// clash reports whether a transaction failed only because of another one.
func clash(err error) bool {
	var pg *pgconn.PgError
	if !asPgError(err, &pg) {
		return false
	}
	switch pg.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return true
	case "XX000": // two sessions changed one catalog row
		return strings.HasPrefix(pg.Message, "tuple concurrently ")
	}
	return false
}

// lost reports whether Postgres is away, or the connection to it is.
func lost(err error) bool {
	var pg *pgconn.PgError
	if asPgError(err, &pg) {
		switch pg.Code {
		case "57P01", "57P02", "57P03", "25P03", "53300": // shut down, crashed, starting, idle too long, too many clients
			return true
		}
		return strings.HasPrefix(pg.Code, "08")
	}
	for _, gone := range []error{pgconn.ErrConnClosed, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, gone) {
			return true
		}
	}
	if pgconn.SafeToRetry(err) {
		return true
	}
	var netErr net.Error
	var connectErr *pgconn.ConnectError
	return errors.As(err, &netErr) || errors.As(err, &connectErr)
}

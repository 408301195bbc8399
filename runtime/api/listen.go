package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	headerTimeout   = 10 * time.Second
	bodyTimeout     = time.Minute
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 5 * time.Second
	// tlsHandshake is the first byte of a connection that speaks TLS, which no request in clear begins with.
	tlsHandshake = 0x16
)

// Run serves HTTP, and HTTPS on the same address where secure is not nil, until ctx ends. Then it gives requests
// in flight five seconds.
func Run(ctx context.Context, l net.Listener, h http.Handler, secure *tls.Config) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: idleTimeout, TLSConfig: secure}
	serve := []func() error{func() error { return server.Serve(l) }}
	if secure != nil {
		s := split(l)
		defer s.Close()
		serve = []func() error{
			func() error { return server.Serve(s.plain) },
			func() error { return server.ServeTLS(s.secure, "", "") },
		}
	}
	served := make(chan error, len(serve))
	for _, f := range serve {
		go func() { served <- f() }()
	}
	var errs []error
	left := len(serve)
	select {
	case err := <-served:
		errs = append(errs, fmt.Errorf("serve HTTP: %w", err))
		left--
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		errs = append(errs, fmt.Errorf("stop HTTP: %w", err))
	}
	for range left {
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, fmt.Errorf("serve HTTP: %w", err))
		}
	}
	return errors.Join(errs...)
}

// splitter tells the connections of a listener apart by their first byte.
type splitter struct {
	net.Listener
	plain, secure *half
	done          chan struct{}
	once          sync.Once
	wait          sync.WaitGroup
}

func split(l net.Listener) *splitter {
	s := &splitter{Listener: l, done: make(chan struct{})}
	s.plain, s.secure = &half{s, make(chan net.Conn)}, &half{s, make(chan net.Conn)}
	s.wait.Go(s.accept)
	return s
}

// Close closes the listener and waits until every connection has been handed over or closed.
func (s *splitter) Close() error {
	err := s.end()
	s.wait.Wait()
	return err
}

func (s *splitter) end() (err error) {
	s.once.Do(func() {
		close(s.done)
		err = s.Listener.Close()
	})
	return err
}

func (s *splitter) accept() {
	for {
		conn, err := s.Listener.Accept()
		var passing net.Error
		switch {
		case err == nil:
			s.wait.Go(func() { s.hand(conn) })
			continue
		case errors.As(err, &passing) && passing.Timeout():
			continue
		}
		_ = s.end() // the error of Accept is told by the halves
		return
	}
}

// hand gives a connection to the half that it is for.
func (s *splitter) hand(conn net.Conn) {
	stop := make(chan struct{})
	s.wait.Go(func() {
		select {
		case <-s.done:
			_ = conn.SetReadDeadline(time.Unix(1, 0)) // a connection that is closed needs none
		case <-stop:
		}
	})
	first := make([]byte, 1)
	err := conn.SetReadDeadline(time.Now().Add(headerTimeout))
	if err == nil {
		_, err = conn.Read(first)
	}
	close(stop)
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close() // nobody has sent anything
		return
	}
	to := s.plain
	if first[0] == tlsHandshake {
		to = s.secure
	}
	select {
	case to.conns <- &begun{Conn: conn, first: first}:
	case <-s.done:
		_ = conn.Close() // the server ends
	}
}

// half is a listener of some of the connections.
type half struct {
	*splitter
	conns chan net.Conn
}

func (h *half) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *half) Close() error { return h.end() }

// begun is a connection whose first byte has been read.
type begun struct {
	net.Conn
	first []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 || len(p) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}

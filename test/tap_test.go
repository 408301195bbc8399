package test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// tap stands between clients and a serve, with the serve's certificate, and keeps every byte that the
// clients receive: of each call its messages and, decoded, its headers and trailers.
type tap struct {
	address string
	serve   string
	dials   *tls.Config
	end     func() // hangs up, and returns when everything is kept

	mu     sync.Mutex
	calls  map[string]*bytes.Buffer
	failed []error
}

// startTap listens until the test ends, or something is looked for.
func (i *installation) startTap(t *testing.T, s serving) *tap {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(i.certificate(), i.state("tls", "edge.key"))
	if err != nil {
		t.Fatal(err)
	}
	h2 := []string{http2.NextProtoTLS}
	p := &tap{
		serve: s.Flight,
		dials: &tls.Config{RootCAs: i.roots(t), NextProtos: h2, MinVersion: tls.VersionTLS12},
		calls: map[string]*bytes.Buffer{},
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: h2, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.relay(ctx, client) })
		}
	})
	p.end = func() {
		cancel()
		_ = l.Close() // it may be closed already
		running.Wait()
	}
	t.Cleanup(p.end)
	return p
}

// relay joins a client and the serve until one of them hangs up or ctx ends.
func (p *tap) relay(ctx context.Context, client net.Conn) {
	dialer := tls.Dialer{Config: p.dials}
	server, err := dialer.DialContext(ctx, "tcp", p.serve)
	if err != nil {
		_ = client.Close()
		p.fail(err)
		return
	}
	hangUp := func() { _, _ = client.Close(), server.Close() } // both may be gone already
	stop := context.AfterFunc(ctx, hangUp)
	defer stop()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client) // however it ends, it is the end of both
		hangUp()
	})
	p.listen(client.RemoteAddr().String(), bufio.NewReader(io.TeeReader(server, client)))
	hangUp()
	up.Wait()
}

// listen keeps what a serve says on a connection.
func (p *tap) listen(name string, server io.Reader) {
	frames := http2.NewFramer(io.Discard, server)
	frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	frames.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(math.MaxUint32) // the client decides
	for {
		f, err := frames.ReadFrame()
		var broken http2.ConnectionError
		var stream http2.StreamError
		if errors.As(err, &broken) || errors.As(err, &stream) {
			p.fail(err)
		}
		if err != nil {
			return
		}
		call := fmt.Sprint(name, " ", f.Header().StreamID)
		switch f := f.(type) {
		case *http2.DataFrame:
			p.keep(call, f.Data())
		case *http2.GoAwayFrame:
			p.keep(call, f.DebugData())
		case *http2.MetaHeadersFrame:
			for _, h := range f.Fields {
				p.header(call, h)
			}
		}
	}
}

// header keeps a header as its reader understands it.
func (p *tap) header(call string, h hpack.HeaderField) {
	value := []byte(h.Value)
	switch {
	case h.Name == "grpc-encoding" && h.Value != "identity":
		p.fail(fmt.Errorf("messages come in the encoding %s", h.Value))
	case strings.HasSuffix(h.Name, "-bin"):
		raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(h.Value, "="))
		if err != nil {
			p.fail(fmt.Errorf("read %s: %w", h.Name, err))
		}
		value = raw
	}
	p.keep(call+" headers", fmt.Appendf(nil, "%s: %s\n", h.Name, value))
}

func (p *tap) keep(call string, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[call] == nil {
		p.calls[call] = &bytes.Buffer{}
	}
	p.calls[call].Write(data)
}

func (p *tap) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = append(p.failed, err)
}

// heard ends the tap and returns the parts of what clients received in which the word stands, in any case
// of its letters. It fails the test if something was received that could not be looked at.
func (p *tap) heard(t *testing.T, word string) []string {
	t.Helper()
	p.end()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, err := range p.failed {
		t.Errorf("tap: %v", err)
	}
	var found []string
	for call, data := range p.calls {
		if at := bytes.Index(bytes.ToLower(data.Bytes()), []byte(word)); at >= 0 {
			raw := data.Bytes()
			found = append(found, fmt.Sprintf("%s: %q", call, raw[max(0, at-200):min(len(raw), at+100)]))
		}
	}
	return found
}

package api_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/api"
)

// One address speaks HTTP and HTTPS, and a client that says nothing holds nobody up.
func TestOneAddressSpeaksBoth(t *testing.T) {
	borrowed := httptest.NewTLSServer(nil)
	defer borrowed.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	config := &tls.Config{Certificates: borrowed.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	secure := func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%t %s", r.TLS != nil, r.Proto) }
	go func() { done <- api.Run(ctx, l, http.HandlerFunc(secure), config) }()
	silent, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client := borrowed.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	for url, want := range map[string]string{"http://": "false HTTP/1.1", "https://": "true HTTP/2.0"} {
		r, err := client.Get(url + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != want {
			t.Errorf("%s: %q, want %q (%v)", url, body, want, err)
		}
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	client.CloseIdleConnections()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

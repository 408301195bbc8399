package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	maxAnswer = 64 << 20 // bytes
	// tries is how often a request is sent before its failure is told.
	tries     = 6
	firstWait = 200 * time.Millisecond
	maxWait   = 30 * time.Second
)

// Config says where the server is and who the caller is: by Token, or by User and Password.
type Config struct {
	Server   string // https://host:port; http is for loopback addresses
	Token    string
	User     string // may be TENANT/NAME
	Password string
	// CAFile is a file with certificates in PEM which the server's must go back to; "": those of the system.
	CAFile string
	// Agent is the User-Agent.
	Agent string
	Log   *slog.Logger // nil: nothing is logged
	// Wait returns when the time is up, or sooner with the context's error; nil: it waits. Tests replace it.
	Wait func(context.Context, time.Duration) error
}

// Client makes requests. It may be used by several goroutines.
type Client struct {
	config Config
	base   *url.URL
	http   *http.Client
}

// New returns a client. It does not connect. The caller closes it.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.Server)
	switch {
	case err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the server is not given as https://HOST:PORT") // err repeats what may be a password
	case base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())):
		return nil, fmt.Errorf("the server %s is not safe to send credentials to: want https, or http on a loopback address", c.Server)
	case c.Token != "" && c.User != "":
		return nil, errors.New("give a token or a user, not both")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 32
	if c.CAFile != "" {
		roots, err := readRoots(c.CAFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Wait == nil {
		c.Wait = wait
	}
	return &Client{config: c, base: base, http: &http.Client{
		Transport: transport,
		// A redirect would send credentials, or a change, to where nobody asked for it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Server returns where the client's server is.
func (c *Client) Server() string { return c.base.String() }

func readRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificates: %s has none in PEM", file)
	}
	return roots, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// call is one request. Repeatable ones may reach the server twice without harm.
type call struct {
	method, path string
	query        url.Values
	body         any
	header       http.Header
	repeatable   bool
}

// do makes the request and reads the answer into out. It tries again where the server is busy (429, 503) or could not
// be reached, and, where the call is repeatable, also where the connection broke and nobody knows what became of it.
func (c *Client) do(ctx context.Context, r call, out any) error {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
	}
	for n := 1; ; n++ {
		again, after, err := c.try(ctx, r, body, out)
		if err == nil || !again || n == tries || ctx.Err() != nil {
			return err
		}
		c.config.Log.InfoContext(ctx, "request is sent again", "method", r.method, "path", r.path, "after", after, "error", err)
		if c.config.Wait(ctx, max(after, backOff(n))) != nil {
			return err
		}
	}
}

// try sends the request once. On an error it says whether to send it again, and how long the server wants it to wait.
func (c *Client) try(ctx context.Context, r call, body []byte, out any) (again bool, after time.Duration, err error) {
	target := c.base.JoinPath("v1").String() + "/" + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(body))
	if err != nil {
		return false, 0, fmt.Errorf("make request: %w", err)
	}
	for name, values := range r.header {
		request.Header[name] = values
	}
	c.sign(request, len(body) > 0)
	answer, err := c.http.Do(request)
	if err != nil {
		return r.repeatable || unsent(err), 0, fmt.Errorf("reach qod: %w", err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return r.repeatable, 0, fmt.Errorf("read answer of qod: %w", err)
	}
	if answer.StatusCode >= 300 {
		refused := refusal(answer, read)
		c.config.Log.DebugContext(ctx, "refused", "method", r.method, "path", r.path, "status", answer.StatusCode, "error", refused)
		busy := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable
		return busy, retryAfter(answer.Header.Get("Retry-After")), refused
	}
	c.config.Log.DebugContext(ctx, "request", "method", r.method, "path", r.path, "status", answer.StatusCode)
	if out == nil || len(read) == 0 {
		return false, 0, nil
	}
	if err := json.Unmarshal(read, out); err != nil {
		return false, 0, fmt.Errorf("read answer of qod: %w", err)
	}
	return false, 0, nil
}

func (c *Client) sign(r *http.Request, body bool) {
	r.Header.Set("Accept", "application/json")
	if body {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.config.Agent != "" {
		r.Header.Set("User-Agent", c.config.Agent)
	}
	switch {
	case c.config.Token != "":
		r.Header.Set("Authorization", "Bearer "+c.config.Token)
	case c.config.User != "":
		r.SetBasicAuth(c.config.User, c.config.Password)
	}
}

// unsent reports whether no byte of the request can have reached a server.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func retryAfter(header string) time.Duration {
	seconds, err := strconv.Atoi(strings.TrimSpace(header))
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, maxWait)
}

// backOff doubles from try to try. Half of it is chance, so that those who failed together do not return together.
func backOff(n int) time.Duration {
	d := min(firstWait<<(n-1), maxWait)
	return d/2 + rand.N(d/2)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

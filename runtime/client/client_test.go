package client_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// start serves h and returns a client of it that never waits, and what it was told to wait.
func start(t *testing.T, c client.Config, h http.HandlerFunc) (*client.Client, *[]time.Duration) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	var waited []time.Duration
	c.Server = server.URL
	c.Wait = func(ctx context.Context, d time.Duration) error {
		waited = append(waited, d)
		return ctx.Err()
	}
	made, err := client.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made, &waited
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "r-1")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestConfigIsChecked(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		config client.Config
		want   string
	}{
		"no server":        {client.Config{}, "https://HOST:PORT"},
		"a password in it": {client.Config{Server: "https://ana:s3cr3t@qod"}, "https://HOST:PORT"},
		"a broken one":     {client.Config{Server: "https://ana:s3cr3t@qod:x%zz"}, "https://HOST:PORT"},
		"clear text":       {client.Config{Server: "http://qod.example.com"}, "not safe"},
		"another scheme":   {client.Config{Server: "grpc://127.0.0.1"}, "not safe"},
		"both":             {client.Config{Server: "https://qod", Token: "t", User: "u"}, "not both"},
		"no certificates":  {client.Config{Server: "https://qod", CAFile: empty}, "none in PEM"},
		"no file":          {client.Config{Server: "https://qod", CAFile: empty + ".no"}, "read certificates"},
	} {
		_, err := client.New(test.config)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, want %q and no secret", name, err, test.want)
		}
	}
}

func TestCredentials(t *testing.T) {
	for name, test := range map[string]struct {
		config client.Config
		want   string
	}{
		"token":    {client.Config{Token: "qod_pat_x"}, "Bearer qod_pat_x"},
		"password": {client.Config{User: "acme/ana", Password: "pw"}, "Basic YWNtZS9hbmE6cHc="},
		"neither":  {client.Config{}, ""},
	} {
		got := "none"
		c, _ := start(t, test.config, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			answer(w, http.StatusOK, `{}`)
		})
		if _, err := c.ByID(t.Context(), "1"); err != nil || got != test.want {
			t.Errorf("%s: sent %q, %v; want %q", name, got, err, test.want)
		}
	}
}

func TestCertificatesOfAFile(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, `{"id":"1"}`) }))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, ca := range map[string]string{"with": file, "without": ""} {
		c, err := client.New(client.Config{Server: server.URL, CAFile: ca, Wait: func(context.Context, time.Duration) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if _, err := c.ByID(t.Context(), "1"); (err == nil) != (ca != "") {
			t.Errorf("%s the file: %v", name, err)
		}
	}
}

func TestBusyServersAreAskedAgain(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		var n atomic.Int32
		c, waited := start(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); r.Method == http.MethodPost && !strings.Contains(string(body), `"stack":"core"`) {
				t.Errorf("sent %s", body)
			}
			if n.Add(1) < 3 {
				w.Header().Set("Retry-After", "7")
				answer(w, status, `{"error":"busy","message":"later"}`)
				return
			}
			answer(w, http.StatusOK, `{"revision": 4}`)
		})
		applied, err := c.Apply(t.Context(), client.Request{Stack: "core"})
		if err != nil || applied.Revision != 4 {
			t.Errorf("%d: %+v, %v", status, applied, err)
		}
		if len(*waited) != 2 || (*waited)[0] != 7*time.Second {
			t.Errorf("%d: waited %v, want 7s twice", status, *waited)
		}
	}
}

func TestBusyForLongIsToldAtLast(t *testing.T) {
	var n atomic.Int32
	c, _ := start(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		answer(w, http.StatusServiceUnavailable, `{"error":"unavailable","message":"Postgres is away"}`)
	})
	_, err := c.ByID(t.Context(), "1")
	if !client.Is(err, "unavailable") || !strings.Contains(err.Error(), "Postgres is away (request r-1)") || n.Load() != 6 {
		t.Errorf("after %d tries: %v", n.Load(), err)
	}
}

// What breaks off is repeated where it does no harm: a token would be made twice.
func TestBrokenConnections(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(*client.Client) error
		want int32
	}{
		"get":   {func(c *client.Client) error { _, err := c.ByID(t.Context(), "1"); return err }, 6},
		"apply": {func(c *client.Client) error { _, err := c.Apply(t.Context(), client.Request{}); return err }, 6},
		"token": {func(c *client.Client) error { _, err := c.NewToken(t.Context(), client.TokenRequest{}); return err }, 1},
	} {
		var n atomic.Int32
		c, _ := start(t, client.Config{}, func(http.ResponseWriter, *http.Request) {
			n.Add(1)
			panic(http.ErrAbortHandler)
		})
		if err := test.ask(c); err == nil || n.Load() < test.want || test.want == 1 && n.Load() != 1 {
			t.Errorf("%s: sent %d times, %v", name, n.Load(), err)
		}
	}
}

func TestUnreachableServersAreAskedAgain(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	n := 0
	c, err := client.New(client.Config{Server: server.URL, Wait: func(context.Context, time.Duration) error { n++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.NewToken(t.Context(), client.TokenRequest{}); err == nil || n != 5 {
		t.Errorf("waited %d times, %v", n, err)
	}
}

func TestAnEndedContextEndsTheRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, _ := start(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		answer(w, http.StatusServiceUnavailable, `{}`)
	})
	if _, err := c.ByID(ctx, "1"); err == nil {
		t.Error("no error")
	}
}

func TestErrorsOfTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		status     int
		kind, body string
		want       client.Error
		text       string
	}{
		"one": {
			422, "application/json", `{"error":"invalid","message":"too little","path":"changes[0].spec.memory"}`,
			client.Error{Code: client.Invalid, Path: "changes[0].spec.memory"}, "too little",
		},
		"several": {
			422, "application/json; charset=utf-8", `{"error":"invalid","message":"two","details":[{"message":"a"},{"message":"b"}]}`,
			client.Error{Code: client.Invalid}, "two\n  a\n  b",
		},
		"a proxy":    {502, "text/html", "<h1>qod_pat_secret</h1>", client.Error{}, "502 Bad Gateway"},
		"a redirect": {302, "text/html", "", client.Error{}, "302 Found"},
	} {
		c, _ := start(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.kind)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.body)
		})
		_, err := c.ByID(t.Context(), "1")
		var e *client.Error
		if !errors.As(err, &e) || e.Status != test.status || e.Code != test.want.Code || e.Path != test.want.Path {
			t.Errorf("%s: %#v", name, err)
			continue
		}
		if !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "qod_pat_secret") || len(e.Each()) == 0 {
			t.Errorf("%s: %v, want %q", name, err, test.text)
		}
	}
}

func TestListFollowsPages(t *testing.T) {
	c, _ := start(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/v1/pool" || q.Get("tenant") != "acme" || q.Has("name") || q.Get("limit") != "1000" {
			t.Errorf("asked for %s", r.URL)
		}
		switch q.Get("after") {
		case "":
			answer(w, http.StatusOK, `{"items":[{"key":"acme/a"},{"key":"acme/b"}],"next":"n1"}`)
		case "n1":
			answer(w, http.StatusOK, `{"items":[{"key":"acme/c"}],"next":""}`)
		}
	})
	var keys []string
	for o, err := range c.List(t.Context(), "pool", client.Filter{Tenant: "acme"}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, o.Key)
	}
	if got := strings.Join(keys, " "); got != "acme/a acme/b acme/c" {
		t.Errorf("listed %q", got)
	}
}

func TestKeysArePartsOfThePath(t *testing.T) {
	var got string
	c, _ := start(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.Path
		answer(w, http.StatusOK, `{"id":"7"}`)
	})
	for _, a := range []schema.Addr{schema.NewAddr("user", "acme", "ann smith?#@corp.com"), {Kind: "pool_grant", Path: "acme/bi/user:ana"}} {
		o, err := c.Get(t.Context(), a)
		if want := "/v1/" + a.Kind + "/" + a.Path; err != nil || got != want || o.ID != "7" {
			t.Errorf("asked for %s, want %s: %v", got, want, err)
		}
	}
}

func TestValuesOfObjects(t *testing.T) {
	k, _ := schema.Lookup("pool")
	o := client.Object{Kind: "pool", Key: "acme/bi", Spec: json.RawMessage(`{"name":"bi"}`), Effective: json.RawMessage(`{"name":"bi","threads":2}`)}
	spec, effective, err := o.Values(k)
	if err != nil || !spec.GetAttr("threads").IsNull() || effective.GetAttr("threads").AsBigFloat().String() != "2" {
		t.Errorf("%#v, %#v, %v", spec, effective, err)
	}
	o.Spec = json.RawMessage(`{"nonsense":1}`)
	if _, _, err := o.Values(k); err == nil || !strings.Contains(err.Error(), "read pool.acme/bi") {
		t.Errorf("an attribute that the kind has not: %v", err)
	}
}

func TestRevokedTokens(t *testing.T) {
	c, _ := start(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete || r.URL.Path != "/v1/token/t1" {
			t.Errorf("asked for %s %s", r.Method, r.URL)
		}
		answer(w, http.StatusNotFound, `{"error":"not_found"}`)
	})
	if err := c.RevokeToken(t.Context(), "t1"); err != nil {
		t.Error(err)
	}
}

package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// applier answers POST /v1/apply. It refuses requests with an object whose name begins with "bad".
type applier struct {
	mu       sync.Mutex
	requests [][]string // keys of the changes
	refusal  int
}

func (a *applier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request client.Request
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Stack != "core" {
		http.Error(w, "what is this", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var keys, objects []string
	refused := ""
	for _, c := range request.Changes {
		keys = append(keys, c.Key)
		if strings.HasPrefix(c.Key, "bad") {
			refused = c.Key
		}
		objects = append(objects, fmt.Sprintf(`{"kind":%q,"key":%q,"id":"id-%s"}`, c.Kind, c.Key, c.Key))
	}
	a.requests = append(a.requests, keys)
	if refused != "" {
		answer(w, a.refusal, fmt.Sprintf(`{"error":"invalid","message":"no %s"}`, refused))
		return
	}
	answer(w, http.StatusOK, `{"revision":1,"objects":[`+strings.Join(objects, ",")+`]}`)
}

// together makes the changes at once: the window ends when all of them wait.
func together(t *testing.T, a *applier, keys ...string) map[string]error {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	var started sync.WaitGroup
	started.Add(len(keys))
	c, err := client.New(client.Config{Server: server.URL, Wait: func(ctx context.Context, d time.Duration) error {
		if d == client.Window {
			started.Wait()
		}
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	b := client.NewBatch(c, "core")
	errs := make(map[string]error, len(keys))
	var mu sync.Mutex
	var done sync.WaitGroup
	for _, key := range keys {
		done.Go(func() {
			started.Done()
			o, err := b.Put(t.Context(), client.Change{Kind: "tenant", Key: key}, schema.NewAddr("tenant", key))
			if err == nil && o.ID != "id-"+key {
				err = fmt.Errorf("got the object %q", o.ID)
			}
			mu.Lock()
			defer mu.Unlock()
			errs[key] = err
		})
	}
	done.Wait()
	return errs
}

func names(prefix string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, i))
	}
	return list
}

func TestChangesAreJoined(t *testing.T) {
	a := &applier{}
	for key, err := range together(t, a, names("t", 40)...) {
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if n := len(a.requests); n > 20 {
		t.Errorf("%d requests for 40 changes", n)
	}
}

func TestOnlyTheFaultyChangeFails(t *testing.T) {
	for _, status := range []int{http.StatusUnprocessableEntity, http.StatusConflict, http.StatusNotFound, http.StatusForbidden} {
		a := &applier{refusal: status}
		for key, err := range together(t, a, append(names("t", 5), "bad")...) {
			switch {
			case key == "bad" && (err == nil || !strings.Contains(err.Error(), "no bad")):
				t.Errorf("%d: %s: %v", status, key, err)
			case key != "bad" && err != nil:
				t.Errorf("%d: %s: %v", status, key, err)
			}
		}
	}
}

// Where the refusal is not about one change, nothing is gained by asking for each.
func TestOthersRefusalsAreForAll(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusInternalServerError} {
		a := &applier{refusal: status}
		refused := 0
		for _, err := range together(t, a, "bad1", "bad2", "bad3", "bad4") {
			if err != nil {
				refused++
			}
		}
		if refused != 4 || len(a.requests) > 4 {
			t.Errorf("%d: %d refused in %v", status, refused, a.requests)
		}
	}
}

func TestManyChangesAreSeveralRequests(t *testing.T) {
	a := &applier{}
	for key, err := range together(t, a, names("t", 450)...) {
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	for _, keys := range a.requests {
		if len(keys) > 200 {
			t.Errorf("%d changes in one request", len(keys))
		}
	}
}

// An interrupt while a change is on its way does not leave it unknown.
func TestWhatWasSentIsWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		answer(w, http.StatusOK, `{"objects":[{"kind":"tenant","key":"acme","id":"1"}]}`)
	}))
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Server: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	b := client.NewBatch(c, "core")
	change := client.Change{Kind: "tenant", Key: "acme"}
	if o, err := b.Put(ctx, change, schema.NewAddr("tenant", "acme")); err != nil || o.ID != "1" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := b.Put(ctx, change, schema.NewAddr("tenant", "acme")); err == nil {
		t.Error("a change after the interrupt was made")
	}
}

package test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rest is a client of the REST API of a serve.
type rest struct {
	client *http.Client
	base   string
	auth   string
}

func (i *installation) rest(t testing.TB, s serving, scheme string) rest {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: i.roots(t)}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	r := rest{client: &http.Client{Transport: transport, Timeout: time.Minute}, base: scheme + "://" + s.HTTP}
	body := r.must(t, 200, "POST", "/v1/login", fmt.Sprintf(`{"user":"admin","password":%q}`, secrets["admin"]))
	r.auth = "Bearer " + body["token"].(string)
	return r
}

func (r rest) must(t testing.TB, status int, method, path, body string) map[string]any {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if r.auth != "" {
		request.Header.Set("Authorization", r.auth)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != status {
		t.Fatalf("%s %s: %s, want %d: %s", method, path, answer.Status, status, raw)
	}
	for name, secret := range secrets {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%s %s shows %s", method, path, name)
		}
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s %s: %v in %q", method, path, err, raw)
	}
	return out
}

// status makes a GET and returns its status.
func (r rest) status(t testing.TB, path string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", r.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", r.auth)
	answer, err := r.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func phaseOf(object map[string]any) any { return object["status"].(map[string]any)["phase"] }

// A tenant with its database, pool and user is made, serves SQL, and goes, all over HTTPS.
func TestRESTMakesAPoolThatServes(t *testing.T) {
	i := install(t, "")
	s := i.serve(t)
	r := i.rest(t, s, "https")
	r.must(t, 200, "GET", "/health", "")
	i.rest(t, s, "http").must(t, 200, "GET", "/v1/me", "")
	password := secrets["loader_password"]
	r.must(t, 201, "PUT", "/v1/tenant/acme", `{"stack":"core","spec":{}}`)
	r.must(t, 201, "PUT", "/v1/tenant_db/acme/sales", `{"stack":"core","spec":{"kind":"ducklake","allow_destroy":true}}`)
	pool := r.must(t, 201, "PUT", "/v1/pool/acme/bi", `{"stack":"core","spec":{"tenant_db":"sales","memory":"512MiB"}}`)
	r.must(t, 201, "PUT", "/v1/user/acme/ana", fmt.Sprintf(`{"stack":"core","spec":{"password":%q,"admin":true}}`, password))
	eventually(t, 2*time.Minute, "the pool is ready", func() bool {
		return phaseOf(r.must(t, 200, "GET", "/v1/pool/acme/bi", "")) == "ready"
	})
	nodes := r.must(t, 200, "GET", "/v1/pool/acme/bi", "")["status"].(map[string]any)["nodes"].([]any)
	if len(nodes) != 1 || nodes[0].(map[string]any)["phase"] != "serving" {
		t.Errorf("nodes: %v", nodes)
	}
	if status := r.must(t, 200, "GET", "/v1/status", ""); len(status["pools"].([]any)) != 1 || len(status["serves"].([]any)) != 1 {
		t.Errorf("status: %v", status)
	}
	i.tokens(t, r)
	r.must(t, 200, "DELETE", "/v1/pool/acme/bi?stack=core", "")
	eventually(t, time.Minute, "the pool is gone", func() bool {
		return r.status(t, "/v1/object/"+pool["id"].(string)) == http.StatusNotFound
	})
	for _, path := range []string{"user/acme/ana", "tenant_db/acme/sales", "tenant/acme"} {
		r.must(t, 200, "DELETE", "/v1/"+path+"?stack=core", "")
	}
}

// tokens made by the command line let in what they are to let in.
func (i *installation) tokens(t *testing.T, r rest) {
	t.Helper()
	token := func(args ...string) string {
		out := i.must(t, append([]string{"token", "create"}, args...)...)
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "qodp_") {
				return "Bearer " + strings.TrimSpace(line)
			}
		}
		t.Fatalf("no token in %q", out)
		return ""
	}
	ana, reader := r, r
	ana.auth, reader.auth = token("acme/ana"), token("admin", "--read-only")
	eventually(t, 5*time.Second, "both tokens let in", func() bool {
		return ana.status(t, "/v1/me") == http.StatusOK && reader.status(t, "/v1/me") == http.StatusOK
	})
	ana.must(t, 201, "PUT", "/v1/role/acme/analyst", `{"stack":"mine","spec":{}}`)
	ana.must(t, 403, "PUT", "/v1/tenant/acme", `{"stack":"core","spec":{}}`)
	reader.must(t, 200, "GET", "/v1/role/acme/analyst", "")
	reader.must(t, 403, "DELETE", "/v1/role/acme/analyst?stack=mine", "")
	ana.must(t, 200, "DELETE", "/v1/role/acme/analyst?stack=mine", "")
}

package test

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// metrics reads the exposition of a serve: name with labels to value.
func (s serving) metrics(t testing.TB) map[string]float64 {
	t.Helper()
	r, err := http.Get("http://" + s.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), "} ")
		if !ok {
			name, value, ok = strings.Cut(lines.Text(), " ")
		} else {
			name += "}"
		}
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			out[name] = v
		}
	}
	return out
}

// The names that users know, with the values that known traffic gives.
func TestMetricsAndHistory(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	c := i.login(t, s.Flight, "loader")
	c.run(t, "CREATE TABLE m (id BIGINT, name VARCHAR)")
	c.run(t, "INSERT INTO m VALUES (1, 'a-secret-literal')")
	for range 7 {
		c.run(t, "SELECT name FROM m WHERE id = 1")
	}
	if _, _, err := c.query("SELECT * FROM read_text('/etc/hostname')"); err == nil {
		t.Error("a file was read")
	}
	if _, _, err := c.query("SELECT * FROM no_such"); err == nil {
		t.Error("no error")
	}
	c.run(t, "BEGIN")
	c.run(t, "SELECT 1")
	eventually(t, 5*time.Second, "metrics have the traffic", func() bool {
		m := s.metrics(t)
		return m[`statements_total{pool="bi",status="ok",tenant="acme"}`] == 11 &&
			m[`statements_total{pool="bi",status="denied",tenant="acme"}`] == 1 &&
			m[`statements_total{pool="bi",status="permanent",tenant="acme"}`] == 1 &&
			m[`statement_duration_seconds_count{pool="bi",tenant="acme"}`] == 13 &&
			m["flightsql_sessions_active"] == 1 && m["flightsql_sessions_in_transaction"] == 1
	})
	m := s.metrics(t)
	healthy, inFlight := 0.0, 0
	for name, v := range m {
		if strings.HasPrefix(name, "node_healthy{") {
			healthy += v
		}
		if strings.HasPrefix(name, "node_in_flight{") {
			inFlight++
		}
	}
	if healthy != 2 || inFlight == 0 || m[`pool_nodes{phase="serving",pool="bi",tenant="acme"}`] != 2 {
		t.Errorf("nodes: healthy %v, in flight series %d, %v", healthy, inFlight, m[`pool_nodes{phase="serving",pool="bi",tenant="acme"}`])
	}
	i.history(t)
	for path, want := range map[string]string{"/health": `"healthy":true`, "/ready": `"acting":true`, "/live": `"live":true`} {
		r, err := http.Get("http://" + s.HTTP + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body) // a short body fails the comparison
		r.Body.Close()
		if r.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
	}
}

// history shows one row per statement, with its outcome and without its literals.
func (i *installation) history(t *testing.T) {
	t.Helper()
	count := func(where string) string {
		return i.psql(t, "SELECT count(*)::text FROM qodstate_statement WHERE "+where)
	}
	eventually(t, 5*time.Second, "history has every statement", func() bool { return count("true") == "13" })
	for where, want := range map[string]string{
		"status = 'ok' AND class = 'read'":                                       "8",
		"status = 'ok' AND class = 'write' AND row_count = 1":                    "1",
		"status = 'ok' AND class = 'ddl'":                                        "1",
		"status = 'ok' AND class = 'transaction'":                                "1",
		"status = 'denied' AND sql LIKE '%read_text(?)%'":                        "1",
		"status = 'permanent'":                                                   "1",
		"sql LIKE '%a-secret-literal%' OR error LIKE '%a-secret-literal%'":       "0",
		"tenant = 'acme' AND pool = 'bi' AND username = 'loader' AND node <> ''": "13",
	} {
		if got := count(where); got != want {
			t.Errorf("history has %s rows with %s, want %s", got, where, want)
		}
	}
}

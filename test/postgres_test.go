package test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store/embedded"
)

// psql asks the installation's private Postgres and returns one value as text.
func (i *installation) psql(t testing.TB, query string) string {
	t.Helper()
	return i.psqlIn(t, "qod", query)
}

func (i *installation) psqlIn(t testing.TB, database, query string) string {
	t.Helper()
	c := i.connect(t, database)
	var value any
	if err := c.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return fmt.Sprint(value)
}

// execute changes the private Postgres behind qod's back.
func (i *installation) execute(t testing.TB, database, statement string) {
	t.Helper()
	if _, err := i.connect(t, database).Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// connect opens a connection as the superuser; the test's end closes it.
func (i *installation) connect(t testing.TB, database string) *pgx.Conn {
	t.Helper()
	server, running, err := embedded.Find(embedded.Config{StateDir: i.state(), RunDir: filepath.Join(i.root, "run")})
	if err != nil || !running {
		t.Fatal("the private Postgres does not run", err)
	}
	url, err := server.URL(database)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) }) // Postgres may have been stopped
	return c
}

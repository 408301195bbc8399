package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	duck "github.com/duckdb/duckdb-go-bindings"
)

// EngineVersion is the DuckDB that the extensions are built for. Another one refuses them.
const EngineVersion = "v1.5.5"

// interruptEvery is how often a call that does not return is interrupted again: DuckDB may lose one.
const interruptEvery = 20 * time.Millisecond

// engine is a DuckDB instance.
type engine struct {
	db duck.Database
}

// openEngine returns an instance in memory that never fetches an extension by itself.
func openEngine() (*engine, error) {
	if v := duck.LibraryVersion(); v != EngineVersion {
		return nil, fmt.Errorf("open engine: linked with DuckDB %s, want %s", v, EngineVersion)
	}
	var config duck.Config
	if duck.CreateConfig(&config) == duck.StateError {
		return nil, fmt.Errorf("open engine: cannot make a configuration")
	}
	defer duck.DestroyConfig(&config)
	for name, value := range map[string]string{
		"autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
		unsigned: "true", // until loadExtensions is done
	} {
		if duck.SetConfig(config, name, value) == duck.StateError {
			return nil, fmt.Errorf("open engine: cannot set %s", name)
		}
	}
	var e engine
	var message string
	if duck.OpenExt(":memory:", &e.db, config, &message) == duck.StateError {
		return nil, fmt.Errorf("open engine: %s", message)
	}
	return &e, nil
}

func (e *engine) close() { duck.Close(&e.db) }

// connect returns a new connection, which sees nothing of what others set.
func (e *engine) connect() (*conn, error) {
	var c conn
	if duck.Connect(e.db, &c.c) == duck.StateError {
		return nil, engineFault("connect to engine: no connection")
	}
	return &c, nil
}

// conn is a connection to the engine. One call at a time may use it.
type conn struct {
	c       duck.Connection
	strayed bool       // it is not in the default schema
	last    *execution // that used it, if any: cleaning up after it is its call too
}

// close ends the connection. A transaction that is open on it is rolled back.
func (c *conn) close() {
	defer c.last.inEngine()()
	duck.Disconnect(&c.c)
}

// during runs f, a call into the engine. When ctx ends first, it interrupts the connection until f
// returns. No interrupt outlives during, so none ever hits the next statement.
func (c *conn) during(ctx context.Context, f func()) {
	if x := executionOf(ctx); x != nil {
		c.last = x
	}
	defer c.last.inEngine()()
	returned, quiet := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(quiet)
		tick := time.NewTicker(interruptEvery)
		defer tick.Stop()
		for {
			duck.Interrupt(c.c)
			select {
			case <-returned:
				return
			case <-tick.C:
			}
		}
	})
	f()
	close(returned)
	if !stop() {
		<-quiet
	}
}

// run executes one statement to its end and drops its rows.
func (c *conn) run(ctx context.Context, sql string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var result duck.Result
	var state duck.State
	c.during(ctx, func() { state = duck.Query(c.c, sql, &result) })
	defer duck.DestroyResult(&result)
	if state == duck.StateError {
		return resultFault(ctx, &result)
	}
	return nil
}

// runAll executes the statements in order until one fails.
func (c *conn) runAll(ctx context.Context, statements ...string) error {
	for _, sql := range statements {
		if err := c.run(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// quoteName returns s as an identifier in SQL.
func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// quoteText returns s as a string literal in SQL.
func quoteText(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

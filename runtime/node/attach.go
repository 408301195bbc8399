package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	// attachTries and attachWait bound how long a node tries to attach while Postgres is away.
	attachTries = 8
	attachWait  = 250 * time.Millisecond
	// attachLimit bounds one attempt: a host that swallows packets must not hold the start for ever.
	attachLimit = 30 * time.Second
	// spillFactor is how many times its memory a node may spill to disk, which it shares with others.
	spillFactor = 10
)

// resources is what an instance may use.
type resources struct {
	memory  int64 // bytes; 0: DuckDB's default
	threads int   // 0: DuckDB's default
	tempDir string
}

// limit gives the instance its resources. It comes before anything that could use them.
func limit(ctx context.Context, c *conn, r resources) error {
	var sets []string
	if r.threads > 0 {
		sets = append(sets, fmt.Sprintf("SET threads=%d", r.threads))
	}
	if r.memory > 0 {
		sets = append(sets,
			fmt.Sprintf("SET memory_limit='%dB'", r.memory),
			fmt.Sprintf("SET max_temp_directory_size='%dB'", spillFactor*r.memory))
	}
	if r.tempDir != "" {
		sets = append(sets, "SET temp_directory="+quoteText(r.tempDir))
	}
	sets = append(sets,
		"SET allow_persistent_secrets=false",
		"SET autoinstall_known_extensions=false",
		"SET autoload_known_extensions=false",
		"SET GLOBAL TimeZone='UTC'",
	)
	if err := c.runAll(ctx, sets...); err != nil {
		return fmt.Errorf("set limits: %w", err)
	}
	return nil
}

// tune sets how DuckLake and its Postgres connections behave. The pool takes these when it is made, so
// they come before the attach.
func tune(ctx context.Context, c *conn) error {
	err := c.runAll(ctx,
		"SET pg_pool_enable_thread_local_cache=false",
		"SET pg_pool_enable_reaper_thread=true",
		"SET pg_pool_idle_timeout_millis=60000",
		"SET pg_pool_max_lifetime_millis=600000",
		"SET ducklake_max_retry_count=100",
	)
	if err != nil {
		return fmt.Errorf("set DuckLake options: %w", err)
	}
	return nil
}

// attach attaches the lake under its name by secrets that are gone afterwards, so that its password is
// nowhere in the instance nor in its errors. Without create, a lake that does not exist is an error.
func attach(ctx context.Context, c *conn, lake wire.Lake, create bool) error {
	err := c.runAll(ctx,
		fmt.Sprintf("CREATE OR REPLACE SECRET qod_postgres (TYPE postgres, HOST %s, PORT %s, DATABASE %s, USER %s, "+
			"PASSWORD %s, connect_timeout '5', keepalives '1', keepalives_idle '10', keepalives_interval '10', "+
			"keepalives_count '3', tcp_user_timeout '30000', application_name %s)",
			quoteText(lake.Host), quoteText(fmt.Sprint(lake.Port)), quoteText(lake.Database), quoteText(lake.User),
			quoteText(lake.Password), quoteText("qod "+lake.Name)),
		fmt.Sprintf("CREATE OR REPLACE SECRET qod_lake (TYPE ducklake, METADATA_PATH '', DATA_PATH %s, "+
			"METADATA_PARAMETERS MAP {'TYPE':'postgres','SECRET':'qod_postgres'})", quoteText(dataPath(lake))),
	)
	if err != nil {
		return fmt.Errorf("prepare attach of lake %s: %s", lake.Name, withoutStatement(err))
	}
	sql := fmt.Sprintf("ATTACH 'ducklake:qod_lake' AS %s (CREATE_IF_NOT_EXISTS %t)", quoteName(lake.Name), create)
	err = retryTransient(ctx, func(ctx context.Context) error { return c.run(ctx, sql) })
	if dropErr := c.runAll(ctx, "DROP SECRET IF EXISTS qod_lake", "DROP SECRET IF EXISTS qod_postgres"); dropErr != nil {
		err = errors.Join(err, dropErr)
	}
	if err != nil {
		return fmt.Errorf("attach lake %s: %w", lake.Name, err)
	}
	return nil
}

// withoutStatement is the first line of an error: the engine echoes the statement after it, and the one
// that makes a secret holds a password.
func withoutStatement(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if strings.Contains(line, "PASSWORD") {
		return "the engine refused it"
	}
	return line
}

// retryTransient repeats f while its error is that Postgres cannot be reached or another process is
// creating the same lake.
func retryTransient(ctx context.Context, f func(context.Context) error) error {
	wait := attachWait
	for try := 1; ; try++ {
		attempt, cancel := context.WithTimeout(ctx, attachLimit)
		err := f(attempt)
		cancel()
		if err == nil || try == attachTries || ctx.Err() != nil || !transientAttach(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait = min(2*wait, 4*time.Second)
	}
}

func transientAttach(err error) bool {
	message := err.Error()
	if strings.Contains(message, "duplicate key") || strings.Contains(message, "already exists") {
		return true // two creators at once: the other one has made it by the next attempt
	}
	if strings.Contains(message, "authentication failed") || strings.Contains(message, "does not exist") {
		return false
	}
	return asFault(err).reason == wire.Transient
}

// lock closes the instance: no files but the lake's, no extensions, no configuration from here on.
func lock(ctx context.Context, c *conn, lake wire.Lake) error {
	err := c.runAll(ctx,
		"SET allowed_directories=["+quoteText(dataPath(lake))+"]",
		"SET enable_external_access=false",
		"SET allow_community_extensions=false",
		"SET lock_configuration=true",
	)
	if err != nil {
		return fmt.Errorf("lock engine: %w", err)
	}
	return nil
}

// dataPath is the lake's data path as DuckLake wants it: with a slash at its end, so that a sibling
// directory whose name begins the same is outside.
func dataPath(lake wire.Lake) string {
	return strings.TrimSuffix(filepath.ToSlash(lake.DataPath), "/") + "/"
}

// home is the statement that puts a connection into the lake's default schema.
func home(lake wire.Lake) string {
	return "USE " + quoteName(lake.Name) + "." + quoteName(defaultSchema(lake))
}

func defaultSchema(lake wire.Lake) string {
	if lake.DefaultSchema == "" {
		return "main"
	}
	return lake.DefaultSchema
}

// openLake returns an instance with the node's lake attached, locked down, with secrets gone.
func openLake(ctx context.Context, cfg wire.NodeConfig) (*engine, error) {
	e, err := openEngine()
	if err != nil {
		return nil, err
	}
	c, err := e.connect()
	if err != nil {
		e.close()
		return nil, err
	}
	defer c.close()
	err = func() error {
		if err := loadExtensions(ctx, c, cfg.ExtensionDir, "postgres_scanner", "ducklake"); err != nil {
			return err
		}
		r := resources{memory: boundsOf(cfg.MemoryBytes).engine, threads: cfg.Threads, tempDir: cfg.TempDir}
		if err := limit(ctx, c, r); err != nil {
			return err
		}
		if err := tune(ctx, c); err != nil {
			return err
		}
		if err := attach(ctx, c, cfg.Lake, false); err != nil {
			return err
		}
		return lock(ctx, c, cfg.Lake)
	}()
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

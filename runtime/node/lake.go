package node

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/qod-io/qod/runtime/wire"
)

// InitLake makes the lake's tables in its Postgres database and its default schema. Doing it again
// changes nothing. It runs in a process of its own, and the caller holds the lake's lock: two at once
// fail. The data directory must exist.
func InitLake(ctx context.Context, task wire.LakeTask, log *slog.Logger) error {
	e, c, err := openTask(ctx, task, "postgres_scanner", "ducklake")
	if err != nil {
		return fmt.Errorf("init lake %s: %w", task.Lake.Name, err)
	}
	defer e.close()
	defer c.close()
	if err := attach(ctx, c, task.Lake, true); err != nil {
		return fmt.Errorf("init lake: %w", err)
	}
	schema := quoteName(task.Lake.Name) + "." + quoteName(defaultSchema(task.Lake))
	if err := c.run(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
		return fmt.Errorf("init lake %s: make schema %s: %w", task.Lake.Name, schema, err)
	}
	log.InfoContext(ctx, "lake is ready", "lake", task.Lake.Name, "schema", defaultSchema(task.Lake))
	return nil
}

// openTask returns an instance with the task's resources and the extensions, and a connection to it.
func openTask(ctx context.Context, task wire.LakeTask, extensions ...string) (*engine, *conn, error) {
	e, err := openEngine()
	if err != nil {
		return nil, nil, err
	}
	c, err := e.connect()
	if err != nil {
		e.close()
		return nil, nil, err
	}
	err = loadExtensions(ctx, c, task.ExtensionDir, extensions...)
	if err == nil {
		err = limit(ctx, c, resources{memory: boundsOf(task.MemoryBytes).engine, threads: task.Threads, tempDir: task.TempDir})
	}
	if err == nil {
		err = tune(ctx, c)
	}
	if err != nil {
		c.close()
		e.close()
		return nil, nil, err
	}
	return e, c, nil
}

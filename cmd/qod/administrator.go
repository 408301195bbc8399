package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

const (
	// systemStack owns what qod makes by itself. No configuration may have that name.
	systemStack = "system"
	// adminName is the first administrator's.
	adminName = "admin"
)

// firstAdministrator makes one where the system stack is empty. A generated password is on disk before
// the commit, so that a crash between the two cannot lose it.
func (w *world) firstAdministrator(ctx context.Context, a *app) error {
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	if _, known := snap.Stacks[systemStack]; known {
		return nil
	}
	password, file := w.AdminPassword, ""
	if password == "" {
		file = w.in("admin.password")
		if password, err = generated(file); err != nil {
			return err
		}
	}
	kind, _ := schema.Lookup("user")
	v := kind.Empty().AsValueMap()
	v["name"], v["system"], v["password"] = cty.StringVal(adminName), cty.True, cty.StringVal(password)
	object := schema.Object{Kind: kind, Address: "user." + adminName, Value: cty.ObjectVal(v)}
	if _, problems := kind.Complete(object.Value); len(problems) > 0 {
		return fmt.Errorf("QOD_ADMIN_PASSWORD: %s", problems[0].Message)
	}
	system := store.Stack{Name: systemStack, Lineage: systemStack}
	p, err := w.engine.Plan(ctx, system, schema.Desired{Objects: []schema.Object{object}}, engine.PlanOptions{})
	if err != nil {
		return fmt.Errorf("make the first administrator: %w", err)
	}
	err = w.engine.Commit(ctx, p, whoami(), false)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return nil // another process was first
	}
	if err != nil {
		return fmt.Errorf("make the first administrator: %w", err)
	}
	if file != "" {
		fmt.Fprintf(a.stderr, "Made the system administrator %q; its password is in %s\n", adminName, file)
	}
	return nil
}

// generated returns the password in a file, making both when the file is missing.
func generated(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err == nil {
		return string(raw), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read password: %w", err)
	}
	password := rand.Text()
	err = writeSecretFile(file, password)
	if errors.Is(err, fs.ErrExist) { // another process was first
		return generated(file)
	}
	if err != nil {
		return "", fmt.Errorf("write password: %w", err)
	}
	return password, nil
}

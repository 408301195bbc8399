package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/qod-io/qod/runtime/node"
)

// extensionRepository is DuckDB's own.
const extensionRepository = "http://extensions.duckdb.org"

// fetchExtensions brings the extensions that nodes load into dir, from a directory of the same layout or
// from DuckDB's repository. What is there and right is left alone; only files whose digests this binary
// knows are kept, so it does not matter whom they come from.
func fetchExtensions(ctx context.Context, dir, from string) error {
	names := slices.Sorted(maps.Keys(node.ExtensionDigests()[node.ExtensionPlatform()]))
	if len(names) == 0 {
		return fmt.Errorf("this qod knows no extensions for platform %s", node.ExtensionPlatform())
	}
	for _, name := range names {
		if node.CheckExtensions(dir, name) == nil {
			continue
		}
		if err := fetchExtension(ctx, dir, from, name); err != nil {
			return err
		}
		if err := node.CheckExtensions(dir, name); err != nil {
			return errors.Join(err, os.Remove(node.ExtensionPath(dir, name)))
		}
	}
	return nil
}

func fetchExtension(ctx context.Context, dir, from, name string) error {
	target := node.ExtensionPath(dir, name)
	if err := makeWay(filepath.Dir(target)); err != nil {
		return fmt.Errorf("fetch extension %s: %w", name, err)
	}
	source, err := openExtension(ctx, from, name)
	if err != nil {
		return fmt.Errorf("fetch extension %s: %w", name, err)
	}
	defer source.Close()
	f, err := os.CreateTemp(filepath.Dir(target), name+".*.part")
	if err != nil {
		return fmt.Errorf("fetch extension %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	if _, err := io.Copy(f, source); err != nil {
		return errors.Join(fmt.Errorf("fetch extension %s: %w", name, err), f.Close())
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil { // nodes run as users of their own
		return fmt.Errorf("fetch extension %s: %w", name, err)
	}
	return os.Rename(f.Name(), target)
}

func openExtension(ctx context.Context, from, name string) (io.ReadCloser, error) {
	if from != "" {
		return os.Open(node.ExtensionPath(from, name))
	}
	relative, err := filepath.Rel("/", node.ExtensionPath("/", name))
	if err != nil {
		return nil, err
	}
	address := extensionRepository + "/" + filepath.ToSlash(relative) + ".gz"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w; without a network, give --extensions-from DIR", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s; give --extensions-from DIR", address, answer.Status), answer.Body.Close())
	}
	body, err := gzip.NewReader(answer.Body)
	if err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	return unzipped{body, answer.Body}, nil
}

// unzipped closes what it reads from.
type unzipped struct {
	*gzip.Reader
	under io.Closer
}

func (u unzipped) Close() error { return errors.Join(u.Reader.Close(), u.under.Close()) }

package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrNoExtension is returned when a file of an extension is not there or is not the one this binary
// was built for.
var ErrNoExtension = errors.New("extension is missing or unknown")

// ExtensionDigests are the SHA-256 of each extension file that a node loads, by platform as DuckDB names
// it and by name of the extension. Only these files are ever loaded.
func ExtensionDigests() map[string]map[string]string {
	return map[string]map[string]string{
		"linux_amd64": {
			"ducklake":         "e51bf9e8d933d0e83780ae096455501b542cf962569a2ce5613532d702c08302",
			"postgres_scanner": "b1ced4cfc6311313e117c2afb3eac76508718778dde0716421503c7dbfb5605c",
			"tpch":             "3da16edae72039b20afccf092f49b9e17ebbcf56c93f89a9fcb54a39a027e088",
		},
	}
}

// ExtensionPlatform is this machine's platform as DuckDB names it.
func ExtensionPlatform() string {
	if runtime.GOOS == "darwin" {
		return "osx_" + runtime.GOARCH
	}
	return runtime.GOOS + "_" + runtime.GOARCH
}

// ExtensionPath is where the file of an extension is under dir.
func ExtensionPath(dir, name string) string {
	return filepath.Join(dir, EngineVersion, ExtensionPlatform(), name+".duckdb_extension")
}

// CheckExtensions says whether dir holds the named extensions, each with the digest this binary knows.
// The error wraps ErrNoExtension and says what to do.
func CheckExtensions(dir string, names ...string) error {
	known := ExtensionDigests()[ExtensionPlatform()]
	if known == nil {
		return fmt.Errorf("check extensions: no digests for platform %s: %w", ExtensionPlatform(), ErrNoExtension)
	}
	for _, name := range names {
		path := ExtensionPath(dir, name)
		digest, err := fileDigest(path)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("check extension %s: %s does not exist; get it with `qod init --extensions-from DIR`: %w",
				name, path, ErrNoExtension)
		}
		if err != nil {
			return fmt.Errorf("check extension %s: %w", name, err)
		}
		if digest != known[name] {
			return fmt.Errorf("check extension %s: %s is not the file this qod knows; "+
				"get it with `qod init --extensions-from DIR`: %w", name, path, ErrNoExtension)
		}
	}
	return nil
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// unsigned is the setting that lets the engine load a file without a signature. It cannot be set again while
// the engine runs.
const unsigned = "allow_unsigned_extensions"

// loadExtensions checks and loads the named extensions, and then has the engine load nothing without a
// signature. The files are known byte by byte, which is more than that somebody signed them; and the engine
// takes half a second to find a signature right, longer than all else of a start. Loading twice at once
// corrupts the heap, so it happens here, before anybody else has a connection.
func loadExtensions(ctx context.Context, c *conn, dir string, names ...string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("load extensions: %w", err)
	}
	if err := CheckExtensions(dir, names...); err != nil {
		return err
	}
	for _, name := range names {
		if err := c.run(ctx, "LOAD "+quoteText(ExtensionPath(dir, name))); err != nil {
			return fmt.Errorf("load extension %s: %w", name, err)
		}
	}
	if err := c.run(ctx, "SET GLOBAL "+unsigned+" = false"); err != nil {
		return fmt.Errorf("load extensions: %w", err)
	}
	return nil
}

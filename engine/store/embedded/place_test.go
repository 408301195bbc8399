package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/qod-io/qod/engine/store/embedded"
)

func TestUnusablePlaces(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, cfg *embedded.Config)
		want   string
	}{
		"long socket path": {
			change: func(_ *testing.T, cfg *embedded.Config) { cfg.RunDir += strings.Repeat("/long", 25) },
			want:   "choose a shorter run directory",
		},
		"relative directory": {
			change: func(_ *testing.T, cfg *embedded.Config) { cfg.StateDir = "state" },
			want:   "is not absolute",
		},
		"run directory open to others": {
			change: func(t *testing.T, cfg *embedded.Config) {
				if err := os.Mkdir(cfg.RunDir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(cfg.RunDir, 0o777); err != nil {
					t.Fatal(err)
				}
			},
			want: "others may write to it",
		},
		"run directory is a link": {
			change: func(t *testing.T, cfg *embedded.Config) {
				if err := os.Symlink(t.TempDir(), cfg.RunDir); err != nil {
					t.Fatal(err)
				}
			},
			want: "it is no directory",
		},
		"no programs": {
			change: func(t *testing.T, cfg *embedded.Config) { cfg.BinDir = t.TempDir() },
			want:   "find Postgres programs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := place(t)
			changed := cfg
			test.change(t, &changed)
			_, err := embedded.Start(t.Context(), changed)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Start = %v, want …%s…", err, test.want)
			}
		})
	}
}

// TestPrivateHome: the home and the working directory are closed to the server's user. An ordinary user
// keeps the state below such a home; root, whose server runs as somebody else, is told what is wrong.
func TestPrivateHome(t *testing.T) {
	outside := place(t)
	home := filepath.Join(filepath.Dir(outside.StateDir), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Chdir(home)
	server := start(t, outside)
	stop(t, server)
	if err := embedded.Remove(outside); err != nil {
		t.Fatal(err)
	}

	inside := outside
	inside.StateDir = filepath.Join(home, "state")
	if os.Geteuid() == 0 {
		_, err := embedded.Start(t.Context(), inside)
		if err == nil || !strings.Contains(err.Error(), home+" has mode 0700") {
			t.Errorf("Start = %v", err)
		}
		return
	}
	stop(t, start(t, inside))
	if err := embedded.Remove(inside); err != nil {
		t.Fatal(err)
	}
}

// TestFetchedServer fetches the package and runs a cluster with it; no other version then takes it over.
func TestFetchedServer(t *testing.T) {
	cfg := place(t)
	dir := filepath.Join(filepath.Dir(cfg.StateDir), "dist")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bin, err := embedded.Fetch(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	cfg.BinDir = bin
	server := start(t, cfg)
	if got := query(t, server, "SHOW server_version_num"); !strings.HasPrefix(got, "18") {
		t.Errorf("version = %s", got)
	}
	stop(t, server)
	server = start(t, cfg)
	if got := query(t, server, "SELECT current_database()"); got != server.Database {
		t.Errorf("database = %q", got)
	}
	stop(t, server)

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	installed := cfg
	installed.BinDir, installed.NoFetch = "", true
	if _, err := embedded.Start(ctx, installed); err == nil || !strings.Contains(err.Error(), "of version 18, which made the cluster") {
		t.Errorf("Start with other programs = %v", err)
	}
}

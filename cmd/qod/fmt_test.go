package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFmt(t *testing.T) {
	const odd, good, broken = "a {\nb=1\n}\n", "a {\n  b = 1\n}\n", "a {\n"
	files := map[string]string{
		"main.qod.hcl": odd, "x.qodvars.hcl": "a=1\n", "x.qod.json": "{}\n", "main.hcl": odd, "in/side.qod.hcl": odd, ".git/x.qod.hcl": odd,
	}
	tests := map[string]struct {
		args    []string
		add     map[string]string // further files
		stdin   string
		code    int
		out     string
		changed []string
	}{
		"directory": {nil, nil, "", 0, "main.qod.hcl\nx.qodvars.hcl\n", []string{"main.qod.hcl", "x.qodvars.hcl"}},
		"recursive": {[]string{"-recursive"}, nil, "", 0, "in/side.qod.hcl\nmain.qod.hcl\nx.qodvars.hcl\n", []string{"in/side.qod.hcl", "main.qod.hcl", "x.qodvars.hcl"}},
		"one file":  {[]string{"in/side.qod.hcl"}, nil, "", 0, "in/side.qod.hcl\n", []string{"in/side.qod.hcl"}},
		"check":     {[]string{"--check"}, nil, "", 3, "main.qod.hcl\nx.qodvars.hcl\n", nil},
		"all good":  {[]string{"--check", "x.qod.json"}, nil, "", 0, "", nil},
		"no write":  {[]string{"--write=false"}, nil, "", 0, "main.qod.hcl\nx.qodvars.hcl\n", nil},
		"diff":      {[]string{"--diff", "--check", "in"}, nil, "", 3, "in/side.qod.hcl\ndiff in/side.qod.hcl in/side.qod.hcl (formatted)\n--- in/side.qod.hcl\n+++ in/side.qod.hcl (formatted)\n@@ -1,3 +1,3 @@\n a {\n-b=1\n+  b = 1\n }\n", nil},
		"broken": {nil, map[string]string{"a.qod.hcl": broken}, "", 2,
			"Error: Unclosed configuration block", []string{"main.qod.hcl", "x.qodvars.hcl"}},
		"stdin":        {[]string{"-"}, nil, odd, 0, good, nil},
		"stdin JSON":   {[]string{"-"}, nil, `{"a":1}`, 0, "{\n  \"a\": 1\n}\n", nil},
		"stdin check":  {[]string{"-", "--check"}, nil, odd, 3, "", nil},
		"stdin broken": {[]string{"-"}, nil, broken, 2, "on <stdin> line 1", nil},
		"other file":   {[]string{"main.hcl"}, nil, "", 1, "want a file named *.qod.hcl", nil},
		"no file":      {[]string{"x.qod.hcl"}, nil, "", 1, "format x.qod.hcl: no such file or directory", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			have := maps.Clone(files)
			maps.Copy(have, tt.add)
			for name, text := range have {
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			code, out := command(t, tt.stdin, append([]string{"fmt"}, tt.args...)...)
			exact := tt.code == 0 || tt.code == exitUnformatted
			if code != tt.code || exact && out != tt.out || !strings.Contains(out, tt.out) {
				t.Errorf("exit code %d, want %d, and printed\n%s\nwant\n%s", code, tt.code, out, tt.out)
			}
			if diff := cmp.Diff(tt.changed, changedFiles(t, have)); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

// changedFiles lists the files that are not as they were. All must have the mode that they had.
func changedFiles(t *testing.T, before map[string]string) []string {
	t.Helper()
	var changed []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if was, known := before[path]; !known || was != string(text) {
			changed = append(changed, path)
		}
		if info.Mode() != 0o640 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(changed)
	return changed
}

// A link stays a link.
func TestFmtFollowsLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("real", []byte("a{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", "main.qod.hcl"); err != nil {
		t.Fatal(err)
	}
	if code, out := command(t, "", "fmt", "main.qod.hcl"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	text, err := os.ReadFile("real")
	if err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink("main.qod.hcl"); err != nil || target != "real" || string(text) != "a {}\n" {
		t.Errorf("link to %q, %v; file %q", target, err, text)
	}
}

func TestSchemaCommand(t *testing.T) {
	code, out := command(t, "", "schema")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	written, err := os.ReadFile("../../docs/reference/qod.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), out); diff != "" {
		t.Error(diff)
	}
}

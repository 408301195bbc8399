package history_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine/history"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file of a story.
func golden(t *testing.T, story, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", story+".txtar")
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		archive.Files = append(archive.Files, txtar.File{Name: name})
		i = len(archive.Files) - 1
	}
	if *update {
		if os.Getenv("CI") != "" {
			t.Fatal("golden files are reviewed: -update is refused in CI")
		}
		archive.Files[i].Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(archive.Files[i].Data), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func indented(t *testing.T, changes []history.ChangeJSON) string {
	t.Helper()
	for i := range changes {
		changes[i].ID = "(id)"
	}
	raw, err := json.MarshalIndent(changes, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/config"
)

// Each section of docs/language.md is evaluated together with the page's first example.
func TestLanguagePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(page), "\n## ")
	base := examples(sections[0])
	if len(base) != 1 || len(sections) < 8 {
		t.Fatalf("the page has %d first examples and %d sections", len(base), len(sections))
	}
	for _, section := range sections[1:] {
		title, _, _ := strings.Cut(section, "\n")
		t.Run(title, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, "base.qod.hcl", base[0].source)
			for _, e := range examples(section) {
				put(t, dir, e.file, e.source)
			}
			loaded, diags := config.Load(dir)
			desired, more := loaded.Evaluate(config.Inputs{})
			diags = append(diags, more...)
			if len(diags) == 0 {
				return
			}
			out := &bytes.Buffer{}
			if err := config.WriteDiagnostics(out, diags, desired.Files(), false); err != nil {
				t.Fatal(err)
			}
			t.Errorf("an example is not as the page says:\n%s", out)
		})
	}
}

type example struct{ file, source string }

var fence = regexp.MustCompile("(?ms)^```(hcl|json)\n(.*?)^```")

// examples returns the fenced blocks. A first line "# dir/name" says which file a block is.
func examples(text string) []example {
	var out []example
	for i, m := range fence.FindAllStringSubmatch(text, -1) {
		e := example{file: string(rune('a'+i)) + ".qod." + m[1], source: m[2]}
		if first, rest, _ := strings.Cut(m[2], "\n"); strings.HasPrefix(first, "# ") && strings.Contains(first, "/") {
			e = example{file: strings.TrimPrefix(first, "# "), source: rest}
		}
		out = append(out, e)
	}
	return out
}

func put(t *testing.T, dir, name, source string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}

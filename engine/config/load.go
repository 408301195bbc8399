package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	suffix     = ".qod.hcl"
	autoSuffix = ".auto.qodvars.hcl"
)

// Config is the blocks of a directory, before anything is evaluated.
type Config struct {
	dir   string
	files map[string]*hcl.File // with masks
	auto  []*hcl.File          // var files that count without being named
	// autoBroken is true when one of auto did not parse.
	autoBroken bool
	// broken is true when a file did not parse: what is missing may be declared there.
	broken bool
	failed bool // Load reported an error

	stack      string
	stackRange hcl.Range
	variables  []*variable
	locals     []*local
	blocks     []*block
	byNode     map[node]*block
}

// Load reads the files of a directory named *.qod.hcl, not those of directories inside it. The Config
// is never nil: when diagnostics hold errors, it has what could be read, for Files and for Evaluate to
// find out what else is wrong.
func Load(dir string) (*Config, hcl.Diagnostics) {
	c := &Config{dir: dir, files: map[string]*hcl.File{}, byNode: map[node]*block{}}
	names, autoNames, err := list(dir)
	if err != nil {
		c.failed = true
		return c, failure("Configuration directory not readable", err.Error())
	}
	if len(names) == 0 {
		c.failed = true
		return c, failure("No configuration files", fmt.Sprintf(
			"The directory %s has no files named *%s. `qod init` writes a first one.", dir, suffix))
	}

	parser := hclparse.NewParser()
	var diags hcl.Diagnostics
	var bodies []*hclsyntax.Body
	for _, name := range names {
		file, more := parse(parser, filepath.Join(dir, name))
		diags = append(diags, more...)
		c.broken = c.broken || more.HasErrors()
		if file != nil && !more.HasErrors() {
			bodies = append(bodies, file.Body.(*hclsyntax.Body))
		}
	}
	for _, name := range autoNames {
		file, more := parse(parser, filepath.Join(dir, name))
		diags = append(diags, more...)
		c.autoBroken = c.autoBroken || more.HasErrors()
		if file != nil {
			c.auto = append(c.auto, file)
		}
	}
	for _, body := range bodies {
		diags = append(diags, c.collect(body)...)
	}
	diags = append(diags, c.checkStack()...)

	for name, file := range parser.Files() {
		c.files[name] = c.masked(name, file)
	}
	for _, body := range bodies {
		diags = append(diags, guard(duplicateKeys(body), c.files, nil)...)
	}
	c.failed = diags.HasErrors()
	return c, sorted(diags)
}

// Files returns the files read so far, for [WriteDiagnostics].
func (c *Config) Files() map[string]*hcl.File { return maps.Clone(c.files) }

func list(dir string) (names, auto []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case entry.IsDir() || strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, suffix):
			names = append(names, name)
		case strings.HasSuffix(name, autoSuffix):
			auto = append(auto, name)
		}
	}
	slices.Sort(names)
	slices.Sort(auto)
	return names, auto, nil
}

// parse returns nil instead of a file only when it cannot be read at all.
func parse(parser *hclparse.Parser, path string) (*hcl.File, hcl.Diagnostics) {
	src, err := os.ReadFile(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, failure("File not readable", fmt.Sprintf("%s cannot be read: %v.", path, err))
	}
	file, diags := parser.ParseHCL(src, path)
	if file != nil && file.Body == nil {
		file = nil
	}
	return file, firstOfStrings(diags)
}

// sorted puts diagnostics in the order of the places they are about: HCL itself goes through arguments in
// any order.
func sorted(diags hcl.Diagnostics) hcl.Diagnostics {
	place := func(d *hcl.Diagnostic) (string, int) {
		if d.Subject == nil {
			return "", 0
		}
		return d.Subject.Filename, d.Subject.Start.Byte
	}
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		aFile, aByte := place(a)
		bFile, bByte := place(b)
		return cmp.Or(cmp.Compare(aFile, bFile), aByte-bByte, cmp.Compare(a.Summary, b.Summary))
	})
	return diags
}

// firstOfStrings returns only the first diagnostic of a missing quote: it turns the rest of the file
// inside out, and what HCL says of that helps nobody.
func firstOfStrings(diags hcl.Diagnostics) hcl.Diagnostics {
	i := slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Summary == "Invalid multi-line string" })
	if i < 0 {
		return diags
	}
	return diags[i : i+1]
}

func failure(summary, detail string) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: detail}}
}

func failAt(rng hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: rng.Ptr(),
	}
}

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

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// Config is the blocks of a directory and of the modules it calls, before anything is evaluated.
type Config struct {
	dir   string
	files map[string]*hcl.File // with masks
	auto  []*hcl.File          // var files that count without being named
	// autoBroken is true when one of auto did not parse.
	autoBroken bool
	failed     bool // Load reported an error

	stack      string
	stackRange hcl.Range
	root       *module
	modules    []*module // root first, each directory once
	forms      map[*schema.Kind]*form
}

// Load reads the files of a directory named *.qod.hcl or *.qod.json, not those of directories inside it,
// and those of the modules that they call. The Config is never nil: when diagnostics hold errors, it has
// what could be read, for Files and for Evaluate to find out what else is wrong.
func Load(dir string) (*Config, hcl.Diagnostics) {
	c := &Config{dir: dir, files: map[string]*hcl.File{}, forms: map[*schema.Kind]*form{}}
	c.root = newModule(c, dir)
	c.modules = []*module{c.root}
	l := &loader{config: c, parser: hclparse.NewParser(), broken: map[string]bool{}, modules: map[string]*module{}}
	names, autoNames, err := list(dir, IsConfig)
	if err != nil {
		c.failed = true
		return c, failure("Configuration directory not readable", err.Error())
	}
	if len(names) == 0 {
		c.failed = true
		return c, failure("No configuration files", fmt.Sprintf(
			"%s has no files named *%s or *%s. `qod init` writes a first one.", inWords(dir), hclSuffix, jsonSuffix))
	}
	diags := l.readAuto(autoNames)
	diags = append(diags, l.read(c.root, names)...)
	diags = append(diags, l.readCalled()...)
	diags = append(diags, c.checkStack()...)
	diags = append(diags, guard(l.finish(), c.files, nil)...)
	c.failed = diags.HasErrors()
	return c, sorted(diags)
}

// inWords begins a sentence with a directory.
func inWords(dir string) string {
	if filepath.Clean(dir) == "." {
		return "This directory"
	}
	return "The directory " + dir
}

// Files returns the files read so far, for [WriteDiagnostics].
func (c *Config) Files() map[string]*hcl.File { return maps.Clone(c.files) }

// loader reads files into the modules of a Config.
type loader struct {
	config  *Config
	parser  *hclparse.Parser
	broken  map[string]bool    // files that did not parse, by name
	modules map[string]*module // by directory without symbolic links
	keys    hcl.Diagnostics    // of keys that are written twice: not yet looked through for secrets
}

// read parses the files of a module and sorts their blocks.
func (l *loader) read(m *module, names []string) hcl.Diagnostics {
	var diags hcl.Diagnostics
	var bodies []hcl.Body
	for _, p := range l.parse(m.dir, names) {
		file, name, more := p.file, p.name, p.diags
		diags = append(diags, more...)
		m.broken = m.broken || more.HasErrors()
		if file == nil || more.HasErrors() {
			continue
		}
		keys := duplicateKeys(file)
		l.keys = append(l.keys, keys...)
		if len(keys) > 0 && isJSON(name) { // what is written twice may be a block
			m.broken = true
			continue
		}
		bodies = append(bodies, file.Body)
	}
	for _, body := range bodies {
		if m.policy {
			diags = append(diags, m.collectPolicy(body)...)
			continue
		}
		diags = append(diags, m.collect(body)...)
	}
	return append(diags, m.decodeBlocks()...)
}

func (l *loader) readAuto(names []string) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, p := range l.parse(l.config.dir, names) {
		diags = append(diags, p.diags...)
		l.config.autoBroken = l.config.autoBroken || p.diags.HasErrors()
		if p.file != nil {
			l.config.auto = append(l.config.auto, p.file)
		}
	}
	return diags
}

// parsed is what parse returned of the file of that name.
type parsed struct {
	name  string
	file  *hcl.File
	diags hcl.Diagnostics
}

// parse parses the files of a directory on all processors, and returns them in the order of their names.
func (l *loader) parse(dir string, names []string) []parsed {
	out, parsers := make([]parsed, len(names)), make([]*hclparse.Parser, len(names))
	parallel.Each(len(names), 1, func(i int) {
		parsers[i] = hclparse.NewParser()
		file, diags := parse(parsers[i], filepath.Join(dir, names[i]))
		out[i] = parsed{names[i], file, diags}
	})
	for i, p := range out {
		l.broken[filepath.Join(dir, p.name)] = p.diags.HasErrors()
		for name, file := range parsers[i].Files() {
			l.parser.AddFile(name, file)
		}
	}
	return out
}

// finish puts masks on all files, once it is known which variables are sensitive.
func (l *loader) finish() hcl.Diagnostics {
	for name, file := range l.parser.Files() {
		l.config.files[name] = l.config.masked(name, file, l.broken[name])
	}
	return l.keys
}

// list returns the files of a directory that the function is true for, and those that give variables a value.
func list(dir string, is func(name string) bool) (names, auto []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case entry.IsDir() || strings.HasPrefix(name, "."):
		case is(name):
			names = append(names, name)
		case strings.HasSuffix(name, autoHCLSuffix) || strings.HasSuffix(name, autoJSONSuffix):
			auto = append(auto, name)
		}
	}
	slices.Sort(names)
	slices.Sort(auto)
	return names, auto, nil
}

// parse returns nil instead of a file when it cannot be read at all, or has numbers that must not be evaluated.
func parse(parser *hclparse.Parser, path string) (*hcl.File, hcl.Diagnostics) {
	src, err := os.ReadFile(path)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, failure("File not readable", fmt.Sprintf("%s cannot be read: %v.", path, err))
	}
	if isJSON(path) {
		file, diags := parser.ParseJSON(src, path)
		if !diags.HasErrors() {
			if numbers := refuseNumbers(src, path); numbers.HasErrors() {
				return nil, numbers
			}
		}
		if file != nil && file.Body != nil {
			file.Body = jsonBody{file.Body}
		}
		return file, withoutQuotes(diags)
	}
	file, diags := parser.ParseHCL(src, path)
	if numbers := refuseNumbers(src, path); numbers.HasErrors() {
		return nil, append(firstOfStrings(diags), numbers...)
	}
	if file != nil && file.Body == nil {
		file = nil
	}
	if file != nil {
		limitArithmetic(file.Body.(*hclsyntax.Body))
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

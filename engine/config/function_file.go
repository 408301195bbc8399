package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// fileFunctions read files below dir, and no others: neither "..", nor an absolute path nor a symbolic
// link leads out of it.
func fileFunctions(dir string) map[string]function.Function {
	pathParam := []function.Parameter{{Name: "path", Type: cty.String}}
	all := map[string]function.Function{
		"file": function.New(&function.Spec{
			Params: pathParam, Type: function.StaticReturnType(cty.String), RefineResult: notNull,
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				text, err := readText(dir, args[0].AsString())
				if err != nil {
					return cty.NilVal, function.NewArgError(0, err)
				}
				return cty.StringVal(text), nil
			},
		}),
		"fileexists": function.New(&function.Spec{
			Params: pathParam, Type: function.StaticReturnType(cty.Bool), RefineResult: notNull,
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				exists, err := exists(dir, args[0].AsString())
				if err != nil {
					return cty.NilVal, function.NewArgError(0, err)
				}
				return cty.BoolVal(exists), nil
			},
		}),
		"fileset": function.New(&function.Spec{
			Params: append(pathParam, function.Parameter{Name: "pattern", Type: cty.String}),
			Type:   function.StaticReturnType(cty.Set(cty.String)), RefineResult: notNull,
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				return fileSet(dir, args[0].AsString(), args[1].AsString())
			},
		}),
		"basename": ofText(func(name string) (string, error) { return path.Base(name), nil }),
		"dirname":  ofText(func(name string) (string, error) { return path.Dir(name), nil }),
	}
	for name, encode := range encodings() {
		all["file"+name] = ofText(func(name string) (string, error) {
			data, err := readFile(dir, name)
			return encode(data), err
		})
	}
	return all
}

func readText(dir, name string) (string, error) {
	data, err := readFile(dir, name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s is not UTF-8 text", name)
	}
	return string(data), nil
}

// readFile reads regular files of a bounded size: a pipe would have it wait, a device never end.
func readFile(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open configuration directory: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return nil, confined(name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", name)
	case info.Size() > maxText:
		return nil, fmt.Errorf("%s is larger than %d MiB", name, maxText>>20)
	}
	data, err := root.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return nil, confined(name, err)
	}
	return data, nil
}

// confined says why a file could not be read, and that files outside never can.
func confined(name string, err error) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("%s is outside the directory of this file, and files are only read inside it", name)
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("read %s: %w", name, err)
}

func exists(dir, name string) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, fmt.Errorf("open configuration directory: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, confined(name, err)
	}
	return info.Mode().IsRegular(), nil
}

// fileSet lists the files below base that the pattern matches, relative to base.
func fileSet(dir, base, pattern string) (cty.Value, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cty.NilVal, fmt.Errorf("open configuration directory: %w", err)
	}
	defer root.Close()
	base = path.Clean(filepath.ToSlash(base))
	if !fs.ValidPath(base) {
		return cty.NilVal, function.NewArgErrorf(0, "%s is outside the directory of this file", base)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return cty.NilVal, function.NewArgErrorf(1, "%q is not a pattern: it has *, **, ? and [...]", pattern)
	}
	var found []cty.Value
	err = fs.WalkDir(root.FS(), base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		rel := strings.TrimPrefix(name, base+"/")
		if matches(strings.Split(pattern, "/"), strings.Split(rel, "/")) {
			found = append(found, cty.StringVal(rel))
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cty.NilVal, function.NewArgError(0, confined(base, err))
	}
	if len(found) == 0 {
		return cty.SetValEmpty(cty.String), nil
	}
	return cty.SetVal(found), nil
}

// matches compares a path with a pattern part by part; ** stands for any number of parts.
func matches(pattern, parts []string) bool {
	switch {
	case len(pattern) == 0:
		return len(parts) == 0
	case pattern[0] == "**":
		return matches(pattern[1:], parts) || len(parts) > 0 && matches(pattern, parts[1:])
	case len(parts) == 0:
		return false
	}
	ok, _ := path.Match(pattern[0], parts[0])
	return ok && matches(pattern[1:], parts[1:])
}

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// fileFunctions read files below dir, and no others: neither "..", nor an absolute path nor a symbolic
// link leads out of it.
func fileFunctions(dir string) map[string]function.Function {
	pathParam := []function.Parameter{{Name: "path", Type: cty.String}}
	return map[string]function.Function{
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
	}
}

func readText(dir, name string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("open configuration directory: %w", err)
	}
	defer root.Close()
	data, err := root.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return "", confined(name, err)
	}
	if !utf8.Valid(data) {
		return "", fmt.Errorf("%s is not UTF-8 text", name)
	}
	return string(data), nil
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

// templateFile renders a file as a template that sees the given variables and all functions but itself.
func templateFile(dir string, all map[string]function.Function) function.Function {
	inside := maps.Clone(all)
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			text, err := readText(dir, name)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if t := args[1].Type(); !t.IsObjectType() && !t.IsMapType() {
				return cty.NilVal, function.NewArgErrorf(1, "want an object of variables, and this is a %s", t.FriendlyName())
			}
			return renderTemplate(name, text, &hcl.EvalContext{Variables: args[1].AsValueMap(), Functions: inside})
		},
	})
}

func renderTemplate(name, text string, ctx *hcl.EvalContext) (cty.Value, error) {
	expr, diags := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, function.NewArgError(0, diags)
	}
	for _, t := range expr.Variables() {
		if _, given := ctx.Variables[t.RootName()]; !given {
			return cty.NilVal, function.NewArgErrorf(1, "the template uses %q (at %s), and vars has %v",
				t.RootName(), t.SourceRange(), slices.Sorted(maps.Keys(ctx.Variables)))
		}
	}
	value, diags := expr.Value(ctx)
	if diags.HasErrors() {
		return cty.NilVal, function.NewArgError(0, diags)
	}
	value, err := convert.Convert(value, cty.String)
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "the template %s does not make a string: %s", name, err)
	}
	if value.IsNull() {
		return cty.NilVal, function.NewArgErrorf(0, "the template %s makes a null", name)
	}
	return value, nil
}

// Package test holds what is true of the whole tree, and the stories that need all of it.
package test

import (
	"encoding/json"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/crash"
)

const module = "github.com/qod-io/qod/"

// imports says what each package may import inside the module. cmd/qod and tests may import all.
var imports = map[string][]string{
	"schema":                      {},
	"engine/graph":                {},
	"engine/parallel":             {},
	"engine/crash":                {},
	"engine/config":               {"schema", "engine/graph", "engine/parallel"},
	"engine/plan":                 {"schema", "engine/graph", "engine/parallel"},
	"engine/history":              {"engine/plan", "engine/store", "schema"},
	"engine/export":               {"schema"},
	"engine/store":                {"schema"},
	"engine/store/embedded":       {},
	"engine/store/postgres":       {"engine/parallel", "engine/store", "schema"},
	"engine/catalog":              {"engine/store", "engine/crash", "schema"},
	"engine":                      {"engine/config", "engine/graph", "engine/plan", "engine/store", "engine/crash", "schema"},
	"runtime/wire":                {"schema"},
	"runtime/backend":             {"schema"},
	"runtime/sqltext":             {"runtime/wire"},
	"runtime/local":               {"runtime/backend", "runtime/wire", "schema"},
	"runtime/router":              {"runtime/backend", "runtime/wire", "schema"},
	"runtime/guard":               {"runtime/sqltext", "runtime/wire", "schema"},
	"runtime/node":                {"runtime/guard", "runtime/sqltext", "runtime/wire", "schema"},
	"runtime/oidc":                {},
	"runtime/oidc/oidctest":       {},
	"runtime/access":              {"engine/store", "runtime/oidc", "runtime/sqltext", "runtime/wire", "schema"},
	"runtime/reconcile":           {"runtime/backend", "runtime/wire", "engine/store", "schema"},
	"runtime/edge":                {"runtime/access", "runtime/router", "runtime/backend", "runtime/sqltext", "runtime/wire", "schema"},
	"runtime/api":                 {"engine", "engine/history", "engine/plan", "engine/store", "runtime/access", "runtime/wire", "schema"},
	"engine/store/storetest":      {"engine/store", "schema"},
	"runtime/backend/backendtest": {"runtime/backend", "runtime/wire"},

	"runtime/client":                  {"schema"},
	"provider":                        {"runtime/client", "schema"},
	"provider/terraform-provider-qod": {"provider"},
}

// pinned says which packages may import a third party directly.
var pinned = map[string][]string{
	"github.com/jackc/pgx":                  {"engine/store/postgres", "engine/catalog", "test/pgtest", "test"},
	"k8s.io/client-go":                      {"runtime/kubernetes"},
	"github.com/hashicorp/terraform-plugin": {"provider"},
	"github.com/duckdb/":                    {"runtime/node", "runtime/guard", "test/tpch"},
	"github.com/coreos/go-oidc":             {"runtime/oidc"},
	"github.com/go-jose/":                   {"runtime/oidc", "runtime/oidc/oidctest"},
}

// engineFree are the packages that a crash inside DuckDB must not be able to reach.
var engineFree = []string{"runtime/edge", "runtime/api", "runtime/reconcile", "runtime/client", "provider", "provider/terraform-provider-qod"}

type pkg struct {
	ImportPath string
	Dir, Doc   string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-tags", "duckdb_arrow", "-deps=false", "-json=ImportPath,Dir,Doc,GoFiles,Imports,Deps", "../...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		list = append(list, p)
	}
	return list
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		free := strings.HasPrefix(p.ImportPath, "cmd/") || strings.HasPrefix(p.ImportPath, "test")
		allowed, known := imports[p.ImportPath]
		if !known && !free {
			t.Errorf("%s is not in the table of imports", p.ImportPath)
		}
		for _, imported := range p.Imports {
			inside, ours := strings.CutPrefix(imported, module)
			if ours && !free && !slices.Contains(allowed, inside) {
				t.Errorf("%s may not import %s", p.ImportPath, inside)
			}
			for third, users := range pinned {
				if strings.HasPrefix(imported, third) && !slices.Contains(users, p.ImportPath) {
					t.Errorf("%s may not import %s: only %v may", p.ImportPath, imported, users)
				}
			}
		}
	}
}

func TestNoDuckDBBesideTheNode(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(engineFree, p.ImportPath) {
			continue
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "github.com/duckdb/") {
				t.Errorf("%s links %s", p.ImportPath, dep)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package documentation", p.ImportPath)
		}
	}
}

func TestSizes(t *testing.T) {
	walkSource(t, func(path string, fset *token.FileSet, f *ast.File) {
		if lines := fset.Position(f.End()).Line; lines > 450 {
			t.Errorf("%s has %d lines: 450 is the most", path, lines)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; lines > 70 {
				t.Errorf("%s: %s has %d lines: 70 is the most", path, fn.Name.Name, lines)
			}
			if fn.Name.Name == "init" && fn.Recv == nil {
				t.Errorf("%s has an init function", path)
			}
		}
	})
}

// A sleep in a synctest bubble passes no time; elsewhere it waits for luck.
func TestNoSleeps(t *testing.T) {
	walkSource(t, func(path string, fset *token.FileSet, f *ast.File) {
		if imported(f, "testing/synctest") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
				t.Errorf("%s sleeps", fset.Position(n.Pos()))
			}
			return true
		})
	})
}

func imported(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+path+`"` })
}

// A boundary that is not listed cannot be killed at by the crash test.
func TestCrashPointsAreListed(t *testing.T) {
	var called []string
	walkSource(t, func(path string, _ *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Point" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "crash" {
				called = append(called, strings.Trim(call.Args[0].(*ast.BasicLit).Value, `"`))
			}
			return true
		})
	})
	slices.Sort(called)
	listed := slices.Clone(crash.Points())
	slices.Sort(listed)
	if !slices.Equal(slices.Compact(called), listed) {
		t.Errorf("called %v, listed %v", called, listed)
	}
}

// A build tag that takes a protection away is in these files, and no build script names it.
func TestDangerousBuildTags(t *testing.T) {
	allowed := map[string][]string{
		"crashpoints": {"../engine/catalog/crash_test.go", "../engine/crash/off.go", "../engine/crash/on.go"},
		"noguard":     {"../runtime/node/judge.go", "../runtime/node/judge_off.go"},
	}
	found := map[string][]string{}
	walkSource(t, func(path string, _ *token.FileSet, f *ast.File) {
		for _, group := range f.Comments {
			for _, comment := range group.List {
				expr, err := constraint.Parse(comment.Text)
				if err != nil {
					continue
				}
				expr.Eval(func(tag string) bool {
					if _, dangerous := allowed[tag]; dangerous {
						found[tag] = append(found[tag], filepath.ToSlash(path))
					}
					return false
				})
			}
		}
	})
	if diff := cmp.Diff(allowed, found); diff != "" {
		t.Errorf("files with dangerous tags (-allowed +found):\n%s", diff)
	}
	makefile := readFile(t, "../Makefile")
	for tag := range allowed {
		if strings.Contains(makefile, tag) {
			t.Errorf("the Makefile builds with %s", tag)
		}
	}
}

func walkSource(t *testing.T, visit func(path string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		visit(path, fset, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

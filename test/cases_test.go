package test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The cases are what users of other tools reported; docs/decisions/005-public-cases.md has them all. Each
// has a stack, a tenant and a working directory of its own, over state that they share.
type publicCase struct {
	name string
	run  func(t *testing.T, i *installation)
}

func runCases(t *testing.T, i *installation, cases []publicCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id, _, _ := strings.Cut(c.name, " ")
			c.run(t, i.beside(t, strings.ToLower(strings.ReplaceAll(id, "-", ""))))
		})
	}
}

// beside returns an empty working directory over the same state.
func (i *installation) beside(t testing.TB, name string) *installation {
	t.Helper()
	b := &installation{name: name, root: i.root, dir: filepath.Join(i.root, name), bin: i.bin, env: i.env}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// stack replaces the configuration by one of the case's own stack and tenant.
func (i *installation) stack(t testing.TB, src string) {
	t.Helper()
	i.write(t, "qod {\n  stack = \""+i.name+"\"\n}\ntenant \""+i.name+"\" {}\n"+src)
}

// settled applies, and shows that nothing is left to do and that another apply writes nothing.
func (i *installation) settled(t testing.TB, flags ...string) {
	t.Helper()
	i.must(t, append([]string{"apply", "--auto-approve"}, flags...)...)
	i.clean(t, flags...)
	before := i.versions(t)
	i.must(t, append([]string{"apply", "--auto-approve"}, flags...)...)
	if after := i.versions(t); after != before {
		t.Errorf("an apply without changes wrote rows:\n%s\n%s", before, after)
	}
}

// clean shows that there is nothing to do.
func (i *installation) clean(t testing.TB, flags ...string) {
	t.Helper()
	i.expect(t, 0, []string{"No changes."}, append([]string{"plan", "--detailed-exitcode"}, flags...)...)
}

// with returns the same installation with more environment.
func (i *installation) with(env ...string) *installation {
	return &installation{name: i.name, root: i.root, dir: i.dir, bin: i.bin, env: append(slices.Clip(i.env), env...)}
}

// silent shows that none of the places has the text.
func silent(t testing.TB, text string, places map[string][]byte) {
	t.Helper()
	for place, content := range places {
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s shows %s", place, text)
		}
	}
}

func (i *installation) lacks(t testing.TB, out string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(out, w) {
			t.Errorf("the output says %q:\n%s", w, out)
		}
	}
}

const decision = "../docs/decisions/005-public-cases.md"

// known are the numbers of the public cases; some were not given.
var known = []string{
	"I-01", "I-02", "I-04", "I-05", "I-06", "I-07", "I-08", "I-10", "I-10b", "I-10c", "I-10d", "I-11", "I-12", "I-14", "I-15", "I-16",
	"I-17", "I-19", "I-20", "I-21", "I-23", "I-24", "I-25", "I-26", "I-29", "I-30", "I-32", "I-33", "I-34", "I-35", "I-37",
}

// Every case has a row in the decision, and every test that a row names exists. A case that has a test here
// is named by its row.
func TestPublicCasesAreAnswered(t *testing.T) {
	raw, err := os.ReadFile(decision)
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t, "..")
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/(I-[^`]+))?`")
	answered, told := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "I-") {
			continue
		}
		answered[strings.TrimSpace(cells[1])] = true
		found := named.FindAllStringSubmatch(cells[4], -1)
		for _, m := range found {
			told[m[2]] = true
			if !tests[m[1]] || m[2] != "" && !tests[m[2]] {
				t.Errorf("%s names the test %s, which does not exist", strings.TrimSpace(cells[1]), m[0])
			}
		}
		if len(found) == 0 && !strings.HasPrefix(strings.TrimSpace(cells[2]), "no") {
			t.Errorf("%s can occur and names no test", strings.TrimSpace(cells[1]))
		}
	}
	for _, id := range known {
		if !answered[id] {
			t.Errorf("%s has no row", id)
		}
	}
	for name := range tests {
		if strings.HasPrefix(name, "I-") && !told[name] {
			t.Errorf("no row names the case %q", name)
		}
	}
}

// testNames returns the tests of the tree, and the names of the cases.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names, files := map[string]bool{}, token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && strings.HasPrefix(text, "I-") && strings.Contains(text, " ") {
					names[text] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
)

// Exit codes of fmt, where Terraform's users look for them.
const (
	exitBroken      = 2 // a file does not parse
	exitUnformatted = 3 // with --check, a file would change
)

func newFmt(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fmt [PATH…|-]",
		Short: "Rewrite configuration files in canonical style",
		Long: "fmt formats *.qod.hcl, *.qodvars.hcl and *.qodpolicy.hcl files, and their likes in JSON, in the working directory or as\n" +
			"named, and prints the names of those that change. With - it reads standard input and writes standard output.\n" +
			"Only white space changes. A file that does not parse is reported and left as it is; the exit code is then 2. With --check\n" +
			"nothing is written, and the exit code is 3 when a file would change.",
		Example:           "  qod fmt\n  qod fmt --check --diff --recursive\n  qod fmt - < main.qod.hcl",
		ValidArgsFunction: completeFileArgs(-1),
	}
	f := formatter{app: a}
	cmd.Flags().BoolVar(&f.check, "check", false, "write nothing, and end with 3 when a file would change")
	cmd.Flags().BoolVar(&f.diff, "diff", false, "print what changes; values that may be secrets are not shown")
	cmd.Flags().BoolVar(&f.recursive, "recursive", false, "also format what is in directories inside")
	cmd.Flags().BoolVar(&f.write, "write", true, "write the files")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			args = []string{"."}
		}
		for _, arg := range args {
			if err := f.add(arg); err != nil {
				return err
			}
		}
		return f.result()
	}
	return cmd
}

// formatter is one run of fmt.
type formatter struct {
	*app
	check, diff, recursive, write bool
	broken, changed               bool
}

func (f *formatter) result() error {
	switch {
	case f.broken:
		return exitError{code: exitBroken}
	case f.check && f.changed:
		return exitError{code: exitUnformatted}
	}
	return nil
}

// add formats what one argument names.
func (f *formatter) add(arg string) error {
	if arg == "-" {
		return f.stream()
	}
	path := f.paths.file(arg)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("format %s: %w", arg, reason(err))
	case info.IsDir():
		return f.directory(path, arg)
	case !config.Formats(path):
		return fmt.Errorf("format %s: want a file named *.qod.hcl, *.qodvars.hcl, *.qodpolicy.hcl, or the same with .json", arg)
	}
	return f.file(path, arg)
}

// directory formats the files of a directory. Names that begin with a dot are not looked at.
func (f *formatter) directory(path, shown string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("format %s: %w", shown, reason(err))
	}
	for _, entry := range entries {
		at, name := filepath.Join(path, entry.Name()), filepath.Join(shown, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case entry.IsDir():
			if f.recursive {
				err = f.directory(at, name)
			}
		case config.Formats(at):
			err = f.file(at, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *formatter) file(path, shown string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("format %s: %w", shown, reason(err))
	}
	out, ok := f.format(shown, src)
	if !ok || bytes.Equal(src, out) {
		return nil
	}
	f.changed = true
	f.printf("%s\n", shown)
	if f.diff {
		f.printDiff(shown, src, out)
	}
	if f.check || !f.write {
		return nil
	}
	if err := replaceFile(path, out); err != nil {
		return fmt.Errorf("format %s: %w", shown, err)
	}
	return nil
}

// stream formats standard input as HCL, or as JSON where it begins with a brace.
func (f *formatter) stream() error {
	src, err := io.ReadAll(f.stdin)
	if err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	name := "<stdin>"
	if bytes.HasPrefix(bytes.TrimSpace(src), []byte("{")) {
		name = "<stdin>.json"
	}
	out, ok := f.format(name, src)
	if !ok {
		return nil
	}
	f.changed = f.changed || !bytes.Equal(src, out)
	switch {
	case f.diff:
		f.printDiff(name, src, out)
	case !f.check:
		f.printf("%s", out)
	}
	return nil
}

func (f *formatter) format(name string, src []byte) ([]byte, bool) {
	out, diags := config.Format(name, src)
	// Without the files, whose broken text may be a secret.
	config.WriteDiagnostics(f.stderr, diags, nil, f.colored(f.stderr))
	f.broken = f.broken || diags.HasErrors()
	return out, !diags.HasErrors()
}

func (f *formatter) printDiff(name string, before, after []byte) {
	f.printf("%s", diff.Diff(name, config.Masked(name, before), name+" (formatted)", config.Masked(name, after)))
}

// replaceFile writes a new file beside the old one and takes it in its place, so that nobody ever reads
// half of one. The file that a link leads to is replaced, not the link; the mode stays.
func replaceFile(path string, data []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return reason(err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".qod-fmt-*")
	if err != nil {
		return reason(err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return reason(err)
	}
	return os.Rename(temp.Name(), path)
}

// reason is an error of a file without its path, which the caller names as its user wrote it.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shown lists the commands that people run, in the order of help.
func shown(root *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, cmd := range root.Commands() {
		if !cmd.Hidden && cmd.Name() != "help" && cmd.Name() != "completion" {
			list = append(append(list, cmd), shown(cmd)...)
		}
	}
	return list
}

func TestCommandsPageIsCurrent(t *testing.T) {
	const path = "../../docs/reference/commands.md"
	want := commandsPage(newRoot(&app{}))
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("commands.md differs (-file +commands); run: make docs\n%s", diff)
	}
}

func commandsPage(root *cobra.Command) string {
	out := &strings.Builder{}
	out.WriteString("# Commands\n\n`qod help COMMAND` prints the same. An error ends a command with exit code 1; other codes are named where they\n" +
		"occur. With `--json`, standard output has the JSON alone.\n")
	all := shown(root)
	for _, g := range root.Groups() {
		fmt.Fprintf(out, "\n**%s** ", g.Title)
		var links []string
		for _, cmd := range all {
			if cmd.GroupID == g.ID {
				links = append(links, fmt.Sprintf("[%s](#%s)", cmd.Name(), strings.ReplaceAll(cmd.CommandPath(), " ", "-")))
			}
		}
		out.WriteString(strings.Join(links, ", ") + "\n")
	}
	out.WriteString("\n## Flags of every command\n\n")
	flagTable(out, root.PersistentFlags())
	out.WriteString("\nFiles that a command's arguments and flags name are relative to the directory of `--chdir`, as the configuration is:\n" +
		"`qod -C DIRECTORY plan --out next.qodplan` saves in it, and `qod -C DIRECTORY apply next.qodplan` finds it. Settings and\n" +
		"`--config` belong to the program: they are relative to where qod was started.\n")
	out.WriteString("\nEach [setting](settings.md) is a flag as well. `qod completion SHELL` prints what bash, zsh or fish need to complete commands,\n" +
		"flags and addresses.\n")
	for _, cmd := range all {
		fmt.Fprintf(out, "\n## %s\n\n%s.\n", cmd.CommandPath(), cmd.Short)
		if !cmd.HasSubCommands() {
			fmt.Fprintf(out, "\n```sh\n%s\n```\n", cmd.UseLine())
		}
		fmt.Fprintf(out, "\n%s\n", cmd.Long)
		if flags := cmd.NonInheritedFlags(); flags.HasAvailableFlags() {
			out.WriteString("\n")
			flagTable(out, flags)
		}
		if cmd.Example != "" {
			fmt.Fprintf(out, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
		}
	}
	return out.String()
}

func flagTable(out *strings.Builder, flags *pflag.FlagSet) {
	out.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + value)
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fallback := "`" + f.DefValue + "`"
		if slices.Contains([]string{"", "[]", "false"}, f.DefValue) {
			fallback = ""
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", name, fallback, strings.ReplaceAll(usage, "|", `\|`))
	})
}

// Help is whole: every command says what it does, shows how, and no two describe one flag differently.
func TestCommandsAreDescribed(t *testing.T) {
	own := map[string]bool{"json": true, "out": true, "init --stack": true, "sql --user": true, "login --user": true, "sql --format": true, "sql --tenant": true, "audit --tenant": true}
	words := map[string]string{}
	for _, cmd := range shown(newRoot(&app{})) {
		path := strings.TrimPrefix(cmd.CommandPath(), "qod ")
		if cmd.Short == "" || cmd.Long == "" || !cmd.HasSubCommands() && cmd.Example == "" {
			t.Errorf("%s lacks words", path)
		}
		for line := range strings.Lines(cmd.Long) {
			if n := len([]rune(line)); n > 122 {
				t.Errorf("%s: a line of help is %d characters long: %s", path, n, line)
			}
		}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			switch {
			case len(strings.Fields(usage)) < 2:
				t.Errorf("%s --%s is not described: %q", path, f.Name, usage)
			case value == "string" || value == "int" || value == "duration" || value == "float":
				t.Errorf("%s --%s does not say what its value is", path, f.Name)
			case own[f.Name] || own[path+" --"+f.Name] || f.Name == "help":
			case words[f.Name] == "":
				words[f.Name] = f.Usage
			case words[f.Name] != f.Usage:
				t.Errorf("%s --%s is %q, and elsewhere %q", path, f.Name, f.Usage, words[f.Name])
			}
		})
	}
}

var exampleWord = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`)

// Examples are command lines that the commands take.
func TestExamplesAreCommands(t *testing.T) {
	for _, cmd := range shown(newRoot(&app{})) {
		for _, line := range regexp.MustCompile(`\n| && | \| `).Split(cmd.Example, -1) {
			_, line, found := strings.Cut(" "+line, " qod ")
			if !found {
				continue // echo, dot
			}
			line, _, _ = strings.Cut(line, " > ")
			line, _, _ = strings.Cut(line, " < ")
			var args []string
			for _, word := range exampleWord.FindAllString(line, -1) {
				args = append(args, strings.NewReplacer("'", "", `\"`, `"`).Replace(word))
			}
			root := newRoot(&app{})
			have, rest, err := root.Find(args)
			if err == nil {
				err = have.ParseFlags(rest)
			}
			if err == nil && have.Args != nil {
				err = have.Args(have, have.Flags().Args())
			}
			if err != nil || !have.Runnable() {
				t.Errorf("the example %q of %s: %v", line, cmd.Name(), err)
			}
		}
	}
}

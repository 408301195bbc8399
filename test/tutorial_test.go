package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Each page of docs/tutorials is followed to the letter: its files are written, its commands run, and they
// print what the page shows. There, a line "..." stands for any lines, and "..." in a line for any words.
func TestTutorials(t *testing.T) {
	pages, err := filepath.Glob("../docs/tutorials/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("there are no tutorials", err)
	}
	for _, page := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			i := install(t, "")
			if err := os.Symlink(i.bin, filepath.Join(i.root, "qod")); err != nil {
				t.Fatal(err)
			}
			i.env = append(i.env, "PATH="+i.root+":"+os.Getenv("PATH"))
			for _, step := range tutorialSteps(string(text)) {
				if step.file != "" {
					i.writeFile(t, step.file, step.text)
					continue
				}
				i.follow(t, step.text)
			}
		})
	}
}

// tutorialStep is a file to write, or a transcript to follow.
type tutorialStep struct{ file, text string }

var tutorialFence = regexp.MustCompile("(?ms)^```(console|hcl|json)(?: ([^\n]+))?\n(.*?)^```")

func tutorialSteps(page string) []tutorialStep {
	var steps []tutorialStep
	for _, m := range tutorialFence.FindAllStringSubmatch(page, -1) {
		if m[1] == "console" || m[2] != "" {
			steps = append(steps, tutorialStep{m[2], m[3]})
		}
	}
	return steps
}

// writeFile writes a file of the working directory, and its directories.
func (i *installation) writeFile(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(i.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// follow runs the commands of a transcript: lines that start with "$ ", and what they print.
func (i *installation) follow(t testing.TB, transcript string) {
	t.Helper()
	for _, part := range strings.Split("\n"+transcript, "\n$ ")[1:] {
		command, want, _ := strings.Cut(part, "\n")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", command)
		cmd.Dir, cmd.Env = i.dir, i.env
		raw, err := cmd.CombinedOutput()
		cancel()
		if cmd.ProcessState == nil {
			t.Fatalf("$ %s: %v", command, err)
		}
		if where := differs(string(raw), want); where != "" {
			t.Fatalf("$ %s (exit code %d) prints something else from here:\n%s\n\nIt prints:\n%s",
				command, cmd.ProcessState.ExitCode(), where, raw)
		}
	}
}

// differs returns the first line of the transcript that the output does not have there, or "" where it is
// as the transcript says.
func differs(output, transcript string) string {
	var want strings.Builder
	lines := strings.Split(strings.TrimRight(transcript, "\n"), "\n")
	for i, line := range lines {
		switch {
		case line == "...":
			want.WriteString(`(?:.*\n)*?`)
		case transcript != "":
			want.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*`) + `\n`)
		}
		if !regexp.MustCompile(`^` + want.String()).MatchString(output) {
			return line
		}
		if i == len(lines)-1 && !regexp.MustCompile(`^`+want.String()+`\n*$`).MatchString(output) {
			return line + "\n(and what comes after it)"
		}
	}
	return ""
}

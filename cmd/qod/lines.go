package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// maxLine bounds a line that is piped in, in bytes.
const maxLine = 16 << 20

// errGivenUp is returned for a line that Ctrl-C gave up.
var errGivenUp = errors.New("interrupted")

// lines are what a person or a program types.
type lines struct {
	person bool // at a terminal: with prompts, and errors end nothing
	read   func(prompt string) (string, error)
	number int // of the last line
}

// newLines reads from a terminal with an editor and a history, from everything else as it is.
func newLines(in io.Reader, out io.Writer) *lines {
	f, ok := in.(*os.File)
	if !ok || !terminal(in) || !terminal(out) {
		return pipedLines(in)
	}
	i := &interrupts{from: f}
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{i, out}, "")
	return &lines{person: true, read: func(prompt string) (string, error) {
		// Raw only while a line is read: elsewhere Ctrl-C has to be a signal.
		before, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return "", fmt.Errorf("read from the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(f.Fd()), before) }() // a terminal that is gone needs nothing
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			_ = editor.SetSize(width, height) // the line is drawn less well without
		}
		i.pressed = false
		editor.SetPrompt(prompt)
		line, err := editor.ReadLine()
		switch {
		case i.pressed:
			return "", errGivenUp
		case errors.Is(err, term.ErrPasteIndicator):
			err = nil
		}
		return line, err
	}}
}

func pipedLines(in io.Reader) *lines {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	return &lines{read: func(string) (string, error) {
		if scanner.Scan() {
			return scanner.Text(), nil
		}
		if err := scanner.Err(); err != nil {
			return "", fmt.Errorf("read input: %w", err)
		}
		return "", io.EOF
	}}
}

// next returns the next line; io.EOF at the end. It does not wait for one when ctx ends.
func (l *lines) next(ctx context.Context, prompt string) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() { // ends with its line, or with the process
		line, err := l.read(prompt)
		done <- result{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case r := <-done:
		l.number++
		return strings.TrimSuffix(r.line, "\r"), r.err
	}
}

// interrupts turns Ctrl-C, which ends the editor's reading for good, into an empty line.
type interrupts struct {
	from    io.Reader
	pressed bool
}

const (
	ctrlC = "\x03"
	// giveUp deletes what is behind and before the cursor and ends the line.
	giveUp = "\x0b\x15\r"
)

func (i *interrupts) Read(p []byte) (int, error) {
	room := max(1, len(p)/len(giveUp))
	n, err := i.from.Read(p[:room])
	if !bytes.Contains(p[:n], []byte(ctrlC)) {
		return n, err
	}
	i.pressed = true
	instead := giveUp
	if len(p) < len(giveUp) {
		instead = "\r"
	}
	return copy(p, bytes.ReplaceAll(bytes.Clone(p[:n]), []byte(ctrlC), []byte(instead))), err
}

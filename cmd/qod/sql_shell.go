package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/qod-io/qod/runtime/sqltext"
)

// sqlShell runs statements one after the other, in one session.
type sqlShell struct {
	*app
	session *sqlSession
	lines   *lines
	name    string // of the input, for errors
	timing  bool

	text  string // what is read and not run
	first int    // number of its first line
}

const shellHelp = `\q            end
\d            list tables and views
\d TABLE      show a table's columns
\timing       show how long statements take, or no longer
\?            this help
Statements end with a semicolon. Ctrl-C cancels the one that runs.
`

func (a *app) sqlShell(ctx context.Context, o *sqlOptions) error {
	s := &sqlShell{app: a, name: "input"}
	if o.file == "" {
		s.lines = newLines(a.stdin, a.stdout)
	} else {
		f, err := os.Open(a.paths.file(o.file))
		if err != nil {
			return fmt.Errorf("read statements: %w", err)
		}
		defer f.Close()
		s.lines, s.name = pipedLines(f), filepath.Base(o.file)
	}
	if s.lines.person {
		// An interrupt is for the statement that runs, and only the request to end is for all.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
		defer stop()
		s.timing = true
	}
	var err error
	if s.session, err = a.login(ctx, o); err != nil {
		return err
	}
	defer s.session.client.Close()
	if s.lines.person {
		a.printf("Statements end with a semicolon; \\? for help, \\q to end.\n")
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	_, err = s.session.client.CloseSession(s.session.bear(ctx), &flight.CloseSessionRequest{})
	return told(err)
}

func (s *sqlShell) run(ctx context.Context) error {
	for {
		prompt := "qod> "
		if strings.TrimSpace(s.text) != "" {
			prompt = "  -> "
		}
		line, err := s.lines.next(ctx, prompt)
		switch {
		case errors.Is(err, errGivenUp):
			s.text = ""
			continue
		case errors.Is(err, io.EOF):
			return s.last(ctx)
		case err != nil:
			return err
		}
		if strings.TrimSpace(s.text) == "" {
			s.text, s.first = "", s.lines.number
			if command, ok := strings.CutPrefix(strings.TrimSpace(line), `\`); ok {
				end, err := s.command(ctx, command)
				if end || err != nil {
					return err
				}
				continue
			}
		}
		s.text += line + "\n"
		if !strings.Contains(line, ";") {
			continue // nothing ends here, and long statements are read once
		}
		if err := s.statements(ctx); err != nil {
			return err
		}
	}
}

// statements runs what is complete of the text.
func (s *sqlShell) statements(ctx context.Context) error {
	for {
		length, tokens, err := sqltext.First(s.text)
		if err != nil {
			s.text = ""
			return s.failed(s.first, err)
		}
		if length == 0 {
			return nil
		}
		text := s.text[:length]
		line := s.first
		s.text, s.first = s.text[length:], s.first+strings.Count(text, "\n")
		if len(tokens) == 0 {
			continue
		}
		if err := s.statement(ctx, line, text, tokens); err != nil {
			return err
		}
	}
}

// last runs what the input ends with: the semicolon of the last statement may be missing in a file.
func (s *sqlShell) last(ctx context.Context) error {
	if s.lines.person {
		s.printf("\n")
		return nil
	}
	tokens, err := sqltext.Tokens(s.text)
	if err != nil {
		return s.failed(s.first, err)
	}
	if len(tokens) == 0 {
		return nil
	}
	return s.statement(ctx, s.first, s.text, tokens)
}

// statement runs one statement, whose text starts on a line of the input.
func (s *sqlShell) statement(ctx context.Context, line int, text string, tokens []sqltext.Token) error {
	start := tokens[0].Start
	return s.do(ctx, line+strings.Count(text[:start], "\n"), text[start:tokens[len(tokens)-1].End])
}

func (s *sqlShell) do(ctx context.Context, line int, statement string) error {
	running := ctx
	if s.lines.person {
		var stop context.CancelFunc
		running, stop = signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
	}
	start := time.Now()
	err := s.session.run(s.session.bear(running), s.stdout, statement)
	switch {
	case err != nil && running.Err() != nil && ctx.Err() == nil:
		return s.failed(line, errors.New("cancelled"))
	case err != nil:
		return s.failed(line, err)
	}
	if s.timing {
		s.printf("Time: %.1f ms\n", float64(time.Since(start).Microseconds())/1000)
	}
	return nil
}

// failed tells a person what went wrong and goes on; elsewhere it is the end.
func (s *sqlShell) failed(line int, err error) error {
	if !s.lines.person {
		return fmt.Errorf("%s, line %d: %w", s.name, line, err)
	}
	fmt.Fprintln(s.stderr, "Error:", err)
	return nil
}

// command does what starts with a backslash. It reports whether that is the end.
func (s *sqlShell) command(ctx context.Context, command string) (end bool, err error) {
	name, rest, _ := strings.Cut(command, " ")
	rest = strings.TrimSuffix(strings.TrimSpace(rest), ";")
	switch {
	case name == "q":
		return true, nil
	case name == "?":
		s.printf("%s", shellHelp)
	case name == "timing":
		s.timing = !s.timing
		s.printf("Timing is %s.\n", map[bool]string{true: "on", false: "off"}[s.timing])
	case name == "d" && rest == "":
		return false, s.do(ctx, s.lines.number, listTables)
	case name == "d":
		return false, s.do(ctx, s.lines.number, "DESCRIBE "+rest)
	default:
		return false, s.failed(s.lines.number, fmt.Errorf("there is no command \\%s: \\? lists them", name))
	}
	return false, nil
}

const listTables = "SELECT table_schema AS \"schema\", table_name AS \"table\", table_type AS \"type\" " +
	"FROM information_schema.tables ORDER BY ALL"

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
)

// exitEnded is the exit code of a process that was told twice to end.
const exitEnded = 130

var errInterrupted = errors.New("interrupted: nothing was changed")

// acting says whether what the process does has to be finished by somebody. Its zero value: no.
type acting struct{ flag atomic.Bool }

// begin marks the time from which a process that dies leaves work behind.
func (a *acting) begin() { a.flag.Store(true) }

// await returns the exit code of a command. The first signal ends the command's context: one that has
// committed starts no further step then, finishes what runs, and says what is left. The second signal
// ends the process at once.
func (a *acting) await(stop context.CancelCauseFunc, signals <-chan os.Signal, code <-chan int, stderr io.Writer) int {
	told := false
	for {
		select {
		case c := <-code:
			return c
		case s := <-signals:
			if told {
				a.abandon(s, stderr)
				return exitEnded
			}
			told = true
			stop(errInterrupted)
			if a.flag.Load() {
				fmt.Fprintf(stderr, "\nGot %s: no further step starts, what runs is finished. Once more ends it at once.\n", s)
			}
		}
	}
}

func (a *acting) abandon(s os.Signal, stderr io.Writer) {
	words := "Ended at once."
	if a.flag.Load() {
		words += " What the store says of databases and nodes may be behind; run qod apply again, it finishes."
	}
	fmt.Fprintf(stderr, "\nGot %s again. %s\n", s, words)
}

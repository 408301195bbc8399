package guard

import (
	"fmt"
	"unicode/utf8"
)

// Code is the reason for a Refusal, for programs.
type Code string

const (
	// NotAllowed: statements of this kind, or with this clause, are not allowed.
	NotAllowed Code = "not_allowed"
	// TooLarge: the statement is longer, deeper or has more parts than is read.
	TooLarge Code = "too_large"
	// Multiple: the text has more than one statement, or none.
	Multiple Code = "multiple"
	// BadFunction: a function that is not allowed.
	BadFunction Code = "function"
	// BadName: a table, schema or database that is not within reach.
	BadName Code = "name"
	// BadSetting: a setting, or a value of it, that is not allowed.
	BadSetting Code = "setting"
	// NotAuthorized: the user lacks the permission, or what is named does not exist.
	NotAuthorized Code = "permission"
	// Unknown: a part of DuckDB's syntax tree that this version does not know.
	Unknown Code = "unknown"
)

// Refusal is the error for a statement that may not run.
type Refusal struct {
	Code Code
	// Message says what is not allowed and, where there is one, the way that is. It holds at most a
	// name of the statement.
	Message string
	// Object is what the user may not touch, as the statement names it, and Privilege what is missing for
	// that; both empty where the refusal is for another reason.
	Object, Privilege string
}

func (r *Refusal) Error() string { return r.Message }

// SyntaxError is the error for a text that is no statement. Its message is DuckDB's.
type SyntaxError struct {
	Message string
}

func (e *SyntaxError) Error() string { return e.Message }

const maxMessage = 400 // bytes; DuckDB quotes the text around an error

func syntaxError(message string) *SyntaxError {
	return &SyntaxError{Message: shorten(message, maxMessage)}
}

func refuse(code Code, format string, args ...string) *Refusal {
	quoted := make([]any, len(args))
	for i, a := range args {
		quoted[i] = shorten(a, 64)
	}
	return &Refusal{Code: code, Message: fmt.Sprintf(format, quoted...)}
}

// shorten returns at most max bytes of s and no part of a rune.
func shorten(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max] + "…"
}

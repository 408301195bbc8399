package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Codes of errors, as the API has them.
const (
	BadRequest      = "bad_request"
	Unauthenticated = "unauthenticated"
	Forbidden       = "forbidden"
	ReadOnly        = "read_only"
	NotFound        = "not_found"
	Conflict        = "conflict"
	ListingGone     = "listing_gone"
	Revision        = "revision"
	Invalid         = "invalid"
)

// Error is an answer that is a refusal.
type Error struct {
	Status  int    // of HTTP
	Code    string // "" where something between here and qod answered
	Message string
	// Path leads to the argument in the body, as in changes[0].spec.memory, or is that of the request.
	Path    string
	Details []Detail
	// Request is the answer's X-Request-Id, for the server's log.
	Request string
}

// Detail is one of several things that are wrong.
type Detail struct {
	Code    string `json:"error"`
	Message string `json:"message"`
	Path    string `json:"path"`
}

func (e *Error) Error() string {
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	for _, d := range e.Details {
		if d.Message != e.Message {
			text += "\n  " + d.Message
		}
	}
	if e.Status >= http.StatusInternalServerError && e.Request != "" {
		text += " (request " + e.Request + ")"
	}
	return text
}

// Each returns what is wrong, one by one; without details, the error itself.
func (e *Error) Each() []Detail {
	if len(e.Details) > 0 {
		return e.Details
	}
	return []Detail{{Code: e.Code, Message: e.Error(), Path: e.Path}}
}

// Is reports whether err is an answer of the server with that code.
func Is(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// refusal reads the error of an answer. What is not the API's own, such as a proxy's page, is not repeated.
func refusal(answer *http.Response, body []byte) *Error {
	e := &Error{Status: answer.StatusCode, Request: answer.Header.Get("X-Request-Id")}
	var told struct {
		Detail
		Details []Detail `json:"details"`
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") || json.Unmarshal(body, &told) != nil {
		return e
	}
	e.Code, e.Message, e.Path, e.Details = told.Code, told.Message, told.Path, told.Details
	return e
}

package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
)

// failure is an answer that says what is wrong.
type failure struct {
	status int
	Fault
	Details []Fault `json:"details"`
	wait    time.Duration
	err     error // for the log only
}

// Fault is one thing that is wrong, for programs and for people.
type Fault struct {
	Code    string `json:"error"`
	Message string `json:"message"`
	// Path is that of the argument in the body, as in changes[0].spec.memory, else that of the request.
	Path string `json:"path"`
}

func refuse(status int, code, message string) *failure {
	return &failure{status: status, Fault: Fault{Code: code, Message: message}}
}

// at says which argument of the body is meant.
func (f *failure) at(path string) *failure {
	f.Path = path
	return f
}

// notFound is for what is not there, and for what the caller may not see.
func notFound() *failure {
	return refuse(http.StatusNotFound, "not_found", "there is nothing here")
}

func badRequest(format string, args ...any) *failure {
	return refuse(http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...))
}

func tooMany(wait time.Duration) *failure {
	f := refuse(http.StatusTooManyRequests, "too_many_requests", "too many requests: wait")
	f.wait = wait
	return f
}

// broken is for what is no fault of the client. What it was is in the log only.
func broken(err error) *failure {
	f := refuse(http.StatusServiceUnavailable, "unavailable", "the store does not answer: try again")
	f.wait, f.err = time.Second, err
	return f
}

// fail answers with what is wrong.
func (c *call) fail(f *failure) {
	if f.Path == "" {
		f.Path = c.URL.Path
	}
	if f.Details == nil {
		f.Details = []Fault{f.Fault}
	}
	for i := range f.Details {
		if f.Details[i].Path == "" {
			f.Details[i].Path = c.URL.Path
		}
	}
	if f.err != nil {
		c.rest.Log.ErrorContext(c.Context(), "request failed", "id", c.id, "error", f.err)
	}
	if f.wait > 0 {
		c.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.wait.Seconds()))))
	}
	if f.status == http.StatusUnauthorized {
		c.Header().Add("WWW-Authenticate", `Bearer realm="qod"`)
		c.Header().Add("WWW-Authenticate", `Basic realm="qod", charset="UTF-8"`)
	}
	c.code = f.Code
	c.answer(f.status, f)
}

// answer writes a body as JSON.
func (c *call) answer(status int, body any) {
	c.Header().Set("Content-Type", "application/json")
	c.WriteHeader(status)
	enc := json.NewEncoder(c)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(body) // the client is gone when this fails
}

// ok answers with a body.
func (c *call) ok(body any) *failure {
	c.answer(http.StatusOK, body)
	return nil
}

var statusOf = map[engine.FaultCode]int{
	engine.FaultNotFound: http.StatusNotFound,
	engine.FaultRevision: http.StatusPreconditionFailed,
	engine.FaultConflict: http.StatusConflict,
	engine.FaultInvalid:  http.StatusUnprocessableEntity,
}

// failed turns the error of a plan or commit into an answer. The places say where in the body each change is.
func failed(err error, places []place) *failure {
	var (
		request  *engine.RequestError
		stack    *store.StackError
		conflict *store.ConflictError
	)
	switch {
	case errors.As(err, &request):
		return faults(request.Faults, places)
	case errors.As(err, &stack):
		return refuse(http.StatusConflict, "conflict", fmt.Sprintf("stack %q is known with another lineage", stack.Name))
	case errors.As(err, &conflict):
		return refuse(http.StatusConflict, "conflict", conflict.Error())
	case errors.Is(err, store.ErrPlanUsed):
		return refuse(http.StatusConflict, "plan_used", err.Error())
	}
	return broken(err)
}

// place is where in the body a change is: "changes[0]", or "" for a body that is one.
type place struct {
	at      string
	written map[string][]cty.Value // as schema.Written has its items
}

func faults(list []engine.Fault, places []place) *failure {
	f := &failure{Details: make([]Fault, len(list))}
	for i, fault := range list {
		message := fault.Summary
		if fault.Detail != "" {
			message += ". " + fault.Detail
		}
		d := Fault{Code: string(fault.Code), Message: message}
		if fault.Code == engine.FaultNotFound {
			d.Message = notFound().Message // the same as for what may not be seen
		}
		if fault.Index >= 0 && fault.Index < len(places) {
			p := places[fault.Index]
			d.Path = p.at
			if len(fault.Path) > 0 {
				d.Path = p.spec(fault.Path)
			}
		}
		f.Details[i] = d
		if i == 0 {
			f.Fault, f.status = d, statusOf[fault.Code]
		}
	}
	return f
}

// spec writes the path of an argument of the value: changes[0].spec.permission[1].table.
func (p place) spec(path cty.Path) string {
	out := "spec"
	if p.at != "" {
		out = p.at + "." + out
	}
	block := ""
	for _, step := range path {
		switch step := step.(type) {
		case cty.GetAttrStep:
			out += "." + step.Name
			block = step.Name
		case cty.IndexStep:
			out += fmt.Sprintf("[%d]", p.index(block, step.Key))
		}
	}
	return out
}

// index finds an element of a set among those that were written.
func (p place) index(block string, key cty.Value) int {
	if key.Type() == cty.Number {
		n, _ := key.AsBigFloat().Int64()
		return int(n)
	}
	for i, item := range p.written[block] {
		if item.RawEquals(key) {
			return i
		}
	}
	return 0
}

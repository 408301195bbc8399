package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// stream writes events as lines of JSON, for programs that follow an apply. Several goroutines may write:
// a line is written whole. docs/reference/plan-json.md describes the lines.
type stream struct {
	mu  sync.Mutex
	w   io.Writer
	now func() time.Time
	err error
}

func newStream(w io.Writer, now func() time.Time) *stream { return &stream{w: w, now: now} }

// Err returns the first error of the writer. No line is written after it.
func (s *stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// event is a line. Only what its type has is written.
type event struct {
	Type           string                  `json:"type"`
	Level          string                  `json:"level"`   // info, warn or error
	Message        string                  `json:"message"` // for people
	Timestamp      time.Time               `json:"timestamp"`
	FormatVersion  string                  `json:"format_version,omitempty"`
	QodVersion     string                  `json:"qod_version,omitempty"`
	Diagnostic     *schema.Diagnostic      `json:"diagnostic,omitempty"`
	ResourceChange *plan.ResourceChange    `json:"resource_change,omitempty"`
	LiveChange     *plan.LiveChange        `json:"live_change,omitempty"`
	Drift          *plan.ResourceDrift     `json:"drift,omitempty"`
	PolicyResult   *schema.PolicyResult    `json:"policy_result,omitempty"`
	Operation      string                  `json:"operation,omitempty"` // plan, apply or destroy
	Changes        *plan.Summary           `json:"changes,omitempty"`
	Outputs        map[string]streamOutput `json:"outputs,omitempty"`
	Hook           *hook                   `json:"hook,omitempty"`
	ExitCode       *int                    `json:"exit_code,omitempty"`
}

// streamOutput is a result of the configuration. A sensitive one has no value.
type streamOutput struct {
	Sensitive bool            `json:"sensitive"`
	Type      json.RawMessage `json:"type,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
}

// hook is what happens to one object.
type hook struct {
	Address        string  `json:"address,omitempty"` // left out where the configuration no longer has it
	Kind           string  `json:"kind"`
	Object         string  `json:"object"`
	Action         string  `json:"action"` // create, update, replace, delete, forget or live
	ElapsedSeconds float64 `json:"elapsed_seconds"`
}

// actionLive is the action of a hook that makes the live world as the store has it.
const actionLive = "live"

// hookOf returns the hook of a change, after the time that it took so far.
func hookOf(c plan.Change, elapsed time.Duration) hook {
	return hook{
		Address: c.Address, Kind: c.Addr.Kind, Object: c.Addr.Path, Action: string(c.Action), ElapsedSeconds: seconds(elapsed),
	}
}

// hookOfLive returns the hook of what the live world lacks.
func hookOfLive(f plan.Finding, elapsed time.Duration) hook {
	return hook{Kind: f.Addr.Kind, Object: f.Addr.Path, Action: actionLive, ElapsedSeconds: seconds(elapsed)}
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}

func (h hook) name() string { return h.Kind + "." + h.Object }

func (s *stream) write(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	e.Timestamp = s.now().UTC()
	if e.Level == "" {
		e.Level = "info"
	}
	line := &bytes.Buffer{}
	enc := json.NewEncoder(line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		s.err = fmt.Errorf("write event %s: %w", e.Type, err)
		return
	}
	if _, err := s.w.Write(line.Bytes()); err != nil {
		s.err = fmt.Errorf("write event %s: %w", e.Type, err)
	}
}

// Version is the first line.
func (s *stream) Version() {
	s.write(event{Type: "version", Message: "qod " + version, FormatVersion: plan.FormatVersion, QodVersion: version})
}

// Diagnostic says what is wrong.
func (s *stream) Diagnostic(d schema.Diagnostic) {
	level := "error"
	if d.Severity == "warning" {
		level = "warn"
	}
	s.write(event{Type: "diagnostic", Level: level, Message: d.Summary, Diagnostic: &d})
}

// Plan writes a line for each drift and change of a plan, and its summary.
func (s *stream) Plan(d *plan.Document) {
	for i := range d.Drift {
		s.ResourceDrift(d.Drift[i])
	}
	for i := range d.ResourceChanges {
		s.PlannedChange(d.ResourceChanges[i])
	}
	for i := range d.LiveChanges {
		s.LiveChange(d.LiveChanges[i])
	}
	s.ChangeSummary("plan", d.Summary)
}

// PlannedChange says what will happen to an object.
func (s *stream) PlannedChange(c plan.ResourceChange) {
	s.write(event{Type: "planned_change", Message: fmt.Sprintf("%s.%s: plan to %s", c.Kind, c.Object, join(c.Change.Actions)), ResourceChange: &c})
}

// LiveChange says what the live world lacks.
func (s *stream) LiveChange(c plan.LiveChange) {
	s.write(event{Type: "live_change", Message: fmt.Sprintf("%s.%s: %s", c.Kind, c.Object, c.Message), LiveChange: &c})
}

// ResourceDrift says what somebody else changed or deleted.
func (s *stream) ResourceDrift(d plan.ResourceDrift) {
	what := d.Attribute + " has changed"
	if d.Deleted {
		what = "has been deleted outside of this configuration"
	}
	s.write(event{Type: "resource_drift", Message: fmt.Sprintf("%s.%s: %s", d.Kind, d.Object, what), Drift: &d})
}

// PolicyResult says what came of a check of a policy.
func (s *stream) PolicyResult(r schema.PolicyResult) {
	level, words := "info", "passed"
	switch {
	case r.Passed:
	case r.Refuses():
		level, words = "error", "failed"
	default:
		level, words = "warn", "failed"
	}
	s.write(event{Type: "policy_result", Level: level, Message: fmt.Sprintf("check %q %s", r.Check, words), PolicyResult: &r})
}

// ChangeSummary counts what is planned, or was done: the operation is plan, apply or destroy.
func (s *stream) ChangeSummary(operation string, c plan.Summary) {
	words := fmt.Sprintf("%d to add, %d to change, %d to destroy", c.Add, c.Change, c.Destroy)
	if operation != "plan" {
		words = carriedOut(c)
	}
	s.write(event{Type: "change_summary", Message: words, Operation: operation, Changes: &c})
}

// Outputs are the results of the configuration after an apply.
func (s *stream) Outputs(outputs []schema.Output) error {
	shown := map[string]streamOutput{}
	for _, o := range outputs {
		out, err := showOutput(o)
		if err != nil {
			return err
		}
		shown[o.Name] = out
	}
	s.write(event{Type: "outputs", Message: fmt.Sprintf("Outputs: %d", len(shown)), Outputs: shown})
	return nil
}

func showOutput(o schema.Output) (streamOutput, error) {
	out := streamOutput{Sensitive: o.Sensitive}
	if o.Sensitive || o.Value == cty.NilVal {
		return out, nil
	}
	var err error
	if out.Type, err = ctyjson.MarshalType(o.Value.Type()); err == nil {
		out.Value, err = ctyjson.Marshal(o.Value, o.Value.Type())
	}
	if err != nil {
		return out, fmt.Errorf("show output %q: %w", o.Name, err)
	}
	return out, nil
}

// ApplyStart says that an object's turn has come.
func (s *stream) ApplyStart(h hook) {
	s.write(event{Type: "apply_start", Message: h.name() + ": " + h.Action, Hook: &h})
}

// ApplyProgress says in words what is still missing of an object.
func (s *stream) ApplyProgress(h hook, message string) {
	s.write(event{Type: "apply_progress", Message: h.name() + ": " + message, Hook: &h})
}

// ApplyComplete says that an object is as planned.
func (s *stream) ApplyComplete(h hook) {
	s.write(event{Type: "apply_complete", Message: h.name() + ": done", Hook: &h})
}

// ApplyErrored says why an object is not as planned.
func (s *stream) ApplyErrored(h hook, reason string) {
	s.write(event{Type: "apply_errored", Level: "error", Message: h.name() + ": " + reason, Hook: &h})
}

// ApplySkipped says why an object was left alone: what it needs failed.
func (s *stream) ApplySkipped(h hook, reason string) {
	s.write(event{Type: "apply_skipped", Level: "warn", Message: h.name() + ": " + reason, Hook: &h})
}

// Done is the last line. A stream without it was cut off.
func (s *stream) Done(exitCode int, message string) {
	level := "info"
	if exitCode == 1 {
		level = "error"
	}
	s.write(event{Type: "done", Level: level, Message: message, ExitCode: &exitCode})
}

func join(actions []string) string {
	if len(actions) == 2 {
		return actions[0] + " and " + actions[1]
	}
	return actions[0]
}

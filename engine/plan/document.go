package plan

import (
	"encoding/json"
	"time"

	"github.com/qod-io/qod/schema"
)

// FormatVersion is that of all JSON that qod prints. A minor step adds fields, a major one breaks readers.
const FormatVersion = "1.1"

// Document is a plan as programs read it. docs/reference/plan-json.md describes it.
type Document struct {
	FormatVersion string `json:"format_version"`
	QodVersion    string `json:"qod_version"`
	Stack         string `json:"stack"`
	Mode          string `json:"mode"`    // normal, destroy or refresh-only
	Partial       bool   `json:"partial"` // a selection leaves something out
	// Created is when the plan was made, in UTC.
	Created    time.Time `json:"created"`
	Applicable bool      `json:"applicable"` // an apply would do something
	Complete   bool      `json:"complete"`   // after it nothing is left to do
	Errored    bool      `json:"errored"`

	ResourceChanges []ResourceChange        `json:"resource_changes"` // in the order of doing
	LiveChanges     []LiveChange            `json:"live_changes"`
	Draining        []LiveChange            `json:"draining"`
	Drift           []ResourceDrift         `json:"drift"`
	Outputs         map[string]OutputValues `json:"outputs"`
	Diagnostics     []schema.Diagnostic     `json:"diagnostics"`
	// PolicyResults says of each check of a policy whether the plan keeps it. Nothing is there without a policy.
	PolicyResults []schema.PolicyResult `json:"policy_results,omitempty"`
	Summary       Summary               `json:"summary"`
}

// ResourceChange is what happens to one object.
type ResourceChange struct {
	Address         string `json:"address"`
	PreviousAddress string `json:"previous_address,omitempty"`
	Kind            string `json:"kind"`
	Object          string `json:"object"` // the key: acme/bi
	PreviousObject  string `json:"previous_object,omitempty"`
	// ID is that of the stored object; one that is to be created has none.
	ID           string      `json:"id,omitempty"`
	Change       ValueChange `json:"change"`
	ActionReason Reason      `json:"action_reason,omitempty"`
	ReasonDetail string      `json:"reason_detail,omitempty"`
	// Protected is whether plans refuse to destroy the object afterwards.
	Protected    bool `json:"protected"`
	WasProtected bool `json:"was_protected"`
	// Effects says what the change of each attribute or block does to the live world.
	Effects map[string]schema.Effect `json:"effects"`
}

// ValueChange is an object before and after. A sensitive value is null, and true in the map beside it.
type ValueChange struct {
	Actions []string        `json:"actions"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
	// Effective is After with defaults in place. What is sensitive of the one is of the other.
	Effective       json.RawMessage `json:"effective"`
	BeforeSensitive map[string]bool `json:"before_sensitive"`
	AfterSensitive  map[string]bool `json:"after_sensitive"`
	// ReplacePaths lead to what cannot be changed in place.
	ReplacePaths [][]string `json:"replace_paths,omitempty"`
	Importing    *Importing `json:"importing,omitempty"`
}

// Importing says what is taken over.
type Importing struct {
	ID        string `json:"id"`                   // pool.acme/bi
	FromStack string `json:"from_stack,omitempty"` // left out where nobody owns it
}

// LiveChange is what the live world lacks or loses.
type LiveChange struct {
	Address string `json:"address,omitempty"` // where the object is among the resource_changes
	Kind    string `json:"kind"`
	Object  string `json:"object"`
	Message string `json:"message"`
}

// ResourceDrift is an attribute that somebody changed since it was applied, or an object that somebody deleted.
type ResourceDrift struct {
	Address   string          `json:"address"`
	Kind      string          `json:"kind"`
	Object    string          `json:"object"`
	Deleted   bool            `json:"deleted,omitempty"` // the whole object
	Attribute string          `json:"attribute"`         // empty for a whole object
	Before    json.RawMessage `json:"before"`            // as it was applied
	After     json.RawMessage `json:"after"`             // as it is stored
	Sensitive bool            `json:"sensitive"`
}

// OutputValues is an output before and after.
type OutputValues struct {
	Actions   []string        `json:"actions"`
	Before    json.RawMessage `json:"before"`
	After     json.RawMessage `json:"after"`
	Sensitive bool            `json:"sensitive"` // neither value is shown
}

// Summary counts. A replacement is added and destroyed.
type Summary struct {
	Add     int `json:"add"`
	Change  int `json:"change"`
	Destroy int `json:"destroy"`
	Import  int `json:"import"`
	Forget  int `json:"forget"`
	Live    int `json:"live"`
}

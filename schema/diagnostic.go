package schema

// Diagnostic is what is wrong with a configuration or a plan, as programs read it. No part of it shows a
// secret.
type Diagnostic struct {
	Severity string `json:"severity"` // "error" or "warning"
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	// Address is that of the object it is about.
	Address string `json:"address,omitempty"`
	// Path leads to the argument: the name of an attribute, or of a block and an attribute in it.
	Path []string `json:"path,omitempty"`
	// Repeated counts equal ones at the same place, which are left out.
	Repeated int          `json:"repeated,omitempty"`
	Range    *SourceRange `json:"range,omitempty"`
	Snippet  *Snippet     `json:"snippet,omitempty"`
}

// SourceRange is a place in a file. It covers no secret: where it would end in or after one, it ends where
// the secret begins.
type SourceRange struct {
	Filename string         `json:"filename"`
	Start    SourcePosition `json:"start"`
	End      SourcePosition `json:"end"` // the first character that does not belong to it
}

// SourcePosition counts lines and characters from 1.
type SourcePosition struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Snippet is the source that a diagnostic is about.
type Snippet struct {
	Context   string         `json:"context,omitempty"` // the block it is in: pool "bi"
	StartLine int            `json:"start_line"`
	Code      string         `json:"code"` // whole lines, with (sensitive) for what may be a secret
	Values    []SnippetValue `json:"values,omitempty"`
}

// SnippetValue says what a variable of the source is.
type SnippetValue struct {
	Traversal string `json:"traversal"` // as it is written: var.size
	Statement string `json:"statement"` // in words: is "2GiB"
}

// PolicyResult is what came of one check of a policy, as programs read it. Diagnostics say what fails, and why.
type PolicyResult struct {
	Check       string `json:"check"`
	Enforcement string `json:"enforcement"` // Mandatory or Advisory
	Passed      bool   `json:"passed"`
	// Checked counts what the check was held against: the elements of its for_each, or else the plan as a whole.
	Checked int `json:"checked"`
	// Failed counts those of which it does not hold, or cannot be told.
	Failed int `json:"failed"`
}

// What the failure of a check does: the plan is refused, or somebody is warned.
const (
	Mandatory = "mandatory"
	Advisory  = "advisory"
)

// Refuses reports whether the plan is refused for the check.
func (r PolicyResult) Refuses() bool { return !r.Passed && r.Enforcement == Mandatory }

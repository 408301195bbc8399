// Package plan compares what is desired with what is stored, and says what has to change.
//
// It is pure: [Build] takes values and returns a [Plan], which has a text for people, a [Document] for
// programs, and a file form for applying later. Reading the store, looking at the live world and carrying a plan
// out are package engine's.
package plan

import (
	"cmp"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Action is what is done to an object.
type Action string

const (
	Create  Action = "create"
	Update  Action = "update"
	Replace Action = "replace"
	Delete  Action = "delete"
	// Forget leaves the object as it is, without an owner.
	Forget Action = "forget"
)

// Reason says, for programs, why an object is replaced or goes.
type Reason string

const (
	ReplaceCannotUpdate Reason = "replace_because_cannot_update"
	ReplaceByRequest    Reason = "replace_by_request"
	ReplaceByTriggers   Reason = "replace_by_triggers"

	DeleteNoBlock         Reason = "delete_because_no_block"
	DeleteNoKey           Reason = "delete_because_each_key"
	DeleteWrongRepetition Reason = "delete_because_wrong_repetition"
	DeleteNoModule        Reason = "delete_because_no_module"
	DeleteByRemoval       Reason = "delete_because_removed_block"
	DeleteByRequest       Reason = "delete_by_request" // a destroy

	ForgetByRemoval Reason = "forget_because_removed_block"
)

// Mode is what a plan is for.
type Mode string

const (
	// Normal makes the store as the configuration says.
	Normal Mode = ""
	// Destroy ends everything the stack owns.
	Destroy Mode = "destroy"
	// RefreshOnly takes what others changed as applied, and changes nothing else.
	RefreshOnly Mode = "refresh-only"
)

// Selection narrows a plan. What is left out stays as it is.
type Selection struct {
	// Targets are all that is planned, with what they need; none means everything.
	Targets []schema.Address
	// Exclude is not planned, nor what needs it.
	Exclude []schema.Address
	// Replace is destroyed and made anew without a need.
	Replace []schema.Address
}

// SystemStack owns what qod makes by itself. No configuration has that name or takes over from it.
const SystemStack = "system"

// Partial reports whether something is left out.
func (s Selection) Partial() bool { return len(s.Targets) > 0 || len(s.Exclude) > 0 }

// Actual is an object as the store has it.
type Actual struct {
	ID             string
	Kind           *schema.Kind
	Spec, Applied  cty.Value // Applied: cty.NilVal when nobody applied the object
	Address, Stack string
	Revision       int64
	Tombstone      bool
	// Protected objects are destroyed only by a removed block that says so.
	Protected bool
	// Sensitive lists the attributes outside the kind's secrets that must not be shown.
	Sensitive []string
}

// Addr returns the object's address.
func (a *Actual) Addr() schema.Addr { return a.Kind.Addr(a.Spec) }

// Attr is how one attribute or block of an object changes.
type Attr struct {
	Name          string
	Before, After cty.Value // null: not written
	Effect        schema.Effect
	Sensitive     bool // neither value may be shown
	// Default is what a null stands for, where the kind has one.
	Default cty.Value
	Note    string
}

// Change is what happens to one object.
type Change struct {
	Action  Action
	ID      string // of the object; a replacement's new id is NewID
	NewID   string
	Kind    *schema.Kind
	Address string      // in the configuration; empty for a delete whose block is gone
	Addr    schema.Addr // after the change; before it for a delete
	Was     schema.Addr // the address before, where it differs
	Moved   string      // the block's address before, where it differs
	Saw     int64       // the object's revision when the plan was made; 0 for a new one
	Spec    cty.Value   // to be stored; cty.NilVal for a delete
	Applied cty.Value
	Attrs   []Attr   // in the order of the kind; only what differs
	Secrets []string // secret attributes to be written anew
	// Sensitive lists the attributes outside the kind's secrets that must not be shown, changed or not.
	Sensitive []string
	// Reason and Detail say why an object is replaced, deleted or forgotten; Detail in words. Of a rename it
	// says how much follows.
	Reason Reason
	Detail string
	// From is the stack that an import takes the object from, or "" with Import for one without owner.
	Import bool
	From   string
	// Protected is how the object is afterwards, WasProtected how it was.
	Protected, WasProtected bool
}

// Target is the id of the object that the change leaves behind; of a delete, of the one that goes.
func (c *Change) Target() string { return cmp.Or(c.NewID, c.ID) }

// Drift is an attribute that somebody changed since it was applied, or a whole object that somebody deleted.
type Drift struct {
	Addr    schema.Addr
	Address string
	Deleted bool // the object: then there is no Attr
	Attr    Attr // Before is what was applied, After what is stored now
}

// OutputChange is how one output of the configuration changes. The values of a sensitive one are
// fingerprints, which tell that it changed and nothing else.
type OutputChange struct {
	Name          string
	Before, After cty.Value // cty.NilVal: there is none
	Sensitive     bool
}

// Finding is something the live world lacks or has too much.
type Finding struct {
	Addr    schema.Addr
	Message string // "1 of 2 nodes missing"
}

// Problem stops a plan, or warns. Address and Path say where in the configuration, or Range does.
type Problem struct {
	Warning bool
	Address string
	Path    cty.Path
	Range   *hcl.Range
	Summary string
	Detail  string
	// Conflict says that the plan is at odds with what there is: an owner, a name, a reference, a protection.
	// Without it, what is asked for is wrong by itself.
	Conflict bool
}

// Plan is everything that one apply does.
type Plan struct {
	ID      string // a uuid; a store commits each plan at most once
	Stack   string
	Lineage string
	Created time.Time
	Mode    Mode
	Partial bool     // the selection leaves something out
	Changes []Change // in the order of doing, without no-ops
	Drift   []Drift
	// Settled are the ids of lost objects that are no drift once the plan is applied.
	Settled []string
	Live    []Finding
	// Draining says what live work ends with the changes: sessions, transactions, statements.
	Draining []Finding
	// Outputs are those that change; Result is all of them after the apply, nil when they are left alone.
	// The values of sensitive ones are in clear in Result.
	Outputs  []OutputChange
	Result   []schema.Output
	Problems []Problem
	// Unchanged counts the objects of the stack that stay as they are.
	Unchanged int
}

// Empty reports whether applying the plan would do nothing.
func (p *Plan) Empty() bool { return !p.Commits() && len(p.Live) == 0 }

// Commits reports whether applying the plan would write to the store.
func (p *Plan) Commits() bool { return len(p.Changes)+len(p.Outputs)+p.accepts() > 0 }

// Failed reports whether a problem stops the plan.
func (p *Plan) Failed() bool {
	for _, problem := range p.Problems {
		if !problem.Warning {
			return true
		}
	}
	return false
}

// Counts says how many objects are added, changed and destroyed. A replacement is both added and destroyed.
// Moves, imports and what a refresh-only plan takes as applied are no changes.
func (p *Plan) Counts() (add, change, destroy int) {
	for _, c := range p.Changes {
		switch c.Action {
		case Create:
			add++
		case Update:
			if c.changes() && p.Mode != RefreshOnly {
				change++
			}
		case Delete:
			destroy++
		case Replace:
			add++
			destroy++
		}
	}
	return add, change, destroy
}

// Imported counts the objects that the plan takes over.
func (p *Plan) Imported() int {
	return p.count(func(c Change) bool { return c.Import })
}

// Forgotten counts the objects that the plan leaves without an owner.
func (p *Plan) Forgotten() int {
	return p.count(func(c Change) bool { return c.Action == Forget })
}

func (p *Plan) count(is func(Change) bool) int {
	n := 0
	for _, c := range p.Changes {
		if is(c) {
			n++
		}
	}
	return n
}

// changes reports whether more than the owner or the block of the object changes.
func (c Change) changes() bool {
	return len(c.Attrs) > 0 || c.Was.Kind != "" || c.Protected != c.WasProtected
}

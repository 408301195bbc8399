// Package store says what qod keeps: objects with what their owners wrote, secrets, stacks, nodes,
// keys and statement history. It holds the interfaces, their nouns, the sealing of secrets, and a store
// in memory; package postgres has the one that lasts. storetest defines what the interfaces mean.
package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Revision counts the commits of a store. Zero is before the first.
type Revision int64

// Object is one object of a kind as it is stored.
type Object struct {
	ID   string // uuid; never changes, and names the outside things the object owns
	Kind *schema.Kind
	// Spec is the value as written: defaults are not in it, secrets are fingerprints.
	Spec cty.Value
	// Applied is what the owning stack wrote last, or cty.NilVal when no configuration did. Spec
	// differs from it where somebody else changed the object.
	Applied    cty.Value
	Address    string // the block or resource that wrote the object: pool.bi, user.all["ana"]
	Stack      string
	Generation int64 // counts changes of Spec
	// Revision is that of the last commit that touched the object. A change of Status raises the
	// store's revision but not this one: saved plans stay good while the world is being made.
	Revision  Revision
	Status    Status
	Tombstone bool // deleted; the row waits for what it owns outside to go
	// Protected is prevent_destroy as its owner last wrote it: plans refuse to destroy the object.
	Protected bool
	// Sensitive lists the attributes outside the kind's secrets whose values must not be shown, in order:
	// the owner computed them from sensitive values.
	Sensitive []string
}

// Addr returns the object's address.
func (o Object) Addr() schema.Addr { return o.Kind.Addr(o.Spec) }

// Conceals reports whether the attribute or block of that name must not be shown.
func (o Object) Conceals(name string) bool {
	return o.Kind.Secret(name) || slices.Contains(o.Sensitive, name)
}

// Complete returns the object's value with defaults in place. Stored objects have passed their kind's
// checks, so a problem means a damaged row.
func (o Object) Complete() (cty.Value, error) {
	v, problems := o.Kind.Complete(o.Spec)
	if len(problems) > 0 {
		return cty.NilVal, fmt.Errorf("read %s: %s", o.Addr(), problems[0].Message)
	}
	return v, nil
}

// Phase is how far the outside of an object is.
type Phase string

const (
	// Provisioning: what the object owns outside the store is still being made.
	Provisioning Phase = "provisioning"
	// Ready: all of it exists.
	Ready Phase = "ready"
	// Deleting: it is being taken away.
	Deleting Phase = "deleting"
)

// Status is what was observed of an object's outside, and asked of it. Kinds without one have the zero Status.
type Status struct {
	Phase      Phase  `json:"phase,omitempty"`
	Reason     string `json:"reason,omitempty"`     // CamelCase, for programs
	Message    string `json:"message,omitempty"`    // a sentence, for people
	Generation int64  `json:"generation,omitempty"` // the generation that was observed
	// Restart is the last request to replace the object's nodes.
	Restart Restart `json:"restart,omitzero"`
}

// Restart is a request to replace all nodes that run by then. It stays: nodes that were started before are outdated,
// however often that is looked at, and by whom.
type Restart struct {
	ID string    `json:"id"` // made by who asks, so that a request which is repeated is one
	At time.Time `json:"at"`
}

// SecretKey names a secret.
type SecretKey struct{ Object, Attr string }

// Stack is a named set of objects with one owner.
type Stack struct {
	Name    string
	Lineage string // uuid made with the stack; tells two stacks of the same name apart
}

// Snapshot is one consistent read of the store. It must not be changed.
type Snapshot struct {
	Revision Revision
	Objects  []Object // with tombstones, by kind and address
	Secrets  map[SecretKey]Sealed
	Tokens   []Token      // by id; with those that expired or are revoked
	Revoked  []Revocation // by session and user
	Stacks   map[string]Stack
	// Outputs are those of each stack's last apply, by name. The value of a sensitive one is its
	// fingerprint, as FingerprintOutput makes it.
	Outputs map[string][]schema.Output
	// Lost are the objects that each stack has lost and has not taken note of yet.
	Lost map[string][]Lost
}

// Op is what a Write does.
type Op int

const (
	// Put creates the object or replaces what is stored of it.
	Put Op = iota
	// Bury sets the tombstone: the name is free at once. It is refused while a live object refers to
	// this one.
	Bury
	// Remove takes the row away, with its secrets and references. It is refused like Bury; the
	// references of tombstones do not hold it.
	Remove
)

// Write is a change of one object.
type Write struct {
	Op   Op
	ID   string
	Kind *schema.Kind
	// Saw is the revision of the object the writer looked at, zero for a new one. A commit in which
	// any object has moved on is refused whole.
	Saw            Revision
	Spec, Applied  cty.Value // Put
	Address, Stack string    // Put; both empty leave the object without an owner
	Protected      bool      // Put; an object without an owner is not protected, and nothing was applied to it
	Sensitive      []string  // Put; in any order
	// Secrets are sealed before they leave the process. Attributes not named keep theirs, unless they
	// are in the stored Spec and left out of the new one.
	Secrets map[string][]byte
}

// Change is one commit: all of it happens or nothing.
type Change struct {
	Writes []Write
	// Stack, when it has a name, must be unknown or have this lineage; AdoptStack overrules.
	Stack      Stack
	AdoptStack bool
	// Outputs, when not nil, replace those of the Stack. Values of sensitive ones are sealed. A commit
	// of no writes and of the outputs that are there already does nothing at all.
	Outputs []schema.Output
	// Settle lists ids of objects that the Stack has lost and takes note of: they are no longer among its Lost.
	Settle []string
	// PlanID, when set, makes a second commit with the same id fail with ErrPlanUsed.
	PlanID string
	By     string // who: the operating system user or the principal
	From   string // the host
	Note   string // the plan as text, for the history
	// Lease, when set, must still be held.
	Lease Lease
}

var (
	// ErrHeld is matched by the error of Acquire while another process holds the lease.
	ErrHeld = errors.New("lease is held")
	// ErrPlanUsed is returned for a commit whose plan was committed before.
	ErrPlanUsed = errors.New("this plan has been applied already: plans are single-use, make a new one")
	// ErrTermOver is returned for a write under a lease that another process has taken since.
	ErrTermOver = errors.New("the lease was lost: its term is over")
	// ErrNewer is returned when the store was written by a newer qod, which this one must not write to.
	ErrNewer = errors.New("the store was written by a newer qod: use that version")
	// ErrNoState is returned on opening a store that must exist and does not.
	ErrNoState = errors.New("there is no state here yet")
	// ErrNotFound is returned for the status of an object that is not there.
	ErrNotFound = errors.New("there is no such object")
)

// ConflictError says that an object moved on between reading and writing.
type ConflictError struct {
	Addr   schema.Addr
	Reason string // in words, with both values where they differ; never a secret
}

func (e *ConflictError) Error() string { return fmt.Sprintf("%s: %s", e.Addr, e.Reason) }

// StackError says that a stack of that name exists with another lineage.
type StackError struct{ Name, Have, Want string }

func (e *StackError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("stack %q is known, but there is no .qod.lock.hcl here: get it from where the stack was made", e.Name)
	}
	return fmt.Sprintf("stack %q is known with lineage %s, but .qod.lock.hcl says %s", e.Name, e.Have, e.Want)
}

// HeldError says who holds a lease.
type HeldError struct {
	Name, Holder string
	Since        time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("lease %q is held by %s since %s", e.Name, e.Holder, e.Since.Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Store keeps desired state. All methods may be called from several goroutines.
type Store interface {
	// Snapshot reads everything at one revision.
	Snapshot(ctx context.Context) (*Snapshot, error)
	// Commit is the only way to change an object. Renaming an object rewrites the names and keys
	// of those that refer to it, in the same commit. A Put of what is stored already leaves the
	// object alone.
	Commit(ctx context.Context, c Change) (Revision, error)
	// Check fails as Commit would now, and changes nothing.
	Check(ctx context.Context, c Change) error
	// SetStatus records what was observed; an equal status writes nothing. A lease that was lost is ErrTermOver.
	SetStatus(ctx context.Context, id string, s Status, l Lease) error
	// Watch calls on with the current revision at once and whenever it has changed, until ctx ends.
	// Changes are seen within a second; several may be reported as one. It returns only ctx's error:
	// while the store is away it keeps trying.
	Watch(ctx context.Context, on func(Revision)) error
	// Heartbeat is Watch that also calls on every HeartbeatInterval while the store answers and nothing
	// changes: what was read at that revision is known to be right until then.
	Heartbeat(ctx context.Context, on func(Revision)) error
	// Acquire takes the named lease, or fails with a HeldError. It does not wait.
	Acquire(ctx context.Context, name, holder string) (Lease, error)
}

// Apply is one commit as the history has it.
type Apply struct {
	Revision        Revision
	At              time.Time
	By, From, Stack string
	PlanID, Note    string
	// Before is what each touched object was, by id, without its status; nil where it was new.
	Before map[string]*Object
	// Outputs are what those of the stack were before, as a Snapshot has them; nil when the commit left
	// them alone.
	Outputs []schema.Output
}

// Applies is the history of commits.
type Applies interface {
	// ListApplies returns the commits after a revision, newest first, at most limit where that is positive.
	ListApplies(ctx context.Context, after Revision, limit int) ([]Apply, error)
	// StackOutputs returns the outputs of a stack's last apply by name, sensitive ones with their values.
	StackOutputs(ctx context.Context, stack string) ([]schema.Output, error)
}

// Lease is the right to act, held by one process at a time.
type Lease interface {
	Name() string
	Term() int64 // rises with each holder
	// Done is closed when the lease is lost or released.
	Done() <-chan struct{}
	Release()
}

// Node is the row of a node: what a manager needs to find, adopt and route to it.
type Node struct {
	ID, PoolID  string
	Host        string // of the manager whose backend runs the node
	Role        string // read, write or dual
	Endpoint    string // as grpc.NewClient takes it
	PID         int
	Started     time.Time
	SpecHash    string
	Incarnation string // made by the node's process when it starts
	Phase       string
	Reason      string
	// Seen is when the node was last known to answer, as far as a manager has recorded it. PutNode
	// leaves it alone.
	Seen time.Time
}

// Nodes keeps the rows of nodes. Each change raises the store's revision, so every manager sees it.
type Nodes interface {
	ListNodes(ctx context.Context) ([]Node, error)
	PutNode(ctx context.Context, n Node) error // an equal row writes nothing
	RemoveNode(ctx context.Context, id string) error
	// SawNodes records that the nodes answered just now. It raises no revision.
	SawNodes(ctx context.Context, ids []string) error
}

// Key is a key of the cluster, sealed with the master key.
type Key struct {
	ID      int // 1 to 255
	Sealed  Sealed
	Created time.Time
}

// Keys keeps the cluster's keys, newest first.
type Keys interface {
	ListKeys(ctx context.Context) ([]Key, error)
	// AddKey stores a key unless one with that id exists, and returns all keys.
	AddKey(ctx context.Context, k Key) ([]Key, error)
}

// Statement is one row of history.
type Statement struct {
	ID, Tenant, Pool, User, Node string
	SQL                          string // literals replaced, cut
	Class                        string // read, write, ddl, transaction or other
	Status                       string // ok, denied, no_pool, no_node, pin_lost, transient, permanent, cancelled, timeout or resume_timeout
	Error                        string
	Started                      time.Time
	Duration                     time.Duration
	Rows, Bytes                  int64
}

// Statements keeps the history of statements by day.
type Statements interface {
	// AppendStatements stores all rows or none. Rows that are there already, by id and start, are left:
	// a batch whose outcome is unknown can be appended again.
	AppendStatements(ctx context.Context, rows []Statement) error
	// ExpireStatements drops the days that ended before the time.
	ExpireStatements(ctx context.Context, before time.Time) error
	ListStatements(ctx context.Context, limit int) ([]Statement, error) // newest first
}

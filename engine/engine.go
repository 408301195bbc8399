// Package engine makes plans and carries them out: the reader's entry.
//
// [Engine.Plan] compares a configuration with the store and with the live world. [Engine.Apply] commits a
// plan in one transaction. What lies outside the store follows from its rows: [Engine.Settle] makes or
// removes what they ask for, [Engine.Converge] repeats that until nothing is missing. Each pass starts
// from what is there, so whoever comes next finishes what a dead process began.
//
// The intent of each outside step is in the store before the step begins, and names what the step makes
// by an id that was chosen before. Whoever finds an intent looks that id up outside and goes on from what
// is there; nothing is tainted, and nothing is made twice:
//
//   - A new object is committed with its id and without the status ready. Its database, role and directory
//     are named after the id, so making them again finds them ([Lifecycle].Create).
//   - A destroyed object is a tombstone until all that carries its id is gone ([Lifecycle].Delete).
//   - A node has a row with its id before its process starts; a row without a process is removed, and a
//     process is adopted by the row of its id. A row goes after its process.
//
// Plans list the intents that are not carried out yet as findings of the live world.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Lifecycle is the outside of a kind. Every method is idempotent.
type Lifecycle interface {
	// Secrets returns fresh secrets for a new object.
	Secrets() (map[string][]byte, error)
	// Create makes whatever of the object's outside is missing.
	Create(ctx context.Context, o store.Object, secret func(attr string) ([]byte, error)) error
	// Delete takes the object's outside away. Absence is success.
	Delete(ctx context.Context, o store.Object) error
	// Observe says in words, by object id, what is missing.
	Observe(ctx context.Context, objects []store.Object) (map[string][]string, error)
}

// Runtime is where the nodes of pools are.
type Runtime interface {
	// Step brings the nodes closer to the store's pools where this process may act.
	Step(ctx context.Context) error
	// Missing says what each pool of a snapshot lacks or has too much, in words by pool id. It does not act.
	Missing(ctx context.Context, snap *store.Snapshot) (map[string]string, error)
	// Load says what live work each pool has now, by pool id. Nodes that do not answer are counted.
	Load(ctx context.Context) (map[string]Load, error)
	// Held says which process had the right to act in this one's place at the last Step; nil when this
	// one had it.
	Held() error
}

// Config is what an engine works with.
type Config struct {
	Store  store.Store
	Nodes  store.Nodes
	Sealer *store.Sealer
	// Lifecycles are the outsides of kinds, by name. Kinds without one are only rows.
	Lifecycles map[string]Lifecycle
	Runtime    Runtime // nil: pools are not looked at
	Insight    Insight // nil: databases are not looked into
	// Hash derives what is kept of a password.
	Hash func(password string) (string, error)
	// Holder names this process to others that wait for its leases.
	Holder string
	// Parallelism is how many outside steps run at the same time. Zero: 10.
	Parallelism int
	// DrainLimit is how long statements may go on when their node is to stop; plans say it.
	DrainLimit time.Duration
	Log        *slog.Logger
}

// Engine makes and applies plans.
type Engine struct{ Config }

// New returns an Engine.
func New(c Config) *Engine { return &Engine{c} }

// Plan is a plan with the secrets it will write. The secrets are in memory only.
type Plan struct {
	*plan.Plan
	secrets map[store.SecretKey]string
	// asked are the ids of the objects of a request's changes, in their order.
	asked []string
}

// runs is the kind whose objects the Runtime runs.
const runs = "pool"

// PlanOptions say what a plan is for. The zero value plans everything that the configuration asks for.
type PlanOptions struct {
	Mode      plan.Mode
	Selection plan.Selection
	// AdoptStack takes over a known stack although it has another lineage, or none was given.
	AdoptStack bool
	// Sees leaves out what it is false for: the plan is as if that were not there. Nil: there is nothing to leave out.
	Sees func(*store.Object) bool
	// about is what a request names, as plan.Input has it; nil for a configuration.
	about map[string]string
}

// visible is a snapshot without what the plan is not to see.
func (o PlanOptions) visible(snap *store.Snapshot) *store.Snapshot {
	if o.Sees == nil {
		return snap
	}
	part := *snap
	part.Objects = nil
	for i := range snap.Objects {
		if o.Sees(&snap.Objects[i]) {
			part.Objects = append(part.Objects, snap.Objects[i])
		}
	}
	return &part
}

// Plan compares the configuration of a stack with what is there. It writes nothing. A plan that destroys
// is given the configuration too: it says what must not be shown. A stack that is known with another
// lineage is a StackError; one that is new and has no lineage gets a plan without, which cannot be
// committed before it has one.
func (e *Engine) Plan(ctx context.Context, stack store.Stack, c schema.Desired, o PlanOptions) (*Plan, error) {
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read store: %w", err)
	}
	snap = o.visible(snap)
	known := snap.Stacks[stack.Name]
	if err := (store.Change{Stack: stack, AdoptStack: o.AdoptStack}).Admit(known); err != nil {
		return nil, err
	}
	var live []plan.Finding
	var looking sync.WaitGroup
	looking.Go(func() { live, err = e.findings(ctx, snap, stack.Name) })
	p := e.compare(snap, stack, c, o)
	looking.Wait()
	if err != nil {
		return nil, err
	}
	e.warnOfRoles(ctx, snap, p.Plan, c)
	p.ID, p.Lineage, p.Created, p.Live = uuid.NewString(), cmp.Or(stack.Lineage, known.Lineage), time.Now(), live
	if p.Draining, err = e.draining(ctx, snap, p.Changes); err != nil {
		return nil, err
	}
	return p, nil
}

// compare makes a plan without looking at the live world.
func (e *Engine) compare(snap *store.Snapshot, stack store.Stack, c schema.Desired, o PlanOptions) *Plan {
	p := &Plan{secrets: map[store.SecretKey]string{}}
	var secrets sync.Mutex
	sensitive := map[string][]string{}
	for _, object := range c.Objects {
		sensitive[object.Address] = object.Sensitive
	}
	missed := lost(snap, stack.Name)
	if o.about != nil {
		missed = nil
	}
	p.Plan = plan.Build(plan.Input{
		Stack:     stack.Name,
		Mode:      o.Mode,
		Selection: o.Selection,
		Desired:   c,
		Actual:    actual(snap),
		About:     o.about,
		Lost:      missed,
		Outputs:   snap.Outputs[stack.Name],
		Sensitive: sensitive,
		NewID:     uuid.NewString,
		Fingerprint: func(id, attr, secret string) string {
			key := store.SecretKey{Object: id, Attr: attr}
			secrets.Lock()
			p.secrets[key] = secret
			secrets.Unlock()
			return e.Sealer.Fingerprint(key, []byte(secret))
		},
		FingerprintOutput: func(name string, v cty.Value) string {
			// What cannot be stored has no fingerprint; the commit says why.
			fingerprint, _ := e.Sealer.FingerprintOutput(stack.Name, schema.Output{Name: name, Value: v})
			return fingerprint
		},
	})
	p.Mode, p.Partial = o.Mode, o.Selection.Partial()
	hidden := newConcealed(snap, c.Objects)
	hidden.mark(p.Plan)
	hidden.reclassify(p.Plan, snap)
	return p
}

func lost(snap *store.Snapshot, stack string) []plan.Lost {
	var out []plan.Lost
	for _, l := range snap.Lost[stack] {
		out = append(out, plan.Lost(l))
	}
	return out
}

func actual(snap *store.Snapshot) []plan.Actual {
	out := make([]plan.Actual, len(snap.Objects))
	for i, o := range snap.Objects {
		out[i] = plan.Actual{
			ID: o.ID, Kind: o.Kind, Spec: o.Spec, Applied: o.Applied, Address: o.Address, Stack: o.Stack,
			Revision: int64(o.Revision), Tombstone: o.Tombstone, Protected: o.Protected, Sensitive: o.Sensitive,
		}
	}
	return out
}

// Names under which parts of a saved plan are sealed: the whole, and its sensitive outputs. Secrets of
// objects are sealed as they are stored; the ids of objects are no such names.
const (
	sealedPlan   = "plan"
	sealedOutput = "output"
)

// save is how secrets of a plan are named in its file.
func save(key store.SecretKey) string { return key.Object + "/" + key.Attr }

// Marshal returns the plan as a file, which the master key seals as a whole.
func (e *Engine) Marshal(p *Plan) ([]byte, error) {
	sealed := map[string][]byte{}
	for _, c := range p.Changes {
		secrets, err := e.secrets(p, c)
		if err != nil {
			return nil, err
		}
		for attr, secret := range secrets {
			key := store.SecretKey{Object: c.Target(), Attr: attr}
			sealed[save(key)] = e.Sealer.Seal(key, secret)
		}
	}
	for _, o := range p.Result {
		if !o.Sensitive {
			continue
		}
		raw, err := ctyjson.Marshal(o.Value, cty.DynamicPseudoType)
		if err != nil {
			return nil, fmt.Errorf("save output %q: %w", o.Name, err)
		}
		key := store.SecretKey{Object: sealedOutput, Attr: o.Name}
		sealed[save(key)] = e.Sealer.Seal(key, raw)
	}
	return plan.Marshal(p.Plan, sealed, func(plain []byte) []byte {
		return e.Sealer.Seal(store.SecretKey{Object: sealedPlan}, plain)
	})
}

// Unmarshal reads what Marshal wrote with the same master key. What was altered is refused.
func (e *Engine) Unmarshal(data []byte) (*Plan, error) {
	read, sealed, err := plan.Unmarshal(data, func(sealed []byte) ([]byte, error) {
		plain, err := e.Sealer.Open(store.SecretKey{Object: sealedPlan}, sealed)
		if err != nil {
			return nil, errors.New("the file was altered, or saved with another master key: make the plan anew")
		}
		return plain, nil
	})
	if err != nil {
		return nil, err
	}
	if err := e.openOutputs(read, sealed); err != nil {
		return nil, err
	}
	p := &Plan{Plan: read, secrets: map[store.SecretKey]string{}}
	for i := range p.Changes {
		c := &p.Changes[i]
		var kept []string
		for _, attr := range c.Secrets {
			key := store.SecretKey{Object: c.Target(), Attr: storedAs(c.Kind, attr)}
			secret, err := e.Sealer.Open(key, sealed[save(key)])
			if err != nil {
				return nil, fmt.Errorf("read secret of %s from the plan: %w", c.Addr, err)
			}
			p.secrets[key] = string(secret)
			kept = append(kept, key.Attr)
		}
		c.Secrets = kept
	}
	return p, nil
}

// openOutputs puts the values of sensitive results in their places.
func (e *Engine) openOutputs(p *plan.Plan, sealed map[string][]byte) error {
	for i := range p.Result {
		o := &p.Result[i]
		if !o.Sensitive {
			continue
		}
		key := store.SecretKey{Object: sealedOutput, Attr: o.Name}
		raw, err := e.Sealer.Open(key, sealed[save(key)])
		if err != nil {
			return fmt.Errorf("read output %q from the plan: %w", o.Name, err)
		}
		if o.Value, err = ctyjson.Unmarshal(raw, cty.DynamicPseudoType); err != nil {
			return fmt.Errorf("read output %q from the plan: %w", o.Name, err)
		}
	}
	return nil
}

func storedAs(k *schema.Kind, attr string) string {
	if a, ok := k.Attr(attr); ok && a.StoredAs != "" {
		return a.StoredAs
	}
	return attr
}

// secrets returns what a change stores as secrets: what is derived from a password, not the password.
func (e *Engine) secrets(p *Plan, c plan.Change) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, attr := range c.Secrets {
		secret := p.secrets[store.SecretKey{Object: c.Target(), Attr: attr}]
		stored := storedAs(c.Kind, attr)
		if stored == attr {
			out[stored] = []byte(secret)
			continue
		}
		hash, err := e.Hash(secret)
		if err != nil {
			return nil, fmt.Errorf("hash %s of %s: %w", attr, c.Addr, err)
		}
		out[stored] = []byte(hash)
	}
	return out, nil
}

package provider

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// session is what one process of the provider knows. Terraform starts one for a plan, and another for an apply.
type session struct {
	stack  string         // "" while it is not known
	client *client.Client // nil while the provider's configuration is not known
	batch  *client.Batch

	mu sync.Mutex
	// planned are the addresses that objects have after the apply, and had before it.
	planned, before map[schema.Addr]bool
	// renamed leads from the address of an object to that which it is planned to have.
	renamed map[schema.Addr]schema.Addr
	created map[schema.Addr]bool
	owners  map[string]map[schema.Addr]string // by kind: the stacks of all objects that there are
}

func newSession(stack string) *session {
	return &session{
		stack: stack, planned: map[schema.Addr]bool{}, before: map[schema.Addr]bool{}, renamed: map[schema.Addr]schema.Addr{},
		created: map[schema.Addr]bool{}, owners: map[string]map[schema.Addr]string{},
	}
}

// sessionOf reads what Configure passed on. Before it was called there is none.
func sessionOf(data any, diags *diag.Diagnostics) *session {
	if data == nil {
		return nil
	}
	s, ok := data.(*session)
	if !ok {
		diags.AddError("The provider is broken", fmt.Sprintf("Its data is %T.", data))
	}
	return s
}

// known reports whether there is a server to ask.
func (s *session) known() bool { return s != nil && s.client != nil }

// plan notes that an object will be at an address, where it is now, and whether it is the same object.
func (s *session) plan(now, next *schema.Addr, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now != nil {
		s.before[*now] = true
	}
	if next != nil {
		s.planned[*next] = true
	}
	if same && now != nil && next != nil && *now != *next {
		s.renamed[*now] = *next
	}
}

// follows reports whether a reference from one address to the other goes on naming the same object, since that is
// renamed by this plan.
func (s *session) follows(from, to schema.Addr) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renamed[from] == to
}

// create notes that a resource creates the object, and is false where another one of this apply did.
func (s *session) create(a schema.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.created[a] {
		return false
	}
	s.created[a] = true
	return true
}

// forget undoes create, for an object that could not be created or was deleted.
func (s *session) forget(a schema.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.created, a)
}

// expected reports whether the object is part of this plan.
func (s *session) expected(a schema.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.planned[a]
}

// had reports whether a resource had the object before this plan.
func (s *session) had(a schema.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.before[a]
}

// owner returns the stack of an object on the server, and whether it is there. All objects of its kind are read once,
// when the first is asked for.
func (s *session) owner(ctx context.Context, a schema.Addr) (string, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[a.Kind] == nil {
		owners := map[schema.Addr]string{}
		for o, err := range s.client.List(ctx, a.Kind, client.Filter{}) {
			if err != nil {
				return "", false, err
			}
			owners[o.Addr()] = o.Stack
		}
		s.owners[a.Kind] = owners
	}
	stack, ok := s.owners[a.Kind][a]
	return stack, ok, nil
}

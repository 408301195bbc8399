package plan

import (
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// pair is one object: as it is desired, as it is stored, or both.
type pair struct {
	id   string
	kind *schema.Kind
	want *schema.Object
	have *Actual
	addr schema.Addr // as desired; as stored for what is not
	was  schema.Addr // as stored
	at   string      // where the configuration has it, or has had it: moves are followed
	own  bool        // of the stack
	// twin is, for a stored object that is desired, the pair of both: all decisions are made there.
	twin *pair
	// takes is the stored object that an import takes over.
	takes *pair

	wants, holds []link  // references of the desired and of the stored value
	usedBy       []*pair // whose stored value refers to this one
	triggers     []*pair

	diff   *diff // nil: nothing differs
	reason Reason
	detail string
	change *Change // nil: it stays as it is
	kept   bool    // the selection does not leave it out
}

// link is a reference, and what it means: nil for nothing.
type link struct {
	schema.Ref
	to *pair
}

// whole returns the pair that decides about a stored object.
func (p *pair) whole() *pair {
	if p.twin != nil {
		return p.twin
	}
	return p
}

// object returns what is desired, or what is known of an object that is not.
func (p *pair) object() schema.Object {
	if p.want != nil {
		return *p.want
	}
	return schema.Object{Kind: p.kind, Address: p.at}
}

// imported reports whether the object belonged to another stack, or to none, until now.
func (p *pair) imported() bool { return p.takes != nil }

// action returns what the plan does of the plan, or "" for an object that stays as it is.
func (p *pair) action() Action {
	if p.change == nil || !p.kept {
		return ""
	}
	return p.change.Action
}

// link resolves all references.
func (b *builder) link() {
	parallel.Each(len(b.stored), enoughToShare, func(i int) {
		p := b.stored[i]
		p.whole().holds = b.resolved(p.kind.Refs(p.have.Spec))
	})
	for _, p := range b.stored {
		whole := p.whole()
		for _, l := range whole.holds {
			if l.to != nil {
				l.to.usedBy = append(l.to.usedBy, whole)
			}
		}
	}
	parallel.Each(len(b.wanted), enoughToShare, func(i int) {
		b.linkWanted(b.wanted[i])
	})
}

func (b *builder) linkWanted(p *pair) {
	refs := p.kind.Refs(p.want.Value)
	p.wants = make([]link, len(refs))
	for i, ref := range refs {
		to := b.wantAddr[ref.To]
		if to == nil && b.byAddr[ref.To] != nil {
			to = b.byAddr[ref.To].whole()
		}
		p.wants[i] = link{ref, to}
	}
}

// resolved returns what references mean in the store.
func (b *builder) resolved(refs []schema.Ref) []link {
	links := make([]link, len(refs))
	for i, ref := range refs {
		links[i] = link{ref, nil}
		if to := b.byAddr[ref.To]; to != nil {
			links[i].to = to.whole()
		}
	}
	return links
}

// field is an attribute or block of a kind.
type field struct {
	name   string
	attr   *schema.Attr // nil for a block
	single bool         // a block of which there is at most one
	effect schema.Effect
	whole  bool // belongs to the configuration even where it is not written
	key    bool
}

func (f field) secret() bool { return f.attr != nil && f.attr.Secret }

func (f field) hasDefault() bool { return f.attr != nil && f.attr.Default != cty.NilVal }

func (b *builder) of(k *schema.Kind) []field { return b.fields[k] }

// fields lists those of all kinds.
func fields() map[*schema.Kind][]field {
	all := map[*schema.Kind][]field{}
	for _, k := range schema.Kinds() {
		all[k] = fieldsOf(k)
	}
	return all
}

func fieldsOf(k *schema.Kind) []field {
	key := "|" + strings.Join(k.Key, "|") + "|"
	list := make([]field, 0, len(k.Attrs)+len(k.Blocks))
	for i := range k.Attrs {
		a := &k.Attrs[i]
		list = append(list, field{
			name: a.Name, attr: a, effect: a.Effect, whole: a.Set(), key: strings.Contains(key, "|"+a.Name+"|"),
		})
	}
	for _, block := range k.Blocks {
		list = append(list, field{name: block.Name, single: block.Single, effect: block.Effect, whole: true})
	}
	return list
}

// rewritten returns a value in which each reference has the name that name says, or keeps its own for "".
func rewritten(v cty.Value, links []link, name func(*pair) string) cty.Value {
	names := schema.Renames{}
	for _, l := range links {
		if l.to == nil {
			continue
		}
		if now := name(l.to); now != "" {
			names.Add(l.Attr, l.To.Name(), now)
		}
	}
	return names.Apply(v)
}

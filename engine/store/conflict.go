package store

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// Touch says which commit last touched an object.
type Touch struct {
	Stack, By string
	Revision  Revision
}

// Conflict says what a writer saw and what is there instead. Now is nil when the object is gone, seen
// is nil when the history does not reach back to the revision that the writer saw.
func Conflict(w Write, now, seen *Object, last Touch) *ConflictError {
	who := author(last.Stack, last.By, last.Revision)
	switch {
	case now == nil && seen == nil:
		return &ConflictError{addrOf(w), fmt.Sprintf("it does not exist, this plan saw revision %d", w.Saw)}
	case now == nil:
		return &ConflictError{seen.Addr(), fmt.Sprintf("it was removed (%s), this plan saw revision %d", who, w.Saw)}
	case w.Saw == 0:
		return &ConflictError{now.Addr(), fmt.Sprintf("it exists already (%s), this plan saw none", who)}
	case now.Tombstone:
		return &ConflictError{now.Addr(), fmt.Sprintf("it is being deleted (%s), this plan saw revision %d", who, w.Saw)}
	}
	var differ []string
	if seen != nil {
		differ = differences(seen, now, who)
	}
	if len(differ) == 0 {
		differ = []string{fmt.Sprintf("it was changed (%s), this plan saw revision %d", who, w.Saw)}
	}
	return &ConflictError{now.Addr(), strings.Join(differ, "; ")}
}

func addrOf(w Write) schema.Addr {
	switch {
	case w.Kind == nil:
		return schema.Addr{Kind: "object", Path: w.ID}
	case w.Spec == cty.NilVal:
		return schema.Addr{Kind: w.Kind.Name, Path: w.ID}
	}
	return w.Kind.Addr(w.Spec)
}

func author(stack, by string, rev Revision) string {
	switch {
	case stack != "":
		return fmt.Sprintf("by stack %s, revision %d", stack, rev)
	case by != "":
		return fmt.Sprintf("by %s, revision %d", by, rev)
	}
	return fmt.Sprintf("revision %d", rev)
}

func differences(seen, now *Object, who string) []string {
	var out []string
	for _, name := range now.Kind.Names() {
		was, is := seen.Spec.GetAttr(name), now.Spec.GetAttr(name)
		if was.RawEquals(is) {
			continue
		}
		if seen.Conceals(name) || now.Conceals(name) {
			out = append(out, fmt.Sprintf("%s was changed (%s)", name, who))
			continue
		}
		out = append(out, fmt.Sprintf("%s is now %s (%s), this plan saw %s", name, shown(is), who, shown(was)))
	}
	return out
}

const shownLimit = 200

func shown(v cty.Value) string {
	if v.IsNull() {
		return "unset"
	}
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return "another value"
	}
	if len(raw) > shownLimit {
		return strings.ToValidUTF8(string(raw[:shownLimit]), "") + "…"
	}
	return string(raw)
}

// dangling says that a reference leads nowhere after the change, and why.
func (d *draft) dangling(o Object, ref schema.Ref) *ConflictError {
	reason := fmt.Sprintf("%s names %s, which does not exist", ref.Attr, ref.To)
	id, known := d.rows.live[ref.To]
	after, stays := d.after[id]
	_, buried := d.rows.buried[ref.To]
	switch {
	case known && stays && !after.Tombstone:
		reason = fmt.Sprintf("%s names %s, which is now %s", ref.Attr, ref.To, after.Addr())
	case known, buried:
		reason = fmt.Sprintf("%s names %s, which is being deleted", ref.Attr, ref.To)
	}
	return &ConflictError{o.Addr(), reason}
}

const listLimit = 5

func listed(addrs []string) string {
	if len(addrs) <= listLimit {
		return strings.Join(addrs, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(addrs[:listLimit], ", "), len(addrs)-listLimit)
}

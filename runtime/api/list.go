package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

const (
	defaultPage = 100
	maxPage     = 1000

	// keptListings and listingLife bound what is kept for the next pages.
	keptListings = 8
	listingLife  = 5 * time.Minute
)

// listings keeps the snapshots of which further pages may be asked for, the oldest first.
type listings struct {
	mu   sync.Mutex
	kept []listing
}

type listing struct {
	*store.Snapshot
	until time.Time
}

func (l *listings) keep(snap *store.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.kept = slices.DeleteFunc(l.kept, func(k listing) bool { return k.Revision == snap.Revision || now.After(k.until) })
	l.kept = append(l.kept, listing{snap, now.Add(listingLife)})
	if extra := len(l.kept) - keptListings; extra > 0 {
		l.kept = slices.Delete(l.kept, 0, extra)
	}
}

func (l *listings) of(r store.Revision) *store.Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, k := range l.kept {
		if k.Revision == r && now.Before(k.until) {
			return k.Snapshot
		}
	}
	return nil
}

// cursor is where a listing goes on. It gives nobody a right: each page is cut for its caller.
type cursor struct {
	Revision store.Revision `json:"r"`
	After    string         `json:"a"` // path of the last object
}

func (at cursor) String() string {
	raw, _ := json.Marshal(at) // numbers and texts always encode
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(text string) (at cursor, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return at, err == nil && json.Unmarshal(raw, &at) == nil
}

type page struct {
	Revision store.Revision `json:"revision"`
	Items    []Object       `json:"items"`
	Next     string         `json:"next"`
}

// list answers with a page of the objects of a kind.
func (c *call) list() *failure {
	q, limit, f := c.limited()
	if f != nil {
		return f
	}
	var at cursor
	var snap *store.Snapshot
	if q.Has("after") {
		var ok bool
		if at, ok = parseCursor(q.Get("after")); !ok {
			return badRequest("this is not the next of a page").at("after")
		}
		if snap = c.rest.listings.of(at.Revision); snap == nil {
			return refuse(http.StatusGone, "listing_gone", "the listing is not kept any more: begin it anew")
		}
	} else {
		var err error
		if snap, err = c.rest.Engine.Store.Snapshot(c.Context()); err != nil {
			return broken(err)
		}
	}
	v, err := c.rest.view(c.Context(), snap, c.caller, c.kind)
	if err != nil {
		return broken(err)
	}
	out := page{Revision: snap.Revision, Items: []Object{}}
	tenant, stack, name := schema.Fold(q.Get("tenant")), q.Get("stack"), schema.Fold(q.Get("name"))
	for i := range snap.Objects {
		o := &snap.Objects[i]
		if o.Kind != c.kind || o.Tombstone || !c.caller.visible(o) ||
			tenant != "" && o.Kind.TenantOf(o.Spec) != tenant || stack != "" && o.Stack != stack {
			continue
		}
		addr := o.Addr()
		if cmp.Compare(addr.Path, at.After) <= 0 || name != "" && addr.Name() != name {
			continue
		}
		if len(out.Items) == limit {
			out.Next = cursor{snap.Revision, out.Items[limit-1].Key}.String()
			c.rest.listings.keep(snap)
			break
		}
		shown, err := v.show(*o)
		if err != nil {
			return broken(err)
		}
		out.Items = append(out.Items, shown)
	}
	return c.ok(out)
}

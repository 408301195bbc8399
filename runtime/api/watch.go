package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

const (
	// watchBeat is how often a watcher hears something although nothing changes. What nodes lack is looked at
	// then too: that changes without a revision.
	watchBeat = 5 * time.Second
	// watchWrite is how long a watcher may take to take an event.
	watchWrite = 10 * time.Second

	maxWatchers = 256
)

// watch tells what changes until the client goes, the caller loses its rights, or the server ends.
func (c *call) watch() *failure {
	q, f := c.query()
	if f != nil {
		return f
	}
	watched := kinds()
	if q.Has("kind") {
		k, ok := schema.Lookup(q.Get("kind"))
		if !ok {
			return badRequest("there is no such kind").at("kind")
		}
		watched = []*schema.Kind{k}
	}
	if n := c.rest.watchers.Add(1); n > maxWatchers {
		c.rest.watchers.Add(-1)
		return tooMany(watchBeat)
	}
	defer c.rest.watchers.Add(-1)
	c.unhurried()
	c.Header().Set("Content-Type", "text/event-stream")
	c.WriteHeader(http.StatusOK)
	w := &watcher{call: c, kinds: map[*schema.Kind]bool{}, tenant: schema.Fold(q.Get("tenant")), shown: map[string]told{}}
	for _, k := range watched {
		w.kinds[k] = true
	}
	err := w.run(watched)
	if err != nil && c.Context().Err() == nil {
		c.rest.Log.DebugContext(c.Context(), "watch ended", "id", c.id, "error", err)
	}
	return nil
}

// watcher is a client that watches, and what it was told.
type watcher struct {
	*call
	kinds  map[*schema.Kind]bool
	tenant string
	shown  map[string]told // by id
	last   store.Revision
}

// told is an object as it was told last.
type told struct{ key, kind, text string }

var errOver = errors.New("the caller lost its rights, or the server ends")

func (w *watcher) run(kinds []*schema.Kind) error {
	beat := time.NewTicker(watchBeat)
	defer beat.Stop()
	for {
		_, changed := w.rest.Directory.Watch()
		if !w.current() {
			return errOver
		}
		if err := w.tell(kinds); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-beat.C:
		case <-w.rest.Ending:
			return errOver
		case <-w.Context().Done():
			return w.Context().Err()
		}
	}
}

// tell tells what is other than it was told before.
func (w *watcher) tell(kinds []*schema.Kind) error {
	snap, err := w.rest.Engine.Store.Snapshot(w.Context())
	if err != nil {
		return err
	}
	if snap.Revision == w.last && !slices.ContainsFunc(kinds, engine.Runs) {
		return w.event("", nil)
	}
	v, err := w.rest.view(w.Context(), snap, w.caller, kinds...)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, o := range snap.Objects {
		if !w.kinds[o.Kind] || !w.caller.visible(&o) || w.tenant != "" && o.Kind.TenantOf(o.Spec) != w.tenant {
			continue
		}
		shown, err := v.show(o)
		if err != nil {
			return err
		}
		text, err := json.Marshal(shown)
		if err != nil {
			return err
		}
		there[o.ID] = true
		if w.shown[o.ID].text == string(text) {
			continue
		}
		w.shown[o.ID] = told{shown.Key, shown.Kind, string(text)}
		if err := w.event("object", text); err != nil {
			return err
		}
	}
	for id, was := range w.shown {
		if there[id] {
			continue
		}
		delete(w.shown, id)
		text, _ := json.Marshal(map[string]any{"kind": was.kind, "key": was.key, "id": id, "revision": snap.Revision}) // always encodes
		if err := w.event("gone", text); err != nil {
			return err
		}
	}
	if snap.Revision == w.last {
		return w.event("", nil)
	}
	w.last = snap.Revision
	return w.event("revision", fmt.Appendf(nil, `{"revision":%d}`, snap.Revision))
}

// event writes one, or only a sign of life.
func (w *watcher) event(name string, data []byte) error { return w.push(name, data) }

// push writes an event of an answer that has more than one, or only a sign of life.
func (c *call) push(name string, data []byte) error {
	control := http.NewResponseController(c.ResponseWriter)
	if err := control.SetWriteDeadline(time.Now().Add(watchWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	var err error
	if name == "" {
		_, err = fmt.Fprint(c, ":\n\n")
	} else {
		_, err = fmt.Fprintf(c, "event: %s\ndata: %s\n\n", name, data)
	}
	if err != nil {
		return err
	}
	return control.Flush()
}

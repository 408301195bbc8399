package node

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// names is what unqualified names mean on a connection. It does not change once it is made.
type names struct {
	path      []string        // the schemas of the lake that are searched, in order
	temporary map[string]bool // temporary tables and views, folded: they come first
}

func (m *names) equal(other *names) bool {
	return slices.Equal(m.path, other.path) && maps.Equal(m.temporary, other.temporary)
}

// homeNames is what names mean on a connection on which nothing was set.
func homeNames(lake wire.Lake) *names { return &names{path: []string{defaultSchema(lake)}} }

// strayedNames is homeNames where the default schema was dropped: then the connection is in the lake's own.
func strayedNames() *names { return &names{path: []string{"main"}} }

// meaning returns what names mean on the lane that choose would give a statement. The statement may get
// another one nevertheless, or the lane may change before its turn: so agree compares again.
func (s *server) meaning(ctx context.Context, session, transaction string) (*names, error) {
	n := s.sessions.find(session)
	if n == nil {
		return s.home, nil
	}
	m, unsure := s.lastKnown(n, transaction)
	if !unsure {
		return m, nil
	}
	l, err := s.enter(ctx, n, transaction, false)
	if err != nil {
		return nil, err
	}
	defer s.leave(n, l)
	if l.unsure && !l.aborted { // an aborted transaction answers nothing, and runs nothing but its end
		if err := s.learnAll(ctx, n, l); err != nil {
			return nil, err
		}
	}
	return s.on(l), nil
}

// lastKnown is meaning without waiting for anybody. It says whether it may be wrong.
func (s *server) lastKnown(n *session, transaction string) (m *names, unsure bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.extra[transaction]
	if m := n.main; l == nil && m != nil && (m.transaction == transaction || m.transaction == "" && !m.open) {
		l = m
	}
	switch {
	case l == nil:
		return s.home, false
	case l.names == nil:
		return s.home, l.unsure
	}
	return l.names, l.unsure
}

// on returns what names mean on a lane whose turn the caller has.
func (s *server) on(l *lane) *names {
	switch {
	case l.names != nil:
		return l.names
	case l.conn != nil && l.conn.strayed:
		return strayedNames()
	}
	return s.home
}

// agree makes sure that a statement is judged by what names mean where it is about to run: another
// statement of the session may have changed that since it was checked. The caller has the lane's turn, so
// nothing changes any more; what the transaction may tell of its end is noted too.
func (s *server) agree(ctx context.Context, c *call, n *session, l *lane, q *query) error {
	if l.unsure {
		if err := s.learnAll(ctx, n, l); err != nil {
			return err
		}
	}
	if here := s.on(l); !q.names.equal(here) {
		if err := s.checkAgain(ctx, c, q, here); err != nil {
			return err
		}
	}
	if l.open {
		l.veil = max(l.veil, q.st.veil().depth)
	}
	return nil
}

// checkAgain checks a statement by other names. When the statement turns out to be another kind of thing
// than it is on its way as, it is sent back.
func (s *server) checkAgain(ctx context.Context, c *call, q *query, here *names) error {
	again, err := s.check(ctx, c, q.st.text, q.prepared, here)
	if err != nil {
		return err
	}
	if was, is := q.st, again; was.Class != is.Class || was.ReadOnly != is.ReadOnly || was.leaves() != is.leaves() ||
		was.Temporary != is.Temporary || was.NoOp != is.NoOp {
		return notRun(codes.Aborted, wire.Transient, "another statement of the session changed what its names mean; try again")
	}
	q.st, q.names = again, here
	return nil
}

// learn finds out what names mean after a statement that may have changed that, whether or not it failed.
// What cannot be found out is found out before the next statement.
func (s *server) learn(ctx context.Context, n *session, l *lane, st statement) {
	if l.private || l.conn == nil || st.Class != wire.DDL && st.Class != wire.Setting {
		return
	}
	if l.aborted { // and answers nothing until it is rolled back
		n.setUnsure(l, true)
		return
	}
	ctx = context.WithoutCancel(ctx)
	var err error
	if st.Class == wire.DDL {
		err = s.learnTemporary(ctx, n, l, namedBy(st))
	} else {
		err = s.learnPath(ctx, n, l)
	}
	if err != nil {
		n.setUnsure(l, true)
		s.log.WarnContext(ctx, "what the session's names mean is not known", "node", s.cfg.ID, "session", n.id,
			"error", trim(err.Error()))
	}
}

// learnAll finds out everything about what names mean: after a transaction whose changes may be undone.
func (s *server) learnAll(ctx context.Context, n *session, l *lane) error {
	if l.conn == nil {
		s.set(n, l, nil)
		n.setUnsure(l, false)
		return nil
	}
	if err := s.learnPath(ctx, n, l); err != nil {
		return err
	}
	if err := s.learnTemporary(ctx, n, l, slices.Collect(maps.Keys(l.seen))); err != nil {
		return err
	}
	n.setUnsure(l, false)
	return nil
}

func (n *session) setUnsure(l *lane, unsure bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.unsure = unsure
}

// relearn is learnAll once the lane's transaction is over.
func (s *server) relearn(ctx context.Context, n *session, l *lane) {
	if len(l.seen) == 0 && !l.unsure && l.conn != nil {
		return
	}
	if s.learnAll(context.WithoutCancel(ctx), n, l) != nil {
		n.setUnsure(l, true)
	}
}

// learnTemporary looks which of the folded names are now temporary objects. It asks for each by itself:
// listing what there is would list the lake too, at a round trip to Postgres per table.
func (s *server) learnTemporary(ctx context.Context, n *session, l *lane, candidates []string) error {
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	for _, name := range candidates {
		l.seen[name] = true
	}
	plan, err := s.planning(ctx, l) // of a name that it misses, the engine looks for similar ones in the lake
	if err != nil {
		return err
	}
	defer plan.release()
	known := s.on(l)
	temporary := maps.Clone(known.temporary)
	if temporary == nil {
		temporary = map[string]bool{}
	}
	for _, name := range candidates {
		there, err := l.conn.hasTemporary(ctx, name)
		if err != nil {
			return err
		}
		delete(temporary, name)
		if there {
			temporary[name] = true
		}
	}
	s.set(n, l, &names{path: known.path, temporary: temporary})
	if !l.open { // nothing can be rolled back
		l.seen = maps.Clone(temporary)
	}
	return nil
}

// learnPath asks for the search path.
func (s *server) learnPath(ctx context.Context, n *session, l *lane) error {
	rows, err := l.conn.textRows(ctx, "SELECT system.main.current_setting('search_path')")
	if err != nil {
		return err
	}
	path, ok := parsePath(rows[0][0], s.cfg.Lake.Name)
	if !ok {
		return faultf(codes.Internal, "", "the session's search path cannot be read")
	}
	s.set(n, l, &names{path: path, temporary: s.on(l).temporary})
	return nil
}

func (s *server) set(n *session, l *lane, m *names) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.names = m
	if m != nil && len(m.path) > 0 && n.main == l {
		n.schema = m.path[0]
	}
}

// hasTemporary says whether there is a temporary table or view of that name. The statements are only
// prepared: that looks the name up, and neither runs anything nor reads the definition of a view.
func (c *conn) hasTemporary(ctx context.Context, name string) (bool, error) {
	for _, kind := range []string{"TABLE", "VIEW"} {
		cur, err := c.prepare(ctx, "ALTER "+kind+" temp.main."+quoteName(name)+" RENAME TO "+quoteName(name))
		if err == nil {
			cur.close()
			return true, nil
		}
		if asFault(err).kind != "Catalog" {
			return false, err
		}
	}
	return false, nil
}

// namedBy returns the folded names that a statement could have made or unmade.
func namedBy(st statement) []string {
	var all []string
	for _, t := range st.Tables {
		if t.Name != "" && t.Privilege != "select" {
			all = append(all, sqltext.Fold(t.Name))
		}
	}
	if st.Kind == guard.AlterTable || st.Kind == guard.AlterView {
		if tokens, err := sqltext.Tokens(st.SQL); err == nil && len(tokens) > 0 { // RENAME TO comes last
			all = append(all, sqltext.Fold(tokens[len(tokens)-1].Name()))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// parsePath reads the engine's text of a search path, as in a.main,"b.c".main, and returns its schemas in
// the lake. The engine quotes only names with a dot or a comma and doubles no quote: text that can be
// read in two ways is not read at all.
func parsePath(text, lake string) (path []string, ok bool) {
	for {
		catalog, rest, ok := pathPart(text)
		if !ok || !strings.HasPrefix(rest, ".") {
			return nil, false
		}
		schema, rest, ok := pathPart(rest[1:])
		if !ok {
			return nil, false
		}
		if sqltext.Fold(catalog) == sqltext.Fold(lake) {
			path = append(path, schema)
		}
		if rest == "" {
			return path, true
		}
		if text, ok = strings.CutPrefix(rest, ","); !ok {
			return nil, false
		}
	}
}

// pathPart reads one name from the beginning of a search path.
func pathPart(text string) (name, rest string, ok bool) {
	if quoted, is := strings.CutPrefix(text, `"`); is {
		name, rest, ok = strings.Cut(quoted, `"`)
		return name, rest, ok && name != ""
	}
	end := strings.IndexAny(text, `.,"`)
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:], end > 0
}

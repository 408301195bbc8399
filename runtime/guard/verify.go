package guard

import (
	"context"
	"errors"
	"slices"

	"github.com/qod-io/qod/runtime/sqltext"
)

// verify reads the rewritten statement again. Outside the edits it has to name what the statement named
// before, and no table with policies but the target; inside only what the edits put there.
func (g *Guard) verify(ctx context.Context, w *rewriter, out *Statement, rulings []ruling) error {
	b, err := g.analyse(ctx, out.SQL, sqltext.Fold(w.scope.Catalog))
	var syntax *SyntaxError
	var refusal *Refusal
	if errors.As(err, &syntax) || errors.As(err, &refusal) {
		return tangled()
	}
	if err != nil {
		return err
	}
	before, inside := w.expected(rulings)
	for _, r := range b.references {
		at, own := w.origin(r.at)
		if own {
			if inside--; r.table.Catalog == "" || r.table.Schema == "" {
				return tangled()
			}
			continue
		}
		i := slices.IndexFunc(before, func(one reference) bool {
			return one.at == at && one.table.Privilege == r.table.Privilege &&
				sqltext.Fold(one.table.Name) == sqltext.Fold(r.table.Name)
		})
		if i < 0 || !w.harmless(b, r) {
			return tangled()
		}
	}
	if inside != 0 || !same(w.a, b) {
		return tangled()
	}
	return nil
}

// expected returns the references that stay as they are, and the number of those in the edits.
func (w *rewriter) expected(rulings []ruling) (before []reference, inside int) {
	for i, r := range w.a.references {
		if act := rulings[i].action; act != substitute && act != filter {
			before = append(before, r)
		}
	}
	for _, e := range w.edits {
		inside += e.tables
	}
	return before, inside
}

// origin returns where in the statement before the edits an offset of the result was, and whether it is
// in the text of an edit.
func (w *rewriter) origin(at int) (int, bool) {
	shift := 0
	for _, e := range w.edits {
		start := e.from + shift
		switch {
		case at < start:
			return at - shift, false
		case at < start+len(e.text) && e.tables > 0:
			return e.from, true
		case at < start+len(e.text):
			return e.from, false
		}
		shift += len(e.text) - (e.to - e.from)
	}
	return at - shift, false
}

// harmless reports whether a reference of the result that the guard did not put there is to no table
// with policies, unless it is the target.
func (w *rewriter) harmless(b *analysis, r reference) bool {
	if r.head {
		return true
	}
	if sqltext.Fold(r.table.Schema) == informationSchema {
		return w.scope.Rights.admin
	}
	places := w.scope.resolve(r.table)
	if b.does() == CreateView && len(r.table.written()) < 3 && !places[0].temporary {
		return false
	}
	return !slices.ContainsFunc(places, func(p place) bool {
		return !p.temporary && w.scope.Rights.protection(p.schema, p.table) != nil
	})
}

// same reports whether two statements are the same but for the tables that they read.
func same(a, b *analysis) bool {
	return a.Kind == b.Kind && a.Class == b.Class && a.ReadOnly == b.ReadOnly && a.Leaves == b.Leaves &&
		a.Returning == b.Returning && a.Parameters == b.Parameters && a.Explains == b.Explains && a.Analyze == b.Analyze &&
		a.NoOp == b.NoOp
}

package guard

import (
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// opens settles the kind of a statement that changes something, from the words it opens with. The
// position is on its first word, after WITH if it has one. It reports false for what is not allowed.
func (p *phrase) opens() bool {
	p.a.Class = wire.Write
	switch {
	case p.next("insert"):
		p.a.Kind = Insert
	case p.next("update"):
		p.a.Kind = Update
	case p.next("delete"):
		p.a.Kind = Delete
	case p.next("merge"):
		p.a.Kind = Merge
	case !p.with.empty():
		return false
	case p.next("truncate"):
		p.a.Kind = Truncate
	default:
		p.a.Class = wire.DDL
		p.a.Kind = p.definition()
	}
	return p.a.Kind != ""
}

// definition returns the kind of CREATE, ALTER or DROP; empty if it is not allowed.
func (p *phrase) definition() Kind {
	start := p.pos
	defer func() { p.pos = start }()
	switch {
	case p.accept("create"):
		_ = p.accept("or", "replace")
		temporary := p.acceptTemporary()
		switch {
		case p.accept("table"):
			return CreateTable
		case p.accept("view"):
			return CreateView
		case !temporary && p.accept("schema"):
			return CreateSchema
		}
	case p.accept("alter", "table"):
		return AlterTable
	case p.accept("alter", "view"):
		return AlterView
	case p.accept("drop", "table"):
		return DropTable
	case p.accept("drop", "view"):
		return DropView
	case p.accept("drop", "schema"):
		return DropSchema
	}
	return ""
}

func (p *phrase) acceptTemporary() bool {
	_ = p.accept("local")
	return p.accept("temp") || p.accept("temporary")
}

// change reads the statement, whose kind is settled.
func (p *phrase) change() {
	switch p.a.Kind {
	case Insert:
		p.insert()
	case Update:
		p.update()
	case Delete:
		p.delete()
	case Truncate:
		p.truncate()
	case Merge:
		p.merge()
	case CreateTable, CreateView, CreateSchema:
		p.create()
	case AlterTable:
		p.alterTable()
	case AlterView:
		p.alterView()
	case DropTable, DropView, DropSchema:
		p.drop()
	}
	p.done()
}

// insert reads INSERT [OR REPLACE | OR IGNORE] INTO table [AS alias] [BY NAME | BY POSITION]
// [(columns)] query | DEFAULT VALUES [ON CONFLICT …] [RETURNING …].
func (p *phrase) insert() {
	p.expect("insert")
	if p.accept("or") {
		if p.a.change.conflict = p.accept("replace"); !p.a.change.conflict && !p.accept("ignore") {
			p.fail("REPLACE or IGNORE")
		}
	}
	p.expect("into")
	p.table("insert")
	if p.accept("as") {
		p.a.change.alias = p.word()
	}
	if !p.accept("by", "name") && !p.accept("by", "position") && p.hasColumns() {
		p.columns()
	}
	if !p.accept("default", "values") {
		if p.next("overriding") {
			p.fail("a query")
		}
		p.source(p.until(func() bool { return p.next("on", "conflict") || p.next("returning") }))
	}
	p.onConflict()
	p.returning()
}

// hasColumns reports whether a list of columns comes next, and not a query in brackets.
func (p *phrase) hasColumns() bool {
	if !p.peek().IsPunct("(") {
		return false
	}
	q := *p
	q.a = &analysis{}
	q.columns()
	t := q.peek()
	query := t.IsPunct("(") || t.Kind == sqltext.Word && isQuery(sqltext.Fold(t.Text))
	return q.refusal == nil && (query || is(t, "with", "overriding", "default"))
}

func (p *phrase) onConflict() {
	if !p.accept("on", "conflict") {
		return
	}
	if p.peek().IsPunct("(") {
		p.columns()
		if p.accept("where") {
			p.expression(p.at("", "do"))
		}
	}
	p.expect("do")
	if p.accept("nothing") {
		return
	}
	p.expect("update", "set")
	p.a.change.conflict, p.a.change.reads = true, true
	p.sets(p.at(",", "where", "returning"))
	p.where()
}

// sets reads column = expression, …; stop has to hold at a comma.
func (p *phrase) sets(stop func() bool) {
	for p.refusal == nil {
		if p.peek().IsPunct("(") {
			p.columns()
		} else {
			p.path(8)
		}
		p.expectPunct("=")
		p.expression(stop)
		if !p.acceptPunct(",") || p.pos == len(p.tokens) || stop() {
			return
		}
	}
}

// where reads WHERE and a condition, or notes where it would stand.
func (p *phrase) where() {
	end := p.tokens[p.pos-1].End
	p.a.change.where = span{end, end}
	if p.accept("where") {
		p.a.change.reads = true
		start := p.pos
		p.expression(p.at("", "returning"))
		p.a.change.where = p.between(start, p.pos)
	}
}

func (p *phrase) returning() {
	if p.accept("returning") {
		p.a.Returning, p.a.change.reads = true, true
		p.a.change.targets = p.until(func() bool { return false })
	}
}

// update reads UPDATE table [[AS] alias] SET … [FROM …] [WHERE …] [RETURNING …].
func (p *phrase) update() {
	p.expect("update")
	p.table("update")
	p.a.change.reads = true
	p.alias("set")
	p.expect("set")
	p.sets(p.at(",", "from", "where", "returning"))
	if p.accept("from") {
		p.from = piece{span: p.until(p.at("", "where", "returning"))}
	}
	p.where()
	p.returning()
}

// delete reads DELETE FROM table [[AS] alias] [USING …] [WHERE …] [RETURNING …].
func (p *phrase) delete() {
	p.expect("delete", "from")
	p.table("delete")
	p.alias("using", "where", "returning")
	if p.accept("using") {
		p.a.change.reads = true
		p.from = piece{span: p.until(p.at("", "where", "returning"))}
	}
	p.where()
	p.returning()
}

// truncate reads TRUNCATE [TABLE] table.
func (p *phrase) truncate() {
	p.expect("truncate")
	_ = p.accept("table")
	p.table("delete")
}

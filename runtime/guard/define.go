package guard

import "github.com/qod-io/qod/runtime/sqltext"

// create reads CREATE [OR REPLACE] [TEMP] TABLE | VIEW | SCHEMA [IF NOT EXISTS] name ….
func (p *phrase) create() {
	p.expect("create")
	replace := p.accept("or", "replace")
	temp := p.acceptTemporary()
	p.pos++ // TABLE, VIEW or SCHEMA
	_ = p.accept("if", "not", "exists")
	if p.a.Kind == CreateSchema {
		start := p.pos
		if p.schema("create"); replace && p.refusal == nil {
			p.pos = start
			p.schema("drop")
		}
		return
	}
	p.table("create")
	if replace && p.refusal == nil {
		t := p.a.Tables[0]
		t.Privilege = "drop"
		p.a.Tables = append(p.a.Tables, t)
		r := p.a.references[0]
		r.table = t
		p.a.references = append(p.a.references, r)
	}
	p.a.Temporary = p.a.Temporary || temp
	p.a.Leaves = p.a.Temporary
	if p.a.Kind == CreateView {
		p.createView()
		return
	}
	p.createTable()
}

func (p *phrase) createView() {
	if p.peek().IsPunct("(") {
		p.columns()
	}
	p.expect("as")
	p.source(p.until(func() bool { return p.checkOption() }))
}

// checkOption reports whether WITH [CASCADED | LOCAL] CHECK OPTION comes next.
func (p *phrase) checkOption() bool {
	return p.next("with", "check") || p.next("with", "cascaded", "check") || p.next("with", "local", "check")
}

func (p *phrase) createTable() {
	if p.peek().IsPunct("(") && !p.asFollows() {
		p.elements()
		p.layout()
		return
	}
	p.a.Kind = CreateTableAs
	if p.peek().IsPunct("(") {
		p.columns()
	}
	p.layout()
	p.expect("as")
	p.source(p.until(func() bool {
		left := len(p.tokens) - p.pos
		return left == 2 && p.next("with", "data") || left == 3 && p.next("with", "no", "data")
	}))
	if p.accept("with") {
		_ = p.accept("no")
		p.expect("data")
	}
}

// asFollows reports whether AS comes after the brackets that come next, and after the layout.
func (p *phrase) asFollows() bool {
	q := *p
	q.expressions = nil
	q.skipBrackets()
	q.layout()
	return q.refusal == nil && q.next("as")
}

// layout reads [PARTITIONED BY (…)] [SORTED BY (…)].
func (p *phrase) layout() {
	for p.next("partitioned", "by") || p.next("sorted", "by") {
		p.layoutOption()
	}
}

func (p *phrase) layoutOption() {
	if p.accept("partitioned", "by") {
		p.bracketedList()
		return
	}
	p.expect("sorted", "by")
	p.expectPunct("(")
	p.order = p.until(func() bool { return false })
	p.expectPunct(")")
}

// schema reads [catalog.]schema.
func (p *phrase) schema(privilege string) {
	parts := p.path(2)
	if p.refusal != nil {
		return
	}
	var t Table
	t, p.refusal = p.names.schema(parts, privilege)
	p.a.Tables = append(p.a.Tables, t)
	p.a.references = append(p.a.references, reference{table: t, at: -1, fixed: true, head: true})
}

// drop reads DROP TABLE | VIEW | SCHEMA [IF EXISTS] name, … [CASCADE | RESTRICT].
func (p *phrase) drop() {
	p.pos += 2
	_ = p.accept("if", "exists")
	for p.refusal == nil {
		if p.a.Kind == DropSchema {
			p.schema("drop")
		} else {
			p.table("drop")
		}
		if !p.acceptPunct(",") {
			break
		}
	}
	if !p.accept("cascade") {
		_ = p.accept("restrict")
	}
}

func (p *phrase) alterView() {
	p.expect("alter", "view")
	_ = p.accept("if", "exists")
	p.table("alter")
	p.expect("rename", "to")
	p.rename()
}

// rename reads the new name of the target, which has to be one that could be created.
func (p *phrase) rename() {
	p.a.change.rename = p.word()
	if p.refusal == nil {
		_, p.refusal = p.names.table(Table{Name: p.a.change.rename, Privilege: "create"})
	}
}

// alterTable reads ALTER TABLE [IF EXISTS] table and one change.
func (p *phrase) alterTable() {
	p.expect("alter", "table")
	_ = p.accept("if", "exists")
	p.table("alter")
	switch {
	case p.accept("add"):
		p.addColumn()
	case p.accept("drop"):
		_ = p.accept("column")
		_ = p.accept("if", "exists")
		p.path(8)
		if !p.accept("cascade") {
			_ = p.accept("restrict")
		}
	case p.accept("rename", "to"):
		p.rename()
	case p.accept("rename"):
		_ = p.accept("column")
		p.path(8)
		p.expect("to")
		p.word()
	case p.accept("alter"):
		_ = p.accept("column")
		p.alterColumn()
	case p.accept("set"):
		p.layoutOption()
	case p.accept("reset", "partitioned", "by"), p.accept("reset", "sorted", "by"):
	default:
		p.fail("ADD, DROP, RENAME, ALTER, SET PARTITIONED BY or SET SORTED BY")
	}
}

func (p *phrase) addColumn() {
	if p.next("constraint") || p.next("primary") || p.next("unique") || p.next("check") || p.next("foreign") {
		p.tableConstraint()
		return
	}
	_ = p.accept("column")
	_ = p.accept("if", "not", "exists")
	p.path(8)
	p.columnRest()
}

func (p *phrase) alterColumn() {
	p.path(8)
	switch {
	case p.accept("set", "default"):
		p.expression(func() bool { return false })
	case p.accept("drop", "default"), p.accept("drop", "not", "null"), p.accept("set", "not", "null"):
	default:
		_ = p.accept("set", "data") || p.accept("set")
		p.expect("type")
		if !p.next("using") {
			p.dataType(p.at("", "using", "collate"))
		}
		if p.accept("collate") {
			p.path(2)
		}
		if p.accept("using") {
			p.expression(func() bool { return false })
		}
	}
}

// elements reads ( columns and constraints ).
func (p *phrase) elements() {
	p.expectPunct("(")
	for p.refusal == nil && !p.peek().IsPunct(")") {
		if t := p.peek(); t.Kind == sqltext.Word && is(t, "constraint", "primary", "unique", "check", "foreign") {
			p.tableConstraint()
		} else {
			p.word()
			p.columnRest()
		}
		if !p.acceptPunct(",") {
			break
		}
	}
	p.expectPunct(")")
}

func (p *phrase) tableConstraint() {
	if p.accept("constraint") {
		p.word()
	}
	switch {
	case p.accept("check"):
		p.bracketed()
	case p.accept("unique"), p.accept("primary", "key"):
		p.columns()
	case p.accept("foreign", "key"):
		p.columns()
		p.references()
	default:
		p.fail("CHECK, UNIQUE, PRIMARY KEY or FOREIGN KEY")
	}
}

// references reads REFERENCES table [(columns)].
func (p *phrase) references() {
	p.expect("references")
	p.table("select")
	if p.peek().IsPunct("(") {
		p.columns()
	}
}

// columnRest reads the type and the constraints of a column.
func (p *phrase) columnRest() {
	stop := p.at(",", "constraint", "not", "null", "unique", "primary", "check", "default", "references",
		"generated", "as", "collate", "using")
	if p.pos < len(p.tokens) && !p.peek().IsPunct(")") && !stop() {
		p.dataType(stop)
	}
	for p.refusal == nil && p.pos < len(p.tokens) {
		if t := p.peek(); t.IsPunct(",") || t.IsPunct(")") {
			return
		}
		p.columnConstraint(stop)
	}
}

func (p *phrase) columnConstraint(stop func() bool) {
	if p.accept("constraint") {
		p.word()
	}
	switch {
	case p.accept("not", "null"), p.accept("null"), p.accept("unique"), p.accept("primary", "key"):
	case p.accept("check"):
		p.bracketed()
	case p.accept("default"):
		p.expression(stop)
	case p.accept("collate"):
		p.path(2)
	case p.next("references"):
		p.references()
	case p.accept("generated", "always", "as"), p.accept("as"):
		p.bracketed()
		if !p.accept("virtual") {
			_ = p.accept("stored")
		}
	default:
		p.fail("NOT NULL, UNIQUE, PRIMARY KEY, CHECK, DEFAULT, COLLATE, REFERENCES or GENERATED ALWAYS AS")
	}
}

// dataType reads a type up to stop and keeps it as a cast.
func (p *phrase) dataType(stop func() bool) {
	if s := p.until(stop); !s.empty() {
		p.expressions = append(p.expressions, piece{"CAST(NULL AS ", s, ")"})
	}
}

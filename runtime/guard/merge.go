package guard

// merge reads MERGE INTO table [[AS] alias] USING source ON condition | USING (columns)
// WHEN … THEN … [RETURNING …].
func (p *phrase) merge() {
	p.expect("merge", "into")
	p.table("update")
	if n := len(p.a.Tables); n > 0 {
		for _, privilege := range []string{"insert", "delete"} {
			t := p.a.Tables[0]
			t.Privilege = privilege
			p.a.Tables = append(p.a.Tables, t)
			r := p.a.references[0]
			r.table = t
			p.a.references = append(p.a.references, r)
		}
	}
	p.a.change.reads = true
	p.alias("using")
	p.expect("using")
	// The source and its condition are what follows JOIN in a query, whatever is inside.
	if join := p.until(p.atWhen); !join.empty() {
		p.from = piece{before: "(SELECT 1) AS target JOIN ", span: join}
	}
	for p.accept("when") {
		p.when()
	}
	p.returning()
}

// atWhen reports whether the next branch begins here.
func (p *phrase) atWhen() bool { return p.next("when", "matched") || p.next("when", "not", "matched") }

func (p *phrase) when() {
	if p.accept("not") {
		p.expect("matched")
		if !p.accept("by", "source") {
			_ = p.accept("by", "target")
		}
	} else {
		p.expect("matched")
	}
	if p.accept("and") {
		p.expression(p.at("", "then"))
	}
	p.expect("then")
	switch {
	case p.accept("update"):
		p.mergeUpdate()
	case p.accept("insert"):
		p.mergeInsert()
	case p.accept("delete"), p.accept("do", "nothing"):
	case p.accept("error"):
		if p.pos < len(p.tokens) && !p.endOfWhen() {
			p.expression(p.endOfWhen)
		}
	default:
		p.fail("UPDATE, INSERT, DELETE, DO NOTHING or ERROR")
	}
}

func (p *phrase) endOfWhen() bool { return p.atWhen() || p.next("returning") }

func (p *phrase) mergeUpdate() {
	if p.accept("by", "name") || p.accept("by", "position") || !p.accept("set") || p.acceptPunct("*") {
		return
	}
	p.sets(func() bool { return p.peek().IsPunct(",") || p.endOfWhen() })
}

func (p *phrase) mergeInsert() {
	if p.accept("default", "values") {
		return
	}
	if p.peek().IsPunct("(") {
		p.columns()
		p.expect("values")
		p.bracketedList()
		return
	}
	if p.accept("values") {
		p.bracketedList()
		return
	}
	if !p.accept("by", "name") {
		_ = p.accept("by", "position")
	}
	_ = p.acceptPunct("*")
}

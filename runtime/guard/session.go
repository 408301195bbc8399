package guard

import (
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// transaction reads BEGIN | START | COMMIT | END | ROLLBACK | ABORT [TRANSACTION | WORK], and for the
// first two [READ ONLY | READ WRITE].
func (p *phrase) transaction() error {
	p.a.Class, p.a.open = wire.Transaction, true
	switch {
	case p.accept("begin"), p.accept("start"):
		p.a.Kind = Begin
	case p.accept("commit"), p.accept("end"):
		p.a.Kind = Commit
	case p.accept("rollback"), p.accept("abort"):
		p.a.Kind = Rollback
	}
	if !p.accept("transaction") {
		_ = p.accept("work")
	}
	if p.a.Kind == Begin && !p.accept("read", "write") {
		p.a.ReadOnlyBegin = p.accept("read", "only")
	}
	if p.done(); p.refusal != nil {
		return p.refusal
	}
	return nil
}

// use reads USE [catalog.]schema.
func (p *phrase) use() error {
	p.a.Kind, p.a.Class, p.a.Leaves = Use, wire.Setting, true
	p.expect("use")
	p.schema("select")
	if p.done(); p.refusal != nil {
		return p.refusal
	}
	return nil
}

// set reads SET [SESSION] name = | TO value and the older SET SCHEMA 'x' and SET TIME ZONE 'x'.
func (p *phrase) set() error {
	p.a.Kind, p.a.Class = Set, wire.Setting
	p.expect("set")
	_ = p.accept("session")
	name := ""
	switch {
	case p.next("schema") && p.pos+1 < len(p.tokens) && p.tokens[p.pos+1].Kind == sqltext.String:
		name = "schema"
		p.pos++
	case p.accept("time", "zone"):
		name = "timezone"
	case p.next("variable"), p.next("global"), p.next("local"):
		return refuse(BadSetting, "SET %s is not allowed: it would outlive or leave the session",
			strings.ToUpper(p.peek().Text))
	default:
		name = sqltext.Fold(p.word())
		if !p.acceptPunct("=") {
			p.expect("to")
		}
	}
	value, ok := p.settingValue()
	if p.refusal != nil || !ok {
		return refuse(BadSetting, "SET %s takes one plain value here", name)
	}
	p.a.Setting = &Setting{Name: name, Value: value}
	return p.setting()
}

// settingValue reads one plain value and the end of the statement.
func (p *phrase) settingValue() (string, bool) {
	t := p.peek()
	p.pos++
	if p.pos != len(p.tokens) {
		return "", false
	}
	switch t.Kind {
	case sqltext.Word, sqltext.Quoted:
		return t.Name(), true
	case sqltext.Number:
		return t.Text, true
	case sqltext.String:
		if t.Text[0] == '\'' && strings.Count(t.Text, "'") == 2 {
			return t.Text[1 : len(t.Text)-1], true
		}
	}
	return "", false
}

// setting judges a setting by its name. What asks for a thing that is so anyway is not run: under the
// engine's lock every SET but of the schema fails.
func (p *phrase) setting() error {
	s := p.a.Setting
	fixed := func(values ...string) error {
		p.a.NoOp, p.a.open = true, true
		if !slices.Contains(values, strings.ToLower(s.Value)) {
			return refuse(BadSetting, "%s cannot be changed here; it is %s", s.Name, values[0])
		}
		return nil
	}
	switch s.Name {
	case "schema", "search_path":
		p.a.Leaves = true
		return p.searchPath(s.Value)
	case "timezone":
		return fixed("utc", "etc/utc", "gmt", "z", "zulu", "universal", "uct")
	case "client_encoding", "names":
		return fixed("utf8", "utf-8", "unicode")
	case "standard_conforming_strings":
		return fixed("on", "true", "1")
	case "datestyle":
		return fixed("iso", "iso, mdy", "iso, ymd", "iso, dmy", "iso,mdy", "iso,ymd", "iso,dmy")
	case "application_name":
		p.a.NoOp, p.a.open = true, true
		return nil
	}
	return refuse(BadSetting, "SET %s is not allowed; SET schema, SET search_path and USE are", s.Name)
}

// searchPath judges a list of schemas: plain names only, since DuckDB unquotes them once more.
func (p *phrase) searchPath(value string) error {
	for entry := range strings.SplitSeq(value, ",") {
		parts := strings.Split(strings.TrimSpace(entry), ".")
		if len(parts) > 2 || strings.ContainsAny(entry, "\"'\\") {
			return refuse(BadSetting, "%q is not a schema's plain name", entry)
		}
		t, refusal := p.names.schema(parts, "select")
		if refusal != nil {
			return refusal
		}
		p.a.Tables = append(p.a.Tables, t)
		p.a.references = append(p.a.references, reference{table: t, at: -1, fixed: true, head: true})
	}
	return nil
}

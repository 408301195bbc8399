package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unicode/utf8"

	"github.com/qod-io/qod/runtime/sqltext"
)

const (
	maxBytes  = 1 << 20 // of a statement
	maxTokens = 200_000 // the syntax tree of so many literals is some 30 MB
	maxDepth  = 200     // of brackets
)

// Config says how a Guard works.
type Config struct {
	// Connections is how many statements are parsed at the same time. Default: the number of CPUs that
	// Go uses, at least 2.
	Connections int
	// MemoryBytes is the memory limit of the instance that parses. Default: 256 MiB.
	MemoryBytes int64
	// CacheEntries is for how many statements what they are is kept. Default: 4,096.
	CacheEntries int
}

// Guard judges statements. It is safe for concurrent use.
type Guard struct {
	sandbox  *sandbox
	builtin  *builtin
	words    vocabulary
	cache    *cache[*analysis]
	rewrites *cache[*Statement]
}

// New starts the DuckDB instance that parses. Close ends it.
func New(c Config) (*Guard, error) {
	if c.Connections <= 0 {
		c.Connections = max(2, runtime.GOMAXPROCS(0))
	}
	if c.MemoryBytes <= 0 {
		c.MemoryBytes = 256 << 20
	}
	if c.CacheEntries <= 0 {
		c.CacheEntries = 4096
	}
	s, err := openSandbox(c.Connections, c.MemoryBytes)
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	p := <-s.idle
	b, err := loadBuiltin(p)
	s.idle <- p
	if err != nil {
		s.close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	return &Guard{sandbox: s, builtin: b, words: newVocabulary(),
		cache: newCache[*analysis](c.CacheEntries), rewrites: newCache[*Statement](c.CacheEntries)}, nil
}

// Close waits for the checks that run and ends the instance. Later checks fail. It is called once.
func (g *Guard) Close() { g.sandbox.close() }

// Check says what the statement is, if it may run. Else the error is a *Refusal, or a *SyntaxError if
// the text is no statement. Other errors are faults: a context that ended, a closed guard, ErrParser.
// What a Statement points to is shared with others of the same text and must not be changed.
func (g *Guard) Check(ctx context.Context, sql string, s Scope) (Statement, error) {
	if s.Rights == nil {
		return Statement{}, errors.New("check statement: no rights")
	}
	catalog := sqltext.Fold(s.Catalog)
	key := cacheKey{catalog: catalog, sql: sql}
	a, ok := g.cache.get(key)
	if !ok {
		var err error
		if a, err = g.analyse(ctx, sql, catalog); err != nil {
			return Statement{}, err
		}
		if a.repeats() {
			g.cache.put(key, a, 0)
		}
	}
	if a.Parameters && !s.Prepared {
		return Statement{}, syntaxError("the statement has parameters: prepare it and bind them")
	}
	rulings, refusal := authorize(a, s)
	if refusal != nil {
		return Statement{}, refusal
	}
	st := a.Statement
	if slices.ContainsFunc(rulings, func(r ruling) bool { return r.action != keep }) {
		var err error
		if st, err = g.rewritten(ctx, a, s, rulings, key); err != nil {
			return Statement{}, err
		}
	}
	st.Protected = slices.ContainsFunc(rulings, func(r ruling) bool { return r.policy != nil })
	st.Restricted = !s.Rights.holds("select", every, every)
	return st, nil
}

// repeats reports whether the same text may well come again.
func (a *analysis) repeats() bool { return a.ReadOnly || a.Parameters }

// rewritten is rewrite with a cache.
func (g *Guard) rewritten(ctx context.Context, a *analysis, s Scope, rulings []ruling, key cacheKey) (Statement, error) {
	key.scope = s.identity(a)
	if st, ok := g.rewrites.get(key); ok {
		return *st, nil
	}
	st, err := g.rewrite(ctx, a, s, rulings)
	if err != nil {
		return Statement{}, err
	}
	if a.repeats() {
		g.rewrites.put(key, st, len(st.SQL))
	}
	return *st, nil
}

// analyse reads a statement without regard to permissions.
func (g *Guard) analyse(ctx context.Context, sql, catalog string) (*analysis, error) {
	if catalog == "" {
		return nil, errors.New("check statement: no catalog")
	}
	if len(sql) > maxBytes {
		return nil, refuse(TooLarge, "the statement is longer than 1 MiB")
	}
	if !utf8.ValidString(sql) {
		return nil, syntaxError("the statement is not UTF-8")
	}
	clean, tokens, err := sqltext.Clean(sql)
	if err != nil {
		return nil, syntaxError("the statement has a " + err.Error())
	}
	tokens, refusal := single(tokens)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := limits(tokens); refusal != nil {
		return nil, refusal
	}
	text := clean[tokens[0].Start:tokens[len(tokens)-1].End]
	for i, start := 0, tokens[0].Start; i < len(tokens); i++ {
		tokens[i].Start -= start
		tokens[i].End -= start
	}
	names := resolver{catalog: catalog, builtin: g.builtin}
	return g.read(ctx, &phrase{names: names, text: text, tokens: tokens, a: &analysis{}})
}

// single returns the tokens without the semicolons around them.
func single(tokens []sqltext.Token) ([]sqltext.Token, *Refusal) {
	for len(tokens) > 0 && tokens[0].IsPunct(";") {
		tokens = tokens[1:]
	}
	for len(tokens) > 0 && tokens[len(tokens)-1].IsPunct(";") {
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 {
		return nil, refuse(Multiple, "the statement is empty")
	}
	for _, t := range tokens {
		if t.IsPunct(";") {
			return nil, refuse(Multiple, "one statement at a time, please")
		}
	}
	return tokens, nil
}

// limits refuses what is too large to be read safely, and the names of DuckLake's own.
func limits(tokens []sqltext.Token) *Refusal {
	if len(tokens) > maxTokens {
		return refuse(TooLarge, "the statement has more than 200,000 words and signs")
	}
	depth := 0
	for _, t := range tokens {
		switch t.Kind {
		case sqltext.Punct:
			depth += bracket(t)
		case sqltext.Word, sqltext.Quoted:
			if name := t.Name(); hidden(name) {
				return hiddenName(name)
			}
		}
		if depth > maxDepth {
			return refuse(TooLarge, "the statement has more than 200 brackets in brackets")
		}
	}
	return nil
}

// bracket returns 1 for an opening bracket, -1 for a closing one, else 0.
func bracket(t sqltext.Token) int {
	switch t.Text {
	case "(", "[", "{":
		return 1
	case ")", "]", "}":
		return -1
	}
	return 0
}

package config

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/qod-io/qod/schema"
)

// navigation goes with a file and says what [WriteDiagnostics] needs to know of it.
type navigation struct {
	context interface{ ContextString(offset int) string } // nil: no blocks
	// find returns the text that must not be shown, and the expressions whose variables must not be.
	find func() (masks, secret []hcl.Range)
}

// ContextString names the block at an offset: pool "bi".
func (n *navigation) ContextString(offset int) string {
	if n.context == nil {
		return ""
	}
	return n.context.ContextString(offset)
}

// masked returns the file with masks on everything in it that may be a secret: the literals in the
// values of secret arguments and of sensitive variables, of names that are close to those, and the
// arguments of sensitive(). It goes by tokens; in a file that does not parse, where a missing quote turns
// strings inside out, also by lines. The masks are made when they are first asked for.
func (c *Config) masked(name string, file *hcl.File, broken bool) *hcl.File {
	out := *file
	nav := &navigation{find: sync.OnceValues(func() (masks, secret []hcl.Range) {
		m := masker{
			secrets: append(c.secretNames(), "default"), hides: c.hides(name),
			sensitive: c.inSensitiveBlock(), onlyTop: !isConfig(name), broken: broken,
		}
		m.run(file.Bytes, name, c.plainNames(name))
		return m.masks, m.secret
	})}
	if !broken { // in a broken file labels may be anything
		nav.context, _ = file.Nav.(interface{ ContextString(int) string })
	}
	out.Nav = nav
	return &out
}

// secretNames lists the names of secret arguments, of every kind, and of sensitive variables.
func (c *Config) secretNames() []string {
	var names []string
	for _, k := range schema.Kinds() {
		for _, a := range k.Attrs {
			if a.Secret {
				names = append(names, a.Name)
			}
		}
	}
	for v := range c.allVariables() {
		if v.sensitive {
			names = append(names, v.name)
		}
	}
	return names
}

// allVariables yields the variables of the root and of all modules.
func (c *Config) allVariables() func(func(*variable) bool) {
	return func(yield func(*variable) bool) {
		for _, m := range c.modules {
			for _, v := range m.variables {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// plainNames lists the words of a file that are never a secret: what the language calls things.
func (c *Config) plainNames(file string) []string {
	var names []string
	if !IsConfig(file) && !IsPolicy(file) {
		for _, v := range c.root.variables {
			if !v.sensitive {
				names = append(names, v.name)
			}
		}
		return names
	}
	for _, b := range topSchema().Blocks {
		names = append(names, b.Type)
	}
	for _, k := range schema.Kinds() {
		names = append(names, k.Names()...)
	}
	return append(names, "stack", "type", "default", "sensitive", "for_each", "true", "false", "null")
}

// hides returns whether the value of an argument of that name may be a secret in the file.
func (c *Config) hides(file string) func(name string) bool {
	if !IsConfig(file) && !IsPolicy(file) {
		return func(name string) bool {
			v, declared := c.root.variable(name)
			return !declared || v.sensitive
		}
	}
	plain := map[string]bool{}
	for _, k := range schema.Kinds() {
		for _, name := range k.Names() {
			plain[name] = true
		}
	}
	secrets := c.secretNames()
	return func(name string) bool {
		known := slices.Contains(secrets, name)
		return known || !plain[name] && schema.Nearest(name, secrets) != ""
	}
}

// inSensitiveBlock returns whether an argument at a place is in the block of a sensitive variable or output,
// whose default or value must not be shown.
func (c *Config) inSensitiveBlock() func(block, name string, rng hcl.Range) bool {
	return func(_, name string, rng hcl.Range) bool {
		if !mayBeValue(name) {
			return false
		}
		variable := func(v *variable) bool { return v.sensitive && extent(v.src).Overlaps(rng) }
		output := func(o *output) bool { return (o.sensitive || o.ephemeral) && extent(o.src).Overlaps(rng) }
		return slices.ContainsFunc(c.modules, func(m *module) bool {
			return slices.ContainsFunc(m.variables, variable) || slices.ContainsFunc(m.misnamed, variable) ||
				slices.ContainsFunc(m.outputs, output)
		})
	}
}

// mayBeSensitive is inSensitiveBlock where nothing is known of other files, nor of modules.
func mayBeSensitive(block, name string, _ hcl.Range) bool {
	switch block {
	case "output":
		return mayBeValue(name)
	case "module":
		return !slices.Contains(reservedNames(), name)
	}
	return false
}

// masker finds the masks of one file.
type masker struct {
	json    bool
	tokens  hclsyntax.Tokens
	secrets []string
	hides   func(name string) bool
	// sensitive is asked about arguments of top-level blocks.
	sensitive func(block, name string, at hcl.Range) bool
	broken    bool // it does not parse, so that every default may be a sensitive variable's
	onlyTop   bool // names inside of values mean nothing
	masks     []hcl.Range
	secret    []hcl.Range
}

// run goes through a file. plain lists the words that are shown of JSON that does not parse.
func (m *masker) run(src []byte, name string, plain []string) {
	m.json = isJSON(name)
	if m.json {
		m.tokens = lexJSON(src, name)
		m.runJSON()
		if m.broken {
			m.maskWords(src, name, plain)
		}
		return
	}
	m.tokens, _ = hclsyntax.LexConfig(src, name, hcl.InitialPos)
	m.runHCL()
	if m.broken {
		m.maskLines(src, name)
	}
}

func (m *masker) runHCL() {
	depth, top := 0, ""
	for i, t := range m.tokens {
		depth += nesting(t.Type)
		name, end := m.nameAt(i)
		if depth == 0 && t.Type == hclsyntax.TokenIdent && (i == 0 || m.is(i-1, hclsyntax.TokenNewline) || m.is(i-1, hclsyntax.TokenComment)) {
			top = name
		}
		if m.onlyTop && depth > 0 {
			continue
		}
		switch {
		case name == "":
		case m.is(end, hclsyntax.TokenEqual) && depth == 1 && m.sensitive(top, name, t.Range):
			m.mask(end+1, true)
		case m.is(end, hclsyntax.TokenEqual) && m.broken && (name == "default" || depth == 1 && mayBeSensitive(top, name, t.Range)):
			m.mask(end+1, true)
		case (m.is(end, hclsyntax.TokenEqual) || m.is(end, hclsyntax.TokenColon)) && m.hides(name):
			m.mask(end+1, true)
		case name == "sensitive" && m.is(end, hclsyntax.TokenOParen):
			m.mask(end, false)
		}
	}
}

// runJSON takes a property of the file's own object for a block type and those of it for labels, except in
// locals; a string that has a template and the name of a secret is hidden as a whole.
func (m *masker) runJSON() {
	depth, top := 0, ""
	for i, t := range m.tokens {
		depth += nesting(t.Type)
		if t.Type != hclsyntax.TokenQuotedLit {
			continue
		}
		name := jsonText(t.Bytes)
		if !m.is(i+2, hclsyntax.TokenColon) {
			if depth == 1 || m.templateOfSecret(name) { // what should be an object may be anything
				m.masks = append(m.masks, t.Range)
			}
			continue
		}
		if depth == 1 {
			top = name
		}
		label := depth == 2 && top != "locals" && m.is(i+3, hclsyntax.TokenOBrace)
		switch {
		case m.onlyTop && depth > 1 || !m.onlyTop && (depth == 1 || label):
		case m.sensitive(top, name, t.Range) || m.hides(name):
			m.mask(i+3, true)
		}
	}
}

func (m *masker) templateOfSecret(text string) bool {
	if !strings.Contains(text, "${") && !strings.Contains(text, "%{") || isReference(text) {
		return false
	}
	words := regexp.MustCompile(`[\pL_][\pL\pN_-]*`)
	return slices.ContainsFunc(words.FindAllString(text, -1), func(word string) bool {
		return word == "sensitive" || m.hides(word)
	})
}

// isReference reports whether a string in JSON is a reference and nothing else.
func isReference(text string) bool {
	inside, ok := strings.CutPrefix(text, "${")
	if !ok || !strings.HasSuffix(inside, "}") {
		return false
	}
	t, diags := hclsyntax.ParseTraversalAbs([]byte(strings.TrimSuffix(inside, "}")), "", hcl.InitialPos)
	return !diags.HasErrors() && slices.Contains(roots(), t.RootName())
}

// maskWords hides all of JSON that does not parse but its punctuation and plain words: where a quote is
// missing, no name can be trusted to be one.
func (m *masker) maskWords(src []byte, file string, plain []string) {
	words := regexp.MustCompile(`[^\s{}\[\]:,"]+`)
	for _, at := range words.FindAllIndex(src, -1) {
		if !slices.Contains(plain, string(src[at[0]:at[1]])) {
			m.masks = append(m.masks, hcl.Range{Filename: file, Start: hcl.Pos{Byte: at[0]}, End: hcl.Pos{Byte: at[1]}})
		}
	}
}

// mayBeValue is true for the argument default of a variable, for the value of an output, and for what may be a
// misspelling of them.
func mayBeValue(name string) bool {
	others := []string{"type", "description", "sensitive", "ephemeral", "nullable", "validation", "condition", "error_message", "depends_on"}
	return !slices.Contains(others, name)
}

// nameAt returns the name that an identifier or a quoted key is, and the index after it.
func (m *masker) nameAt(i int) (string, int) {
	t := m.tokens[i]
	if t.Type == hclsyntax.TokenIdent {
		return string(t.Bytes), i + 1
	}
	quoted := i > 0 && m.is(i-1, hclsyntax.TokenOQuote) && m.is(i+1, hclsyntax.TokenCQuote)
	if t.Type == hclsyntax.TokenQuotedLit && quoted {
		return string(t.Bytes), i + 2
	}
	return "", i
}

func (m *masker) is(i int, t hclsyntax.TokenType) bool {
	return i < len(m.tokens) && m.tokens[i].Type == t
}

// mask hides the literals of the expression that starts at token i: up to the end of the line or list
// it is in, or else to the closing parenthesis.
func (m *masker) mask(i int, line bool) {
	depth := 0
	start := i
	for ; i < len(m.tokens); i++ {
		t := m.tokens[i]
		depth += nesting(t.Type)
		switch t.Type {
		case hclsyntax.TokenNewline, hclsyntax.TokenComma:
			if depth == 0 && line {
				depth = -1
			}
		case hclsyntax.TokenEOF:
			depth = -1
		default:
			if m.literal(i) {
				m.masks = append(m.masks, t.Range)
			}
		}
		if depth < 0 || depth == 0 && !line {
			break
		}
	}
	if start < len(m.tokens) {
		m.secret = append(m.secret, hcl.RangeBetween(m.tokens[start].Range, m.tokens[min(i, len(m.tokens)-1)].Range))
	}
}

// nesting is how much deeper the source is after a token.
func nesting(t hclsyntax.TokenType) int {
	switch t {
	case hclsyntax.TokenOParen, hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenTemplateInterp,
		hclsyntax.TokenTemplateControl, hclsyntax.TokenOHeredoc:
		return 1
	case hclsyntax.TokenCParen, hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenTemplateSeqEnd,
		hclsyntax.TokenCHeredoc:
		return -1
	}
	return 0
}

// literal reports whether a token may be part of a secret. An identifier is when it refers to nothing:
// the author forgot the quotes.
func (m *masker) literal(i int) bool {
	switch m.tokens[i].Type {
	case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenNumberLit, hclsyntax.TokenInvalid,
		hclsyntax.TokenBadUTF8, hclsyntax.TokenComment:
		return !m.json || !isReference(jsonText(m.tokens[i].Bytes))
	case hclsyntax.TokenIdent:
		name := string(m.tokens[i].Bytes)
		return !slices.Contains(append(roots(), "null", "true", "false"), name) && !m.is(i-1, hclsyntax.TokenDot) && !m.is(i+1, hclsyntax.TokenOParen)
	}
	return false
}

// maskLines hides what follows a name whose value may be a secret, also where the name ran into others:
// up to the next line that starts an argument or block, or ends one.
func (m *masker) maskLines(src []byte, file string) {
	structure := regexp.MustCompile(`\r?\n[ \t]*([\pL_][\pL\pN_-]*[ \t]*=|[\pL_][^\n"=]*("[^\n"]*"[ \t]*)*\{|\}|#)`)
	words := regexp.MustCompile(`[\pL_][\pL\pN_-]*`)
	for _, at := range words.FindAllIndex(src, -1) {
		word := string(src[at[0]:at[1]])
		run := slices.ContainsFunc(m.secrets, func(name string) bool { return strings.Contains(word, name) })
		if !run && !m.hides(word) && schema.Nearest(word, m.secrets) == "" {
			continue
		}
		start := at[1] + len(regexp.MustCompile(`^"?[ \t]*[=:]?[ \t]*`).Find(src[at[1]:]))
		end := len(src)
		if next := structure.FindIndex(src[start:]); next != nil {
			end = start + next[0]
		}
		m.masks = append(m.masks, hcl.Range{Filename: file, Start: hcl.Pos{Byte: start}, End: hcl.Pos{Byte: end}})
	}
}

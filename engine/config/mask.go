package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/qod-io/qod/schema"
)

// navigation goes with a file and says what [WriteDiagnostics] needs to know of it.
type navigation struct {
	context interface{ ContextString(offset int) string } // nil: no blocks
	masks   []hcl.Range                                   // text that must not be shown
	secret  []hcl.Range                                   // expressions whose variables must not be shown
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
// strings inside out, also by lines.
func (c *Config) masked(name string, file *hcl.File) *hcl.File {
	out := *file
	nav := &navigation{}
	_, diags := hclsyntax.ParseConfig(file.Bytes, name, hcl.InitialPos)
	tokens, _ := hclsyntax.LexConfig(file.Bytes, name, hcl.InitialPos)
	m := masker{
		tokens: tokens, secrets: append(c.secretNames(), "default"), hides: c.hides(name),
		defaults: c.sensitiveDefaults(), onlyTop: !c.isConfig(name),
	}
	m.broken = diags.HasErrors()
	m.run()
	if m.broken {
		m.maskLines(file.Bytes, name) // and no context, whose labels may be anything
	} else {
		nav.context, _ = file.Nav.(interface{ ContextString(int) string })
	}
	nav.masks, nav.secret = m.masks, m.secret
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
	for _, v := range c.variables {
		if v.sensitive {
			names = append(names, v.name)
		}
	}
	return names
}

// hides returns whether the value of an argument of that name may be a secret in the file.
func (c *Config) hides(file string) func(name string) bool {
	var plain []string
	for _, k := range schema.Kinds() {
		plain = append(plain, k.Names()...)
	}
	secrets := c.secretNames()
	if c.isConfig(file) {
		return func(name string) bool {
			known := slices.Contains(secrets, name)
			return known || !slices.Contains(plain, name) && schema.Nearest(name, secrets) != ""
		}
	}
	return func(name string) bool {
		v, declared := c.variable(name)
		return !declared || v.sensitive
	}
}

func (c *Config) isConfig(file string) bool {
	return strings.HasSuffix(file, suffix)
}

// sensitiveDefaults returns whether a place is in the block of a sensitive variable, whose default must not
// be shown.
func (c *Config) sensitiveDefaults() func(hcl.Range) bool {
	return func(rng hcl.Range) bool {
		return slices.ContainsFunc(c.variables, func(v *variable) bool {
			return v.sensitive && v.src.Range().Filename == rng.Filename && v.src.Body.Range().Overlaps(rng)
		})
	}
}

// masker finds the masks of one file.
type masker struct {
	tokens   hclsyntax.Tokens
	secrets  []string
	hides    func(name string) bool
	defaults func(hcl.Range) bool
	broken   bool // it does not parse, so that every default may be a sensitive variable's
	onlyTop  bool // names inside of values mean nothing
	masks    []hcl.Range
	secret   []hcl.Range
}

func (m *masker) run() {
	depth := 0
	for i, t := range m.tokens {
		depth += nesting(t.Type)
		name, end := m.nameAt(i)
		if m.onlyTop && depth > 0 {
			continue
		}
		switch {
		case name == "":
		case m.is(end, hclsyntax.TokenEqual) && depth == 1 && mayBeDefault(name) && m.defaults(t.Range):
			m.mask(end+1, true)
		case m.is(end, hclsyntax.TokenEqual) && m.broken && name == "default":
			m.mask(end+1, true)
		case (m.is(end, hclsyntax.TokenEqual) || m.is(end, hclsyntax.TokenColon)) && m.hides(name):
			m.mask(end+1, true)
		case name == "sensitive" && m.is(end, hclsyntax.TokenOParen):
			m.mask(end, false)
		}
	}
}

// mayBeDefault is true for the argument default of a variable and for what it may be a misspelling of.
func mayBeDefault(name string) bool {
	return !slices.Contains([]string{"type", "description", "sensitive", "nullable"}, name)
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
		return true
	case hclsyntax.TokenIdent:
		name := string(m.tokens[i].Bytes)
		reference := append(kindNames(), "var", "local", "each", "null", "true", "false")
		return !slices.Contains(reference, name) && !m.is(i-1, hclsyntax.TokenDot) && !m.is(i+1, hclsyntax.TokenOParen)
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

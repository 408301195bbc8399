package config

import (
	"encoding/json"
	"regexp"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// lexJSON splits JSON into the tokens that HCL's own scanner gives for the same text, but that a string is
// one literal whatever template it holds: quotes in its expressions are escaped, and would turn the rest
// inside out. An empty string has an empty literal.
func lexJSON(src []byte, file string) hclsyntax.Tokens {
	types := map[byte]hclsyntax.TokenType{
		'{': hclsyntax.TokenOBrace, '}': hclsyntax.TokenCBrace, '[': hclsyntax.TokenOBrack,
		']': hclsyntax.TokenCBrack, ':': hclsyntax.TokenColon, ',': hclsyntax.TokenComma,
	}
	var tokens hclsyntax.Tokens
	pos := hcl.InitialPos
	add := func(t hclsyntax.TokenType, n int) {
		start := pos
		text := src[pos.Byte : pos.Byte+n]
		pos.Byte += n
		pos.Column += utf8.RuneCount(text)
		tokens = append(tokens, hclsyntax.Token{
			Type: t, Bytes: text, Range: hcl.Range{Filename: file, Start: start, End: pos},
		})
	}
	word := regexp.MustCompile(`^[^\s{}\[\]:,"]+`)
	literal := regexp.MustCompile(`^(?:[^"\\]|\\.)*`)
	for pos.Byte < len(src) {
		c := src[pos.Byte]
		switch t, known := types[c]; {
		case known:
			add(t, 1)
		case c == '"':
			add(hclsyntax.TokenOQuote, 1)
			add(hclsyntax.TokenQuotedLit, len(literal.Find(src[pos.Byte:])))
			if pos.Byte < len(src) {
				add(hclsyntax.TokenCQuote, 1)
			}
		case c == '\n':
			pos.Byte++
			pos.Line, pos.Column = pos.Line+1, 1
		case c == ' ' || c == '\t' || c == '\r':
			pos.Byte++
			pos.Column++
		case word.Match(src[pos.Byte:]):
			add(hclsyntax.TokenNumberLit, len(word.Find(src[pos.Byte:])))
		default:
			add(hclsyntax.TokenInvalid, 1)
		}
	}
	add(hclsyntax.TokenEOF, 0)
	return tokens
}

// jsonText is what the inside of a JSON string stands for.
func jsonText(literal []byte) string {
	var text string
	if err := json.Unmarshal(append(append([]byte{'"'}, literal...), '"'), &text); err != nil {
		return string(literal)
	}
	return text
}

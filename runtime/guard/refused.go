package guard

import (
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

// refused says why a statement that is on no list is refused, and what to do instead.
func (p *phrase) refused() error {
	at := p.pos
	if p.with.empty() {
		at = 0
	}
	words := make([]string, 0, 4)
	for _, t := range p.tokens[at:] {
		if t.Kind != sqltext.Word || len(words) == cap(words) {
			break
		}
		words = append(words, sqltext.Fold(t.Text))
	}
	if len(words) == 0 {
		return syntaxError("syntax error after WITH")
	}
	verb := strings.ToUpper(words[0])
	switch words[0] {
	case "prepare", "execute", "deallocate":
		return refuse(NotAllowed, "SQL %s is not allowed; Flight SQL's prepared statements are: "+
			"every driver has them", verb)
	case "create", "alter", "drop", "comment":
		return refuse(NotAllowed, "%s %s is not allowed; CREATE, ALTER and DROP of tables, views and schemas are",
			verb, forbidden(words[1:]))
	case "attach", "detach":
		return refuse(NotAllowed, "%s is not allowed: databases are attached by an administrator", verb)
	case "copy", "export", "import":
		return refuse(NotAllowed, "%s is not allowed: there are no files here; fetch results or insert rows "+
			"over Flight SQL", verb)
	case "install", "load", "force":
		return refuse(NotAllowed, "%s is not allowed: extensions belong to the installation", verb)
	case "call", "pragma":
		return refuse(NotAllowed, "%s is not allowed; DESCRIBE, SHOW TABLES and information_schema are", verb)
	case "checkpoint", "vacuum", "analyze":
		return refuse(NotAllowed, "%s is not allowed: the catalog is maintained by an administrator", verb)
	case "reset":
		return refuse(BadSetting, "RESET is not allowed; SET schema, SET search_path and USE are")
	}
	return refuse(NotAllowed, "%s is not a statement that is allowed here", verb)
}

// forbidden names what CREATE and its like are about, and why that is not to be had.
func forbidden(words []string) string {
	why := map[string]string{
		"secret":   "SECRET (credentials are given by an administrator)",
		"macro":    "MACRO (it would be a function that nobody has looked at)",
		"function": "FUNCTION (it would be a function that nobody has looked at)",
		"type":     "TYPE (the lake keeps no types)",
		"sequence": "SEQUENCE (the lake keeps no sequences)",
		"index":    "INDEX (the lake keeps no indexes)",
		"database": "DATABASE (databases are made by an administrator)",
		"trigger":  "TRIGGER",
		"user":     "USER (users are made by an administrator)",
		"role":     "ROLE (roles are made by an administrator)",
	}
	for _, w := range words {
		if text, ok := why[w]; ok {
			return text
		}
	}
	return "of this"
}

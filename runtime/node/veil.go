package node

import (
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// veil is what clients and logs are not told of the engine's errors.
type veil struct {
	depth veilDepth
	text  string // the statement as the client sent it, to tell the client's names from others
}

type veilDepth int

const (
	// overNothing: everything is told.
	overNothing veilDepth = iota
	// overNames: which names there are is not told. The engine lists those close to one that it missed.
	overNames
	// overValues: of an error only its class is told. The engine puts values into messages, also of rows
	// that a policy hides, and echoes the statement, which shows the policy.
	overValues
)

// veil is the one for a statement of a client.
func (st statement) veil() veil {
	v := veil{text: st.text}
	switch {
	case st.Protected:
		v.depth = overValues
	case st.Restricted:
		v.depth = overNames
	}
	return v
}

// over returns what is told of an error. Only the engine's are changed: those of this package tell nothing.
// Code and reason stay, except that what is not there and what may not be seen are told alike.
func (v veil) over(err error) error {
	f, ok := err.(*fault)
	if !ok || !f.engine || v.depth == overNothing {
		return err
	}
	told := *f
	told.engine = false
	kind, name := missing(f)
	switch {
	case v.depth == overValues && name != "" && v.text != "" && !strings.Contains(sqltext.Fold(v.text), sqltext.Fold(name)):
		// The client's text does not speak of it: it is the policy that does.
		told.message = "a policy on a table of the statement cannot be applied; ask an administrator"
	case kind != "" && kind != "column":
		told.code, told.reason = codes.PermissionDenied, wire.Denied
		told.message = unseen(kind, name)
	case v.depth == overValues:
		told.message = f.class() + ": details are withheld, because the statement touches a table with policies"
	case f.kind == "Binder" || f.kind == "Catalog" || f.kind == "Dependency":
		told.message = firstLine(f.message)
	}
	return &told
}

// unseen says that something is not there, or may not be seen.
func unseen(kind, name string) string {
	return strings.TrimSpace(kind+" "+quoted(name)) + " does not exist or you are not authorized"
}

// class is the engine's name of an error if it is a known one: what else stands before "Error" could be
// made of values.
func (f *fault) class() string {
	if f.kind == "" || f.code == codes.Unknown {
		return "Error"
	}
	return f.kind + " Error"
}

// missing returns what the engine misses and its name, both empty when the error is another one. Where
// the message does not tell, the kind is "what the statement names" and the name is empty.
func missing(f *fault) (kind, name string) {
	for _, known := range []struct{ kind, pattern string }{
		{"table", `^Catalog Error: (?:Table|View) with name "?([^"\s]+)"? does not exist`},
		{"schema", `^Catalog Error: Schema with name "?([^"\s]+)"? does not exist`},
		{"schema", `^Catalog Error: SET \w+: No catalog \+ schema named "([^"]+)" found`},
		{"schema", `^Binder Error: Schema "([^"]+)" not found in DuckLakeCatalog`},
		{"column", `^Binder Error: (?:Table|Values list) "[^"]+" does not have a column named "([^"]+)"`},
		{"column", `^Binder Error: (?:Referenced column|Column) "([^"]+)" (?:in (?:EXCLUDE|REPLACE) list )?not found`},
	} {
		if found := regexp.MustCompile(known.pattern).FindStringSubmatch(f.message); found != nil {
			return known.kind, found[1][strings.LastIndex(found[1], ".")+1:]
		}
	}
	if f.kind == "Catalog" && f.code != codes.AlreadyExists && !strings.HasPrefix(f.message, "Catalog Error: Cannot drop") {
		return "what the statement names", ""
	}
	return "", ""
}

func quoted(name string) string {
	if name == "" {
		return ""
	}
	return quoteName(name)
}

// firstLine is a message without the names that the engine lists below it.
func firstLine(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	for _, list := range []string{" Did you mean", " Candidate"} {
		line, _, _ = strings.Cut(line, list)
	}
	return line
}

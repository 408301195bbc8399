package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

const (
	typeJSON  = "application/json"
	typePatch = "application/merge-patch+json"
)

// read decodes the body, all of it, and refuses what it does not know.
func (c *call) read(into any) *failure {
	media, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if err != nil || media != typeJSON && (c.Method != http.MethodPatch || media != typePatch) {
		return refuse(http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be "+typeJSON)
	}
	err = c.decode(into)
	var (
		large *http.MaxBytesError
		typed *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("a body may have %d bytes", large.Limit))
	case errors.As(err, &typed):
		return badRequest("a %s will not do here", typed.Value).at(typed.Field)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name, _ := strconv.Unquote(field)
		return badRequest("there is no such field").at(shorten(name))
	}
	return badRequest("the body is not the JSON that is wanted")
}

func (c *call) decode(into any) error {
	raw, err := io.ReadAll(c.Body)
	if err != nil {
		return err
	}
	c.unhurried()
	if !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return errors.New("it is no object")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, end := dec.Token(); !errors.Is(end, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// unhurried takes away the limit of time that a client has to send its request. It would end the request's context,
// and an answer may take longer.
func (c *call) unhurried() {
	_ = http.NewResponseController(c.ResponseWriter).SetReadDeadline(time.Time{}) // a writer of a test has none
}

// query returns the parameters of the query, and refuses others than those of the route.
func (c *call) query() (url.Values, *failure) {
	values, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query cannot be read")
	}
	for name, list := range values {
		if !slices.ContainsFunc(c.route.query, func(p parameter) bool { return p.name == name }) {
			return nil, badRequest("there is no parameter of that name").at(shorten(name))
		}
		if len(list) > 1 {
			return nil, badRequest("the parameter is given twice").at(name)
		}
	}
	return values, nil
}

// limited is query for what is listed: limit is how much of it is wanted.
func (c *call) limited() (q url.Values, limit int, f *failure) {
	if q, f = c.query(); f == nil {
		limit, f = count(q, "limit", defaultPage, maxPage)
	}
	return q, limit, f
}

// count reads a whole number of the query from 1 to most.
func count(q url.Values, name string, or, most int) (int, *failure) {
	text := q.Get(name)
	if !q.Has(name) {
		return or, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || strings.HasPrefix(text, "+") {
		return 0, badRequest("want a whole number from 1 to %d", most).at(name)
	}
	return n, nil
}

// pathParts splits an escaped path below Root into its parts, each unescaped.
func pathParts(escaped string) ([]string, bool) {
	rest, ok := strings.CutPrefix(escaped, Root+"/")
	if !ok {
		return nil, false
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		var err error
		if parts[i], err = url.PathUnescape(p); err != nil || p == "" {
			return nil, false
		}
	}
	return parts, true
}

// keyOf reads the key of an object from the parts of a path. A part is as in an address, where a "/" inside a
// name is %2F, escaped once more; or it is the bare name.
func keyOf(k *schema.Kind, parts []string) (schema.Addr, bool) {
	addr, err := k.ParseKey(strings.Join(parts, "/"))
	if err == nil && len(addr.Parts()) == len(parts) {
		return addr, true
	}
	bare := make([]string, len(parts))
	for i, p := range parts {
		bare[i] = strings.NewReplacer("%", "%25", "/", "%2F").Replace(p)
	}
	addr, err = k.ParseKey(strings.Join(bare, "/"))
	return addr, err == nil
}

// match is the revision that a change must find.
type match struct {
	revision store.Revision
	given    bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *match) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 {
		return &json.UnmarshalTypeError{Value: "value that is no revision", Field: "if_match"}
	}
	*m = match{store.Revision(n), true}
	return nil
}

// condition is what If-Match and If-None-Match ask for.
type condition struct {
	revisions []store.Revision // one of these
	exists    bool             // any revision
	absent    bool             // none
}

func (c *call) condition() (condition, *failure) {
	var out condition
	if header, given := c.field("If-Match"); header == "*" {
		out.exists = true
	} else if given {
		for tag := range strings.SplitSeq(header, ",") {
			text, ok := strings.CutPrefix(strings.TrimSpace(tag), `"`)
			text, closed := strings.CutSuffix(text, `"`)
			n, err := strconv.ParseInt(text, 10, 64)
			if !ok || !closed || err != nil || n < 1 {
				return out, badRequest(`If-Match is "REVISION", as an ETag has it`)
			}
			out.revisions = append(out.revisions, store.Revision(n))
		}
	}
	switch header, given := c.field("If-None-Match"); {
	case header == "*":
		out.absent = true
	case given:
		return out, badRequest("If-None-Match is * here")
	}
	if out.absent && (out.exists || len(out.revisions) > 0) {
		return out, badRequest("If-Match and If-None-Match exclude each other")
	}
	return out, nil
}

// field returns a header of the request, and whether it is there: one that is empty is not as good as none.
func (c *call) field(name string) (value string, given bool) {
	lines := c.Request.Header.Values(name)
	return strings.Join(lines, ","), len(lines) > 0
}

// of returns what the object must be at, nil for anything.
func (c condition) of(have *store.Object) *store.Revision {
	want := store.Revision(0)
	switch {
	case c.absent:
	case len(c.revisions) > 0:
		want = c.revisions[0]
		if have != nil && slices.Contains(c.revisions, have.Revision) {
			want = have.Revision
		}
	case c.exists && have == nil:
		want = engine.AnyRevision
	default:
		return nil
	}
	return &want
}

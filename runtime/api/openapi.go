package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/qod-io/qod/schema"
)

// obj is a part of a JSON document, written in order of its names.
type obj = map[string]any

// OpenAPI returns the description of REST (OpenAPI 3.1) as that version of qod serves it, made from the routes
// and the kinds.
func OpenAPI(version string) ([]byte, error) {
	d := describer{schemas: common(), paths: obj{}}
	for _, k := range kinds() {
		d.schemas[k.Name] = objectSchema(k)
		d.schemas[k.Name+"_spec"] = k.SpecSchema(false)
		d.schemas[k.Name+"_effective"] = k.SpecSchema(true)
	}
	for _, r := range (&REST{}).table() {
		if !strings.Contains(r.path, "{kind}") {
			d.add(r, r.path, nil)
			continue
		}
		for _, k := range kinds() {
			if r.kinds != nil && !r.kinds(k) {
				continue
			}
			for _, path := range pathsOf(r.path, k) {
				d.add(r, path, k)
			}
		}
	}
	out := &bytes.Buffer{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(obj{
		"openapi": "3.1.0",
		"info": obj{
			"title": "qod", "version": version,
			"description": "Declares tenants, databases, pools, roles and users of a fleet of DuckDB nodes, one object at a time.",
		},
		"servers":  []obj{{"url": Root}},
		"security": []obj{{"bearer": []string{}}, {"basic": []string{}}},
		"paths":    d.paths,
		"components": obj{
			"schemas": d.schemas,
			"securitySchemes": obj{
				"bearer": obj{"type": "http", "scheme": "bearer", "description": "A personal access token, or what a login gave."},
				"basic":  obj{"type": "http", "scheme": "basic", "description": "A user's name, which may be TENANT/NAME, and password."},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("describe REST: %w", err)
	}
	return out.Bytes(), nil
}

func ref(name string) obj { return obj{"$ref": "#/components/schemas/" + name} }

// pathsOf lists the paths of a kind. Objects that may be without the outer part of their key have two.
func pathsOf(path string, k *schema.Kind) []string {
	path = strings.Replace(path, "{kind}", k.Name, 1)
	rest, after, keyed := strings.Cut(path, "{key...}")
	if !keyed {
		return []string{path}
	}
	var parts []string
	for _, part := range k.Key {
		parts = append(parts, "{"+strings.ReplaceAll(part, "|", "_or_")+"}")
	}
	out := []string{rest + strings.Join(parts, "/") + after}
	if a, ok := k.Attr(k.Key[0]); ok && a.Mode == schema.Optional {
		out = append(out, rest+strings.Join(parts[1:], "/")+after)
	}
	return out
}

type describer struct{ schemas, paths obj }

// add describes a route on a path.
func (d describer) add(r route, path string, k *schema.Kind) {
	name := r.name
	answer, body := r.answer, r.body
	if k != nil {
		name += "_" + k.Name
		if _, twice := d.names()[name]; twice {
			name += "_of_none" // of the key without its outer part
		}
		answer, body = d.of(k, answer), d.of(k, body)
	}
	operation := obj{"operationId": name, "summary": r.doc, "responses": d.responses(r, answer)}
	if params := d.parameters(r, path, k); len(params) > 0 {
		operation["parameters"] = params
	}
	if body != "" {
		content := obj{typeJSON: obj{"schema": ref(body)}}
		if r.method == http.MethodPatch {
			content[typePatch] = obj{"schema": ref(body)}
		}
		operation["requestBody"] = obj{"required": true, "content": content}
	}
	if r.open {
		operation["security"] = []obj{}
	}
	if k != nil {
		operation["tags"] = []string{k.Name}
	}
	at, ok := d.paths["/"+path].(obj)
	if !ok {
		at = obj{}
		d.paths["/"+path] = at
	}
	at[strings.ToLower(r.method)] = operation
}

func (d describer) names() map[string]bool {
	names := map[string]bool{}
	for _, path := range d.paths {
		for _, operation := range path.(obj) {
			names[operation.(obj)["operationId"].(string)] = true
		}
	}
	return names
}

// of names the schema of a body of a kind, which it makes from that of all kinds.
func (d describer) of(k *schema.Kind, name string) string {
	switch name {
	case "object":
		return k.Name
	case "page":
		d.schemas[k.Name+"_page"] = fields(obj{
			"revision": integer("The revision of all pages."), "items": obj{"type": "array", "items": ref(k.Name)},
			"next": text("What the next page is after, or empty."),
		})
		return k.Name + "_page"
	case "put":
		d.schemas[k.Name+"_put"] = fields(obj{
			"stack": stackSchema(), "spec": ref(k.Name + "_spec"), "protected": flag("Refuse to destroy the object."),
			"take_over": flag("Take the object over from another stack."),
		}, "stack", "spec")
		return k.Name + "_put"
	case "patch":
		d.schemas[k.Name+"_patch"] = fields(obj{
			"stack": stackSchema(), "spec": obj{"type": "object", "description": "A merge patch of the spec."},
		}, "stack", "spec")
		return k.Name + "_patch"
	}
	return name
}

func (d describer) parameters(r route, path string, k *schema.Kind) []obj {
	var out []obj
	for part := range strings.SplitSeq(path, "/") {
		name, open := strings.CutPrefix(part, "{")
		if !open {
			continue
		}
		words := "An id."
		if k != nil {
			words = "Part of the key, as in addresses: " + k.KeyForm() + "."
		}
		out = append(out, obj{
			"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": obj{"type": "string", "minLength": 1}, "description": words,
		})
	}
	for _, p := range r.query {
		s := obj{"type": "string"}
		if p.number > 0 {
			s = obj{"type": "integer", "minimum": 1, "maximum": p.number}
		}
		required := r.method == http.MethodDelete && p.name == "stack"
		out = append(out, obj{"name": p.name, "in": "query", "required": required, "schema": s, "description": p.doc})
	}
	if k != nil && r.changes && r.method != http.MethodPost {
		out = append(out, obj{
			"name": "If-Match", "in": "header", "schema": obj{"type": "string"}, "description": "The ETag of the object that was seen.",
		})
		if r.method == http.MethodPut {
			out = append(out, obj{
				"name": "If-None-Match", "in": "header", "schema": obj{"const": "*"}, "description": "Create only.",
			})
		}
	}
	return out
}

// responses lists what a route answers.
func (d describer) responses(r route, answer string) obj {
	good := obj{"description": "Done.", "content": obj{typeJSON: obj{"schema": ref(answer)}}}
	if answer == "events" {
		good = obj{"description": "Events, until the client goes.", "content": obj{"text/event-stream": obj{"schema": obj{"type": "string"}}}}
	}
	out := obj{"200": good}
	if r.method == http.MethodPut || r.name == "create_token" {
		out["201"] = good
	}
	codes := []int{http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable}
	if !r.open || r.body != "" {
		codes = append(codes, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound)
	}
	if r.body != "" {
		codes = append(codes, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	}
	if r.changes || r.body == "request" {
		codes = append(codes, http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity)
	}
	if r.answer == "page" {
		codes = append(codes, http.StatusGone)
	}
	for _, code := range codes {
		out[fmt.Sprint(code)] = obj{"description": http.StatusText(code) + ".", "content": obj{typeJSON: obj{"schema": ref("error")}}}
	}
	return out
}

package api

import (
	"net/http"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/schema"
)

// parameter is one of a query.
type parameter struct {
	name, doc string
	number    int // the most, of a whole number from 1
}

func limit(doc string, most int) parameter { return parameter{name: "limit", doc: doc, number: most} }

// table lists all routes. Of two paths that match the first counts.
func (a *REST) table() []route {
	return append(append(a.fixed(), a.stacks()...), []route{
		{
			method: http.MethodGet, path: "{kind}", name: "list", doc: "List objects, by key. All pages of a listing are of one revision.",
			answer: "page", run: (*call).list,
			query: []parameter{
				{name: "tenant", doc: "Only objects in this tenant."}, {name: "stack", doc: "Only objects of this stack."},
				{name: "name", doc: "Only objects of this name."}, limit("The most items of a page. Default: 100.", maxPage),
				{name: "after", doc: "Go on after the page with this `next`."},
			},
		},
		{
			method: http.MethodPost, path: "{kind}/{key...}/restart", kinds: engine.Runs, name: "restart", changes: true, body: "restart",
			answer: "object", run: (*call).restart,
			doc: "Have all nodes of an object replaced, one after the other: a new one takes over before an old one drains. It is ready once that is done.",
		},
		{method: http.MethodGet, path: "{kind}/{key...}", name: "get", doc: "Get an object.", answer: "object", run: (*call).get},
		{
			method: http.MethodPut, path: "{kind}/{key...}", name: "put", changes: true, body: "put", answer: "object", run: (*call).put,
			doc: "Create an object, or replace all that is written of it. A secret that is left out stays as it is; null takes it away. " +
				"A spec with another key renames.",
		},
		{
			method: http.MethodPatch, path: "{kind}/{key...}", name: "patch", changes: true, body: "patch", answer: "object", run: (*call).patch,
			doc: "Change what is written of an object by a merge patch (RFC 7396).",
		},
		{
			method: http.MethodDelete, path: "{kind}/{key...}", name: "delete", changes: true, answer: "deleted", run: (*call).remove,
			doc:   "Delete an object. What it owns outside goes afterwards.",
			query: []parameter{{name: "stack", doc: "The stack that owns the object."}},
		},
	}...)
}

func (a *REST) fixed() []route {
	list := []route{
		{
			method: http.MethodGet, path: "openapi.json", name: "openapi", open: true, doc: "This document.", answer: "document",
			run: (*call).document31,
		},
		{method: http.MethodPost, path: "login", name: "login", open: true, doc: "Log in.", body: "login", answer: "bearer", run: (*call).login},
		{method: http.MethodGet, path: "me", name: "me", doc: "Say who the caller is, and what it administers.", answer: "me", run: (*call).me},
		{
			method: http.MethodGet, path: "object/{id}", name: "object", doc: "Get an object by its id, also while it is being deleted.",
			answer: "object", run: (*call).getByID,
		},
		{
			method: http.MethodPost, path: "plan", name: "plan", body: "request", answer: "plan", run: (*call).plan,
			doc: "Plan changes of single objects. A plan with an error is that error.",
		},
		{
			method: http.MethodPost, path: "apply", name: "apply", changes: true, body: "request", answer: "applied", run: (*call).apply,
			doc: "Make changes of single objects: all in one commit, or nothing.",
		},
		{method: http.MethodGet, path: "status", name: "status", doc: "Show databases, pools and nodes as they are now.", answer: "document", run: (*call).showStatus},
		{
			method: http.MethodGet, path: "session", name: "session", doc: "List the sessions that began and may still last, the newest first.",
			answer: "document", run: (*call).sessions, query: []parameter{limit("The most sessions. Default: 100.", maxPage)},
		},
		{
			method: http.MethodGet, path: "statement", name: "statement", doc: "List statements, the newest first.",
			answer: "document", run: (*call).statements, query: []parameter{limit("The most statements. Default: 100.", maxPage)},
		},
		{
			method: http.MethodGet, path: "history", name: "history", doc: "List commits, the newest first.", system: true,
			answer: "document", run: (*call).history,
			query: []parameter{{name: "stack", doc: "Only commits that touched this stack."}, limit("The most commits. Default: 100.", maxPage)},
		},
		{
			method: http.MethodPost, path: "rollback", name: "rollback", doc: "Make a stack's objects as they were at a revision.", system: true,
			changes: true, body: "rollback", answer: "rolled_back", run: (*call).rollback,
		},
		{
			method: http.MethodGet, path: "watch", name: "watch", doc: "Watch objects: server-sent events `object`, `gone` and `revision`.",
			answer: "events", run: (*call).watch,
			query: []parameter{{name: "kind", doc: "Only objects of this kind."}, {name: "tenant", doc: "Only objects in this tenant."}},
		},
		{method: http.MethodGet, path: "token", name: "tokens", doc: "List personal access tokens.", answer: "document", run: (*call).tokens},
		{
			method: http.MethodPost, path: "token", name: "create_token", doc: "Make a personal access token. It is shown this once.",
			changes: true, body: "token_wish", answer: "token", run: (*call).createToken,
		},
		{
			method: http.MethodDelete, path: "token/{id}", name: "revoke_token", doc: "Revoke a personal access token.", changes: true,
			answer: "revoked", run: (*call).revokeToken,
		},
	}
	return list
}

// kinds are those that the routes with {kind} stand for.
func kinds() []*schema.Kind { return schema.Kinds() }

func (c *call) document31() *failure {
	c.Header().Set("Content-Type", typeJSON)
	c.WriteHeader(http.StatusOK)
	_, _ = c.Write(c.rest.openAPI) // the client is gone when this fails
	return nil
}

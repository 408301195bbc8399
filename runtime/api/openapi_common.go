package api

import (
	"maps"
	"slices"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

func text(doc string) obj    { return obj{"type": "string", "description": doc} }
func integer(doc string) obj { return obj{"type": "integer", "minimum": 0, "description": doc} }
func flag(doc string) obj    { return obj{"type": []string{"boolean", "null"}, "description": doc} }
func moment(doc string) obj {
	return obj{"type": "string", "format": "date-time", "description": doc}
}
func nullable(s obj) obj { return obj{"anyOf": []obj{s, {"type": "null"}}} }

func stackSchema() obj {
	return obj{"type": "string", "pattern": schema.NamePattern, "description": "The stack that owns the object."}
}

// fields is an object of these fields. Without names of required ones it is an answer, which has them all.
func fields(properties obj, required ...string) obj {
	if required == nil {
		required = slices.Sorted(maps.Keys(properties))
	}
	return obj{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func objectSchema(k *schema.Kind) obj {
	status := obj{
		"phase":  obj{"enum": []store.Phase{store.Provisioning, store.Ready, store.Deleting}},
		"reason": text("Why it is not ready, in words."),
	}
	if engine.Runs(k) {
		status["nodes"] = obj{"type": "array", "items": ref("node")}
	}
	return fields(obj{
		"kind": obj{"const": k.Name}, "key": text("As in addresses: " + k.KeyForm() + "."), "id": text("It never changes."),
		"stack": text("The stack that owns it."), "address": text("The block or resource that wrote it, or its own name."),
		"revision": integer("Of the last commit that touched it."), "generation": integer("Counts changes of its spec."),
		"protected": obj{"type": "boolean"}, "deleting": obj{"type": "boolean"},
		"spec":      obj{"type": "object", "description": "What was written, without secrets."},
		"effective": ref(k.Name + "_effective"), "status": fields(status),
	})
}

// common are the schemas that are of no kind.
func common() obj {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name)
	}
	var objects []obj
	for _, name := range names {
		objects = append(objects, ref(name))
	}
	fault := obj{"error": text("What is wrong, for programs."), "message": text("The same in words."),
		"path": text("The argument in the body, or the path of the request.")}
	fault["details"] = obj{"type": "array", "items": fields(obj{"error": fault["error"], "message": fault["message"], "path": fault["path"]})}
	change := obj{
		"action": obj{"enum": []string{"put", "delete"}}, "kind": obj{"enum": names}, "key": text("What the object is called now."),
		"spec":      obj{"type": []string{"object", "null"}, "description": "All that is written of the object. Put."},
		"protected": flag("Refuse to destroy the object. Put."), "take_over": flag("Take the object over from another stack. Put."),
		"if_match": obj{"type": []string{"integer", "null"}, "minimum": 0, "description": "The revision that was seen; 0: the object must not exist."},
	}
	return obj{
		"error":    fields(fault),
		"object":   obj{"anyOf": objects},
		"node":     fields(obj{"id": text("It never changes."), "role": text("read, write or dual."), "phase": text("How far it is."), "reason": text("Why.")}),
		"document": obj{"type": "object"},
		"plan":     obj{"type": "object", "description": "As qod plan --json prints it: docs/reference/plan-json.md."},
		"command":  obj{"type": "object", "description": "What the command line of the same version writes: docs/remote.md."},
		"deleted":  fields(obj{"revision": integer("Of the commit."), "id": text("Of the object.")}),
		"revoked":  fields(obj{"id": text("Of the token.")}),
		"request": fields(obj{
			"stack": stackSchema(), "lineage": obj{"type": []string{"string", "null"}, "description": "The lineage that the stack must have."},
			"changes": obj{"type": "array", "minItems": 1, "maxItems": mostChanges, "items": fields(change, "action", "kind")},
		}, "stack", "changes"),
		"applied": fields(obj{
			"revision": integer("Of the store with the commit."), "plan": ref("plan"), "objects": obj{"type": "array", "items": ref("object")},
		}),
		"rolled_back": obj{"anyOf": []obj{ref("applied"), ref("plan")}, "description": "With dry_run the plan alone."},
		"rollback": fields(obj{
			"revision": obj{"type": "integer", "minimum": 1}, "stack": stackSchema(), "dry_run": flag("Only plan."),
		}, "revision", "stack"),
		"restart": obj{"type": "object", "additionalProperties": false, "properties": obj{
			"id": choice("A uuid that the client makes, so that a request which it repeats is one. Default: a new one."),
		}},
		"login": fields(obj{"user": text("A name, or TENANT/NAME."), "tenant": obj{"type": []string{"string", "null"}}, "password": text("Or a token.")},
			"user", "password"),
		"bearer": fields(obj{"token": text("A bearer."), "expires": moment("When it expires.")}),
		"me": fields(obj{
			"user": text("The name."), "tenant": text("Empty for a system administrator."), "scope": obj{"enum": []string{"system", "tenant"}},
			"read_only": obj{"type": "boolean"}, "realm": text("What vouches for the caller."), "expires": nullable(moment("When that expires.")),
		}),
		"token_wish": obj{"type": "object", "additionalProperties": false, "properties": obj{
			"user": choice("Whose it is: a name, or TENANT/NAME. Default: the caller."), "tenant": choice("The tenant of that user."),
			"name": choice("For lists."), "expires": choice("A time, or a span as 30d. Default: 30 days."), "read_only": flag("It changes nothing."),
		}},
		"token": obj{"type": "object", "required": []string{"id", "user", "created", "expires", "state", "read_only"}, "properties": obj{
			"id": text("It never changes."), "user": text("Whose it is."), "tenant": text("The tenant of that user."), "name": text("For lists."),
			"created": moment("When it was made."), "expires": moment("When it expires."), "revoked": moment("When it was revoked."),
			"state": obj{"enum": []string{"good", "expired", "revoked"}}, "read_only": obj{"type": "boolean"},
			"token": text("The token itself, once."),
		}},
	}
}

// choice is a text that may be left out.
func choice(doc string) obj { return obj{"type": []string{"string", "null"}, "description": doc} }

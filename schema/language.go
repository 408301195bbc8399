package schema

import "github.com/zclconf/go-cty/cty"

// construct is a block of the language that is not of a kind, as editors know it. What the engine accepts
// is up to the engine; a test there holds the two against each other.
type construct struct {
	name     string
	labelled bool
	single   bool // at most once where it may be
	open     bool // takes arguments of any name
	doc      string
	args     []argument
	blocks   []construct
}

// argument is an argument of a construct.
type argument struct {
	name     string
	typ      cty.Type // DynamicPseudoType: anything
	required bool
	doc      string
}

// LanguageBlocks lists the types of top-level blocks that are not kinds.
func LanguageBlocks() []string {
	var names []string
	for _, c := range constructs() {
		names = append(names, c.name)
	}
	return names
}

func constructs() []construct {
	return append(definitions(), adoptions()...)
}

// definitions give names to values.
func definitions() []construct {
	return []construct{
		{name: "qod", single: true, doc: "Names the stack that the objects belong to.", args: []argument{
			{"stack", cty.String, true, "The stack. A plan deletes only what its stack owns."},
		}},
		{name: "variable", labelled: true, doc: "A value that is given from outside.", args: []argument{
			{"type", cty.String, false, "The type, as in map(string) or object({ name = string, nodes = optional(number, 1) })."},
			{"default", cty.DynamicPseudoType, false, "The value when none is given. Without it one must be."},
			description("the variable"),
			{"sensitive", cty.Bool, false, "Whether the value, and what is computed from it, is never shown."},
			{"ephemeral", cty.Bool, false, "Whether the value reaches neither plan nor store, but for secret arguments."},
			{"nullable", cty.Bool, false, "Whether the value may be null. Default: true."},
		}, blocks: []construct{{name: "validation", doc: "A rule for the value.", args: rule()}}},
		{name: "locals", open: true, doc: "Values with names, for use in this directory."},
		{name: "output", labelled: true, doc: "A result, for people and for the caller of a module.", args: []argument{
			{"value", cty.DynamicPseudoType, true, "The value."},
			description("the output"),
			{"sensitive", cty.Bool, false, "Whether the value is not shown. It must be true where the value is sensitive."},
			dependsOn(),
		}},
		{name: "module", labelled: true, open: true, doc: "The objects of another directory. Other arguments are its variables.",
			args: []argument{
				{"source", cty.String, true, "The directory, as in ./modules/tenant."},
				forEach("module"), dependsOn(),
			}},
		{name: "check", labelled: true, doc: "Assertions about the whole, which warn.", blocks: []construct{
			{name: "assert", doc: "What must hold.", args: rule()},
		}},
	}
}

// adoptions say how what exists became what is written.
func adoptions() []construct {
	return []construct{
		{name: "import", doc: "Takes over an object that exists.", args: []argument{
			{"to", cty.String, true, "The address of the object, as in pool.bi."},
			{"id", cty.String, true, "Which object it is, as in acme/bi."},
			forEach("import"),
		}},
		{name: "moved", doc: "Says that an object, a block or a module has another address than it had.", args: []argument{
			{"from", cty.String, true, "The address it had."},
			{"to", cty.String, true, "The address it has."},
		}},
		{name: "removed", doc: "Says what becomes of objects whose block is gone.", args: []argument{
			{"from", cty.String, true, "The address they had."},
		}, blocks: []construct{{name: "lifecycle", single: true, doc: "How they are removed.", args: []argument{
			{"destroy", cty.Bool, false, "Whether they are destroyed; otherwise they stay, and belong to nobody. Default: true."},
		}}}},
	}
}

// meta is what blocks of every kind take beside the kind's arguments.
func meta() construct {
	return construct{
		name: "object", args: []argument{forEach("block"), dependsOn()},
		blocks: []construct{{name: "lifecycle", single: true, doc: "What plans may do with the objects.", args: []argument{
			{"prevent_destroy", cty.Bool, false, "Whether plans that destroy or replace the object are refused, also when its block is gone."},
			{"ignore_changes", cty.DynamicPseudoType, false, "Arguments that others may change, or the keyword all."},
			{"replace_triggered_by", cty.List(cty.String), false, "Objects whose change replaces the object."},
		}}},
	}
}

func rule() []argument {
	return []argument{
		{"condition", cty.Bool, true, "What must be true."},
		{"error_message", cty.String, true, "What is said when it is not."},
	}
}

func description(of string) argument {
	return argument{"description", cty.String, false, "What " + of + " is for."}
}

func dependsOn() argument {
	return argument{"depends_on", cty.List(cty.String), false, "Addresses of what must exist before."}
}

func forEach(what string) argument {
	return argument{"for_each", cty.DynamicPseudoType, false, "A map, an object or a set of strings: one " + what + " for each element."}
}

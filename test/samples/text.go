package samples

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qod-io/qod/schema"
)

// Block writes an object as a block of qod's language. Of a body, the arguments are by name and in HCL: those of a block
// are what is in it, those of several blocks have an empty line between them, and an empty one is left out.
func Block(k *schema.Kind, label string, body map[string]string) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s %q {\n", k.Name, label)
	for _, name := range written(body) {
		if _, block := k.Block(name); !block {
			fmt.Fprintf(out, "  %s = %s\n", name, body[name])
			continue
		}
		for _, one := range strings.Split(body[name], "\n\n") {
			fmt.Fprintf(out, "  %s {\n    %s\n  }\n", name, one)
		}
	}
	out.WriteString("}\n\n")
	return out.String()
}

// Resource writes an object as a resource of Terraform, of the same body.
func Resource(k *schema.Kind, label string, body map[string]string) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "resource %q %q {\n", "qod_"+k.Name, label)
	for _, name := range written(body) {
		b, block := k.Block(name)
		switch {
		case !block:
			fmt.Fprintf(out, "  %s = %s\n", name, body[name])
		case b.Single:
			fmt.Fprintf(out, "  %s = {\n    %s\n  }\n", name, body[name])
		default:
			fmt.Fprintf(out, "  %s = [{\n    %s\n  }]\n", name, strings.ReplaceAll(body[name], "\n\n", "\n  }, {\n    "))
		}
	}
	out.WriteString("}\n\n")
	return out.String()
}

// written lists the arguments of a body that are not left out.
func written(body map[string]string) []string {
	names := slices.Sorted(maps.Keys(body))
	return slices.DeleteFunc(names, func(name string) bool { return body[name] == "" })
}

package schema

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// View is a SQL view over the store's rows for people who query them.
type View struct {
	Name string
	SQL  string // a SELECT
}

// Views returns the kind's views: one with a column per attribute, and one with a row per element for
// each set. Secrets have no column.
func (k *Kind) Views() []View {
	var columns []string
	var views []View
	for _, a := range k.Attrs {
		switch {
		case a.Secret:
		case a.Set():
			// Quoted, since some are words of SQL: group, user.
			element := `"` + singular(a.Name) + `"`
			views = append(views, k.elementView(singular(a.Name),
				fmt.Sprintf("jsonb_array_elements_text(o.spec -> '%s') AS e(%s)", a.Name, element), []string{"e." + element}))
		default:
			columns = append(columns, column("o.spec", a))
		}
	}
	for _, b := range k.Blocks {
		if b.Single {
			for _, a := range b.Attrs {
				columns = append(columns, column(fmt.Sprintf("o.spec -> '%s'", b.Name), a, b.Name+"_"))
			}
			continue
		}
		var of []string
		for _, a := range b.Attrs {
			of = append(of, column("e.item", a))
		}
		views = append(views, k.elementView(b.Name, fmt.Sprintf("jsonb_array_elements(o.spec -> '%s') AS e(item)", b.Name), of))
	}
	main := View{"qodstate_" + k.Name, fmt.Sprintf(
		"SELECT o.id, %s, o.stack, o.address, o.generation, o.revision FROM qodstate_object o WHERE o.kind = '%s' AND o.tombstone IS NULL",
		strings.Join(columns, ", "), k.Name)}
	return append([]View{main}, views...)
}

func (k *Kind) elementView(suffix, from string, columns []string) View {
	return View{"qodstate_" + k.Name + "_" + suffix, fmt.Sprintf(
		"SELECT o.id AS %s_id, o.key AS %s_key, %s FROM qodstate_object o, %s WHERE o.kind = '%s' AND o.tombstone IS NULL",
		k.Name, k.Name, strings.Join(columns, ", "), from, k.Name)}
}

func column(from string, a Attr, prefix ...string) string {
	name := strings.Join(prefix, "") + a.Name
	switch {
	case a.Set():
		return fmt.Sprintf("%s -> '%s' AS %s", from, a.Name, name)
	case a.Type == cty.Number:
		return fmt.Sprintf("(%s ->> '%s')::numeric AS %s", from, a.Name, name)
	case a.Type == cty.Bool:
		return fmt.Sprintf("(%s ->> '%s')::boolean AS %s", from, a.Name, name)
	}
	return fmt.Sprintf("%s ->> '%s' AS %s", from, a.Name, name)
}

func singular(name string) string { return strings.TrimSuffix(name, "s") }

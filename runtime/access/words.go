package access

import (
	"fmt"
	"io"
	"strings"

	"github.com/qod-io/qod/schema"
)

// Write prints the explanation for people. Where says where an object comes from, or "" where that is not
// known; it is given addresses.
func (e *Explanation) Write(w io.Writer, where func(address string) string) error {
	out := &strings.Builder{}
	from := func(address string) string {
		if place := where(address); place != "" {
			return address + " (" + place + ")"
		}
		return address
	}
	fmt.Fprintf(out, "%s\n", from(e.User))
	for _, reason := range e.Stops {
		fmt.Fprintf(out, "  Everything is refused: %s.\n", reason)
	}
	if e.Administrator != "" {
		fmt.Fprintf(out, "  It administers %s: it may do all there, and no policy restricts it.\n", e.Administrator)
	}
	e.writeRoles(out, from)
	e.writePools(out, from)
	if e.On != "" {
		e.writeVerdicts(out, from)
	} else {
		e.writePermissions(out, from)
	}
	if e.Administrator == "" {
		e.writePolicies(out, from)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (e *Explanation) writeRoles(out *strings.Builder, from func(string) string) {
	if len(e.Roles) == 0 {
		if e.Administrator == "" {
			out.WriteString("\nIt holds no role, so it may do nothing on any database.\n")
		}
		return
	}
	out.WriteString("\nIt holds\n")
	for _, h := range e.Roles {
		fmt.Fprintf(out, "  %s", from(h.Role))
		if h.Group != "" {
			fmt.Fprintf(out, ", through %s", from(h.Group))
		}
		out.WriteString("\n")
	}
}

func (e *Explanation) writePools(out *strings.Builder, from func(string) string) {
	if len(e.Pools) == 0 {
		out.WriteString("\nIt may connect to no pool: no pool_grant names it, a group it is in or a role it holds.\n")
		return
	}
	out.WriteString("\nIt may connect to\n")
	for _, p := range e.Pools {
		fmt.Fprintf(out, "  %s, of database %s", p.Pool, p.Database)
		for i, g := range p.Grants {
			fmt.Fprintf(out, "%s %s", map[bool]string{true: ", by", false: " and"}[i == 0], from(g))
		}
		if p.Refused != "" {
			fmt.Fprintf(out, "; but %s", p.Refused)
		}
		out.WriteString("\n")
	}
}

func (e *Explanation) writeVerdicts(out *strings.Builder, from func(string) string) {
	fmt.Fprintf(out, "\nOn %s\n", e.On)
	for _, v := range e.Verdicts {
		switch {
		case e.Administrator != "":
			fmt.Fprintf(out, "  %-7s yes, as an administrator\n", v.Privilege)
		case v.Allowed:
			var by []string
			for _, role := range v.Roles {
				by = append(by, from(role))
			}
			fmt.Fprintf(out, "  %-7s yes, by %s\n", v.Privilege, strings.Join(by, " and "))
		default:
			fmt.Fprintf(out, "  %-7s no, none of its roles allows it\n", v.Privilege)
		}
	}
}

func (e *Explanation) writePermissions(out *strings.Builder, from func(string) string) {
	title := "\nIts roles allow\n"
	for _, r := range e.Rules {
		if r.Kind == "permission" {
			fmt.Fprintf(out, "%s  %s, by %s\n", title, r.allows(), from(r.Role))
			title = ""
		}
	}
	if title != "" && len(e.Roles) > 0 && e.Administrator == "" {
		out.WriteString("\nIts roles allow nothing" + in(e.Database) + ".\n")
	}
}

func in(database string) string {
	if database == "" {
		return ""
	}
	return " on database " + database
}

func (e *Explanation) writePolicies(out *strings.Builder, from func(string) string) {
	title, rows := "\nPolicies restrict it, whatever other roles allow\n", 0
	for _, r := range e.Rules {
		if r.Kind == "permission" {
			continue
		}
		fmt.Fprintf(out, "%s  %s, by %s\n", title, r.restricts(), from(r.Role))
		title = ""
		if r.Kind == "row_policy" {
			rows++
		}
	}
	if rows > 1 {
		out.WriteString("  Of several row policies on a table, one has to hold for a row.\n")
	}
}

const concealed = "something that is sensitive and not shown"

func (r Rule) allows() string {
	if r.Sensitive {
		return concealed
	}
	return strings.Join(r.Privileges, ", ") + " on " + r.what()
}

func (r Rule) restricts() string {
	switch {
	case r.Sensitive:
		return concealed
	case r.Kind == "row_policy":
		return r.what() + ": rows where " + oneLine(r.SQL)
	case r.SQL == "":
		return r.what() + ": without column " + r.Column
	}
	return fmt.Sprintf("%s: column %s is %s", r.what(), r.Column, oneLine(r.SQL))
}

func oneLine(sql string) string { return strings.Join(strings.Fields(sql), " ") }

// what names the tables of a rule in words.
func (r Rule) what() string {
	table := "every table"
	if r.Table != schema.Any {
		table = "table " + r.Table
	}
	if r.Schema != schema.Any {
		table += " of schema " + r.Schema
	}
	if r.Database != schema.Any {
		table += " in database " + r.Database
	}
	return table
}

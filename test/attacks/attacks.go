// Package attacks holds the statements of this directory, which ask for more than their user may, and the
// world they are run in; and it knows what that user may not see.
package attacks

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/runtime/wire"
)

//go:embed *.txtar world
var files embed.FS

// configuration is the world's.
const configuration = "world/main.qod.hcl"

// Section is a part of a file of attacks.
type Section struct {
	Name     string     // of the file and of the part
	Sessions [][]Attack // each list takes a session of its own
}

// Attack is a statement and how it has to end.
type Attack struct {
	Verdict string // as reads.txtar explains
	SQL     string
}

// All reads every file of attacks.
func All() ([]Section, error) {
	names, err := fs.Glob(files, "*.txtar")
	if err != nil {
		return nil, err
	}
	var all []Section
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for _, part := range txtar.Parse(raw).Files {
			section := Section{Name: strings.TrimSuffix(name, path.Ext(name)) + "/" + part.Name}
			if section.Sessions, err = sessions(string(part.Data)); err != nil {
				return nil, fmt.Errorf("read %s: %w", section.Name, err)
			}
			all = append(all, section)
		}
	}
	return all, nil
}

// sessions reads lines of attacks, which an empty line divides into sessions.
func sessions(text string) ([][]Attack, error) {
	var all [][]Attack
	fresh := true
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			fresh = true
			continue
		}
		verdict, sql, ok := strings.Cut(line, " | ")
		if !ok {
			return nil, fmt.Errorf("no verdict: %s", line)
		}
		if fresh {
			all, fresh = append(all, nil), false
		}
		sql, err := expand(sql)
		if err != nil {
			return nil, err
		}
		all[len(all)-1] = append(all[len(all)-1], Attack{Verdict: verdict, SQL: sql})
	}
	return all, nil
}

var repetition = regexp.MustCompile(`⟨(\d+) ([^⟩]*)⟩`)

// expand writes out what is between ⟨ and ⟩ as often as the number before it says.
func expand(text string) (string, error) {
	var failed error
	out := repetition.ReplaceAllStringFunc(text, func(found string) string {
		part := repetition.FindStringSubmatch(found)
		n, err := strconv.Atoi(part[1])
		if err != nil {
			failed = err
		}
		return strings.Repeat(part[2], n)
	})
	return out, failed
}

// Configuration is what the world's objects are made by.
func Configuration() (string, error) {
	raw, err := files.ReadFile(configuration)
	return string(raw), err
}

// Lake is the statements that fill the lake, of its owner.
func Lake() ([]string, error) {
	raw, err := files.ReadFile("world/lake.sql")
	if err != nil {
		return nil, err
	}
	var all []string
	for statement := range strings.SplitSeq(string(raw), ";\n") {
		if strings.TrimSpace(statement) != "" {
			all = append(all, statement)
		}
	}
	return all, nil
}

// permission, rowPolicy and columnPolicy are blocks of a role.
type (
	permission struct {
		Schema     string   `hcl:"schema,optional"`
		Table      string   `hcl:"table,optional"`
		Privileges []string `hcl:"privileges"`
	}
	rowPolicy struct {
		Schema    string `hcl:"schema,optional"`
		Table     string `hcl:"table"`
		Predicate string `hcl:"predicate"`
	}
	columnPolicy struct {
		Schema     string `hcl:"schema,optional"`
		Table      string `hcl:"table"`
		Column     string `hcl:"column"`
		Action     string `hcl:"action"`
		Expression string `hcl:"expression,optional"`
	}
	role struct {
		Permissions []permission   `hcl:"permission,block"`
		Rows        []rowPolicy    `hcl:"row_policy,block"`
		Columns     []columnPolicy `hcl:"column_policy,block"`
		Rest        hcl.Body       `hcl:",remain"`
	}
)

// Analyst is the permissions of the user who attacks, as the role of the configuration has them.
func Analyst() (wire.Permissions, error) {
	raw, err := files.ReadFile(configuration)
	if err != nil {
		return wire.Permissions{}, err
	}
	file, problems := hclparse.NewParser().ParseHCL(raw, configuration)
	if problems.HasErrors() {
		return wire.Permissions{}, problems
	}
	content, _, problems := file.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "role", LabelNames: []string{"name"}}}})
	if problems.HasErrors() {
		return wire.Permissions{}, problems
	}
	p := wire.Permissions{Principal: &wire.Principal{User: "analyst", Tenant: "acme", Roles: []string{"analyst"}}}
	for _, block := range content.Blocks {
		var r role
		if problems := gohcl.DecodeBody(block.Body, nil, &r); problems.HasErrors() {
			return wire.Permissions{}, problems
		}
		for _, g := range r.Permissions {
			p.Grants = append(p.Grants, wire.Permission{Catalog: "*", Schema: part(g.Schema), Table: part(g.Table), Privileges: g.Privileges})
		}
		for _, one := range r.Rows {
			p.Rows = append(p.Rows, wire.RowPolicy{Catalog: "*", Schema: part(one.Schema), Table: one.Table, Predicate: one.Predicate})
		}
		for _, one := range r.Columns {
			p.Columns = append(p.Columns, wire.ColumnPolicy{
				Catalog: "*", Schema: part(one.Schema), Table: one.Table, Column: one.Column, Expression: one.Expression,
			})
		}
	}
	return p, nil
}

// part is a part of a name in a permission, which is every one where it is left out.
func part(name string) string {
	if name == "" {
		return "*"
	}
	return name
}

var (
	hiddenText    = regexp.MustCompile(`(?i)CANARY[A-Z0-9]*|canary_[a-z_]*|731731\d{4}|root:x:0|qod-cluster-key`)
	hiddenNumbers = []uint64{7317310001, 7317310002, 7317310011, 7317310012, 7317310013, 7317310099, 7317310111, 7317310112}
)

// Leaks lists what is received of what the attacker may not see and does not write himself. Numbers are
// looked for as text and as they lie in the columns of a result.
func Leaks(received, statement string) []string {
	found := hiddenText.FindAllString(received, -1)
	for _, n := range hiddenNumbers {
		if strings.Contains(received, littleEndian(n)) {
			found = append(found, strconv.FormatUint(n, 10))
		}
	}
	known := strings.ToLower(statement)
	var leaks []string
	for _, f := range found {
		if !strings.Contains(known, strings.ToLower(f)) {
			leaks = append(leaks, f)
		}
	}
	return leaks
}

func littleEndian(n uint64) string {
	var b [8]byte
	for i := range b {
		b[i] = byte(n >> (8 * i))
	}
	return string(b[:])
}

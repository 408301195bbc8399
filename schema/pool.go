package schema

import (
	"errors"

	"github.com/zclconf/go-cty/cty"
)

// Pool is a set of like nodes that serve one database.
type Pool struct {
	Tenant               string     `cty:"tenant"`
	Name                 string     `cty:"name"`
	TenantDB             string     `cty:"tenant_db"`
	Runtime              string     `cty:"runtime"`
	MaxConcurrentPerNode int        `cty:"max_concurrent_per_node"`
	Memory               string     `cty:"memory"`
	Threads              int        `cty:"threads"`
	Suspended            bool       `cty:"suspended"`
	Disabled             bool       `cty:"disabled"`
	StatementTimeout     string     `cty:"statement_timeout"`
	SessionIdleTimeout   string     `cty:"session_idle_timeout"`
	Nodes                *PoolNodes `cty:"nodes"`
}

// PoolNodes counts the nodes of a pool by what they take.
type PoolNodes struct {
	Read  int `cty:"read"`
	Write int `cty:"write"`
	Dual  int `cty:"dual"`
}

var poolKind = Define[Pool](Kind{
	Name:    "pool",
	Doc:     "A set of like nodes that serve one database. Users connect to a pool.",
	Key:     []string{"tenant", "name"},
	Version: 1,
	Attrs: []Attr{
		tenantAttr(),
		nameAttr("pool", Live, checkName),
		{
			Name: "tenant_db", Type: cty.String, Mode: Required, Ref: "tenant_db", Effect: Roll,
			Doc: "The database that the pool's nodes serve.",
		},
		{
			Name: "runtime", Type: cty.String, Default: cty.StringVal("local"), Effect: Replace, Host: true,
			OneOf: []string{"local"},
			Doc:   "Where nodes run: `local`, as processes of the host that runs `qod serve`.",
		},
		{
			Name: "max_concurrent_per_node", Type: cty.Number, Default: cty.NumberIntVal(16), Effect: Live,
			Check: whole(1, 1024),
			Doc:   "Statements that run on a node at the same time. Further ones wait in a queue that is fair to users.",
		},
		{
			Name: "memory", Type: cty.String, Default: cty.StringVal("1GiB"), Effect: Roll, Check: checkMemory,
			Doc: "Memory of each node. DuckDB's own limit is 75 % of it. A statement that makes the process take more than all of it, " +
				"and at least 512 MiB more than DuckDB's limit, is ended.",
		},
		{
			Name: "threads", Type: cty.Number, Default: cty.NumberIntVal(2), Effect: Roll, Check: whole(1, 256),
			Doc: "Threads DuckDB uses in each node.",
		},
		{
			Name: "suspended", Type: cty.Bool, Default: cty.False, Effect: Live,
			Doc: "Nodes drain and stop; statements are refused until the pool is resumed.",
		},
		disabledAttr("Statements are refused and nodes drain and stop."),
		{
			Name: "statement_timeout", Type: cty.String, Default: cty.StringVal("0s"), Effect: Live,
			Check: checkDuration, Doc: "A statement that runs longer is cancelled. `0s`: no limit.",
		},
		{
			Name: "session_idle_timeout", Type: cty.String, Default: cty.StringVal("30m"), Effect: Live,
			Check: checkDuration,
			Doc:   "A session that is idle for longer ends, and its open transaction is rolled back. `0s`: never.",
		},
	},
	Blocks: []Block{{
		Name: "nodes", Single: true, Effect: Live,
		Doc: "How many nodes the pool has. Without the block: one that takes reads and writes.",
		Attrs: []Attr{
			{Name: "read", Type: cty.Number, Default: cty.Zero, Effect: Live, Check: whole(0, 64), Doc: "Nodes for reads."},
			{Name: "write", Type: cty.Number, Default: cty.Zero, Effect: Live, Check: whole(0, 64), Doc: "Nodes for writes."},
			{Name: "dual", Type: cty.Number, Default: cty.Zero, Effect: Live, Check: whole(0, 64), Doc: "Nodes for both."},
		},
	}},
})

// Counts returns how many nodes the pool asks for: one dual node when it does not say.
func (p Pool) Counts() PoolNodes {
	if p.Nodes == nil {
		return PoolNodes{Dual: 1}
	}
	return *p.Nodes
}

// PoolGrant lets a user, or the members of a group or role, connect to a pool.
type PoolGrant struct {
	Tenant string  `cty:"tenant"`
	Pool   string  `cty:"pool"`
	User   *string `cty:"user"`
	Group  *string `cty:"group"`
	Role   *string `cty:"role"`
}

var poolGrantKind = Define[PoolGrant](Kind{
	Name:    "pool_grant",
	Doc:     "Lets a user, or all users of a group or role, connect to a pool.",
	Key:     []string{"tenant", "pool", "user|group|role"},
	Version: 1,
	Attrs: []Attr{
		tenantAttr(),
		{
			Name: "pool", Type: cty.String, Mode: Required, Ref: "pool", Literal: []string{"*"}, Effect: Replace,
			Doc: "The pool, or `\"*\"` for every pool of the tenant.",
		},
		{Name: "user", Type: cty.String, Ref: "user", Effect: Replace, Doc: "The user. Exactly one of user, group and role is set."},
		{Name: "group", Type: cty.String, Ref: "group", Effect: Replace, Doc: "The group whose users may connect."},
		{Name: "role", Type: cty.String, Ref: "role", Effect: Replace, Doc: "The role whose users may connect."},
	},
	Check: func(v cty.Value) []Problem {
		set := 0
		for _, name := range []string{"user", "group", "role"} {
			if !v.GetAttr(name).IsNull() {
				set++
			}
		}
		if set == 1 {
			return nil
		}
		return []Problem{{Message: errOneGrantee.Error()}}
	},
})

var errOneGrantee = errors.New("a pool_grant names exactly one of user, group and role")

package guard

import (
	"fmt"
	"testing"

	"github.com/qod-io/qod/runtime/wire"
)

// tpch22 is query 22 of TPC-H with its validation parameters.
const tpch22 = `select
	cntrycode,
	count(*) as numcust,
	sum(c_acctbal) as totacctbal
from (
	select
		substring(c_phone from 1 for 2) as cntrycode,
		c_acctbal
	from
		customer
	where
		substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')
		and c_acctbal > (
			select avg(c_acctbal)
			from customer
			where c_acctbal > 0.00
				and substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')
		)
		and not exists (select * from orders where o_custkey = c_custkey)
	) as custsale
group by cntrycode
order by cntrycode
-- %d`

// BenchmarkRights measures a check of texts that have not been seen, and of one that has.
func BenchmarkRights(b *testing.B) {
	g := newGuard(b)
	plain := owner()
	p := policies()
	p.Rows = []wire.RowPolicy{{Catalog: "*", Schema: "*", Table: "orders", Predicate: "o_region = 'EU'"},
		{Catalog: "*", Schema: "*", Table: "customer", Predicate: "c_nation IN (SELECT a.nation FROM acl.a WHERE a.usr = current_user)"}}
	p.Columns = []wire.ColumnPolicy{{Catalog: "*", Schema: "*", Table: "customer", Column: "c_name", Expression: "left(c_name, 1)"}}
	restricted := of(b, g, p)
	for _, one := range []struct {
		name, sql string
		s         Scope
	}{{"select 1", "select %d", plain}, {"select 1, policies", "select %d", restricted},
		{"tpch 22", tpch22, plain}, {"tpch 22, policies", tpch22, restricted}} {
		g := newGuard(b)
		b.Run(one.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := g.Check(b.Context(), fmt.Sprintf(one.sql, i), one.s); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(one.name+", again", func(b *testing.B) {
			for b.Loop() {
				if _, err := g.Check(b.Context(), one.sql[:len(one.sql)-2]+"1", one.s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

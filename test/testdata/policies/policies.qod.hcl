# Policies of every form on TPC-H, for a user named analyst. The benchmark uses them too.
role "restricted" {
  tenant = tenant.acme

  row_policy {
    table     = "lineitem"
    predicate = "l_shipmode <> 'AIR' AND l_orderkey % 7 <> 0"
  }

  row_policy {
    table     = "orders"
    predicate = "o_orderpriority <> '1-URGENT'"
  }

  row_policy {
    table     = "supplier"
    predicate = "s_nationkey IN (SELECT n_nationkey FROM main.nation WHERE n_regionkey <> 0)"
  }

  row_policy {
    table     = "customer"
    predicate = "c_mktsegment IN ('BUILDING', 'MACHINERY', 'AUTOMOBILE') AND current_user = 'analyst'"
  }

  column_policy {
    table      = "customer"
    column     = "c_phone"
    action     = "mask"
    expression = "left(c_phone, 6) || '-***'"
  }

  column_policy {
    table      = "part"
    column     = "p_retailprice"
    action     = "mask"
    expression = "round(p_retailprice, -2)"
  }

  column_policy {
    table  = "partsupp"
    column = "ps_comment"
    action = "deny"
  }
}

role "restricted_too" {
  tenant = tenant.acme

  # OR-ed with the other: urgent orders of one clerk are seen.
  row_policy {
    table     = "orders"
    predicate = "o_clerk LIKE '%1'"
  }
}

group "staff" {
  tenant = tenant.acme
  roles  = [role.restricted_too]
}

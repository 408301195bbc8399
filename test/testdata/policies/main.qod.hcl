# TPC-H with policies of every form, to be compared with copies that were filtered and masked by hand.
qod {
  stack = "policies"
}

variable "loader_password" {
  type      = string
  sensitive = true
}

variable "analyst_password" {
  type      = string
  sensitive = true
}

tenant "acme" {}

tenant_db "tpch" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  tenant_db = tenant_db.tpch
  memory    = "2GiB"
  threads   = 1

  nodes {
    dual = 1
  }
}

role "reader" {
  tenant = tenant.acme

  permission {
    schema     = "main"
    privileges = ["select"]
  }
}

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

user "analyst" {
  tenant   = tenant.acme
  roles    = [role.reader, role.restricted]
  groups   = [group.staff]
  password = var.analyst_password
}

user "loader" {
  tenant   = tenant.acme
  roles    = ["qod:admin"]
  password = var.loader_password
}

pool_grant "analyst" {
  pool = pool.bi
  user = user.analyst
}

pool_grant "loader" {
  pool = pool.bi
  user = user.loader
}

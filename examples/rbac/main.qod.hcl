# One lake for several teams: each sees what its roles say, whatever tool it comes with.
qod {
  stack = "rbac"
}

tenant "shop" {}

tenant_db "sales" {
  tenant        = tenant.shop
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  tenant_db = tenant_db.sales
  memory    = "512MiB"
  threads   = 1
}

# Analysts read orders, but no card numbers, and only the first letter of a customer's name.
role "analyst" {
  tenant      = tenant.shop
  description = "Reads orders, without what names a customer."

  permission {
    catalog    = tenant_db.sales.name
    schema     = "main"
    table      = "orders"
    privileges = ["select"]
  }

  column_policy {
    catalog = tenant_db.sales.name
    schema  = "main"
    table   = "orders"
    column  = "card"
    action  = "deny"
  }

  column_policy {
    catalog    = tenant_db.sales.name
    schema     = "main"
    table      = "orders"
    column     = "customer"
    action     = "mask"
    expression = "left(customer, 1) || '…'"
  }
}

# Who has this role too sees only the orders of its region, in every schema. Regions are groups.
role "regional" {
  tenant      = tenant.shop
  description = "Sees the rows of its own region."

  row_policy {
    table     = "orders"
    predicate = "list_contains(current_groups, region)"
  }
}

# The loader writes into a schema of its own and makes its tables.
role "loader" {
  tenant      = tenant.shop
  description = "Makes and fills the tables of schema staging."

  permission {
    schema     = "staging"
    privileges = ["create", "select", "insert", "update", "delete", "alter", "drop"]
  }
}

group "region" {
  for_each = toset(["eu", "us"])
  tenant   = tenant.shop
  name     = each.key
  roles    = [role.analyst, role.regional]
}

user "ana" {
  tenant = tenant.shop
  groups = [group.region["eu"]]
}

user "bob" {
  tenant = tenant.shop
  groups = [group.region["eu"], group.region["us"]]
}

user "robot" {
  tenant = tenant.shop
  roles  = [role.loader]
}

# qod:reader, qod:writer and qod:admin are in every tenant.
user "auditor" {
  tenant = tenant.shop
  roles  = ["qod:reader"]
}

pool_grant "staff" {
  for_each = group.region
  pool     = pool.bi
  group    = each.value
}

pool_grant "others" {
  for_each = { robot = user.robot, auditor = user.auditor }
  pool     = pool.bi
  user     = each.value
}

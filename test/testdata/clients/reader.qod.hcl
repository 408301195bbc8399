# Somebody who may see a part of the quickstart's database. What he may not see, and what the policies say,
# has the word canary in it: in shop.sql, and here.
variable "reader_password" {
  type      = string
  sensitive = true
}

role "reader" {
  tenant = tenant.acme

  permission {
    schema     = "shop"
    table      = "orders"
    privileges = ["select"]
  }

  permission {
    schema     = "shop"
    table      = "order_lines"
    privileges = ["select"]
  }

  permission {
    schema     = "shop"
    table      = "orderxlines"
    privileges = ["select"]
  }

  permission {
    schema     = "shop"
    table      = "long_lines"
    privileges = ["select"]
  }

  # In whichever schema there is one.
  permission {
    table      = "notes"
    privileges = ["select"]
  }

  row_policy {
    schema    = "shop"
    table     = "orders"
    predicate = "region = 'EU' AND region <> 'canary of a policy'"
  }

  # Of another type than the column.
  column_policy {
    schema     = "shop"
    table      = "orders"
    column     = "card"
    action     = "mask"
    expression = "length(replace(card, 'canary', ''))"
  }

  column_policy {
    schema = "shop"
    table  = "orders"
    column = "canary_note"
    action = "deny"
  }

  column_policy {
    schema = "shop"
    table  = "order_lines"
    column = "cost"
    action = "deny"
  }
}

user "reader" {
  tenant   = tenant.acme
  roles    = [role.reader]
  password = var.reader_password
}

pool_grant "reader" {
  pool = pool.bi
  role = role.reader
}

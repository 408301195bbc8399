role {
  tenant      = "acme"
  name        = "analyst"
  description = "Reads the orders of Europe, without the names of customers."

  permission {
    catalog    = "sales"
    schema     = "main"
    table      = "orders"
    privileges = ["select"]
  }

  row_policy {
    catalog   = "sales"
    schema    = "main"
    table     = "orders"
    predicate = "region = 'EU' OR owner = current_user"
  }

  column_policy {
    catalog    = "sales"
    schema     = "main"
    table      = "orders"
    column     = "customer"
    action     = "mask"
    expression = "left(customer, 1) || '…'"
  }

  column_policy {
    catalog = "sales"
    schema  = "main"
    table   = "orders"
    column  = "card"
    action  = "deny"
  }
}

# What the attacks are run against: a tenant whose analyst may see a part, and a neighbour.
qod {
  stack = "attacks"
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

tenant_db "lake" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  tenant_db         = tenant_db.lake
  memory            = "1GiB"
  threads           = 1
  statement_timeout = "3s"

  nodes {
    dual = 1
  }
}

role "analyst" {
  tenant = tenant.acme

  permission {
    schema     = "main"
    table      = "orders"
    privileges = ["select", "update", "delete"]
  }

  permission {
    schema     = "main"
    table      = "events"
    privileges = ["select", "insert"]
  }

  permission {
    schema     = "main"
    table      = "regions"
    privileges = ["select"]
  }

  permission {
    schema     = "main"
    table      = "accounts"
    privileges = ["select"]
  }

  permission {
    schema     = "main"
    table      = "open_view"
    privileges = ["select"]
  }

  permission {
    schema     = "desk"
    privileges = ["all"]
  }

  row_policy {
    schema    = "main"
    table     = "orders"
    predicate = "region = 'EU'"
  }

  column_policy {
    schema     = "main"
    table      = "orders"
    column     = "card"
    action     = "mask"
    expression = "left(card, 4) || '****'"
  }

  column_policy {
    schema = "main"
    table  = "orders"
    column = "ssn"
    action = "deny"
  }

  # A predicate that has to look elsewhere.
  row_policy {
    schema    = "main"
    table     = "accounts"
    predicate = "owner IN (SELECT name FROM hidden.members WHERE login = current_user)"
  }
}

user "analyst" {
  tenant   = tenant.acme
  roles    = [role.analyst]
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

tenant "globex" {}

tenant_db "vault" {
  tenant        = tenant.globex
  kind          = "ducklake"
  allow_destroy = true
}

pool "vault" {
  tenant_db = tenant_db.vault
  memory    = "512MiB"
  threads   = 1

  nodes {
    dual = 1
  }
}

user "neighbour" {
  tenant   = tenant.globex
  roles    = ["qod:admin"]
  password = var.loader_password
}

pool_grant "neighbour" {
  pool = pool.vault
  user = user.neighbour
}

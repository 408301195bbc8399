# A tenant with a database, two nodes that serve it, and a user who may read it. QOD_SERVER and QOD_TOKEN say where
# qod serve is and who asks: a token of `qod token create`.
terraform {
  required_version = ">= 1.11" # passwords are write-only

  required_providers {
    qod = {
      source = "qod-io/qod"
    }
  }
}

provider "qod" {
  stack = "platform"
}

variable "ana_password" {
  type      = string
  ephemeral = true
}

resource "qod_tenant" "acme" {
  name         = "acme"
  display_name = "Acme"
}

resource "qod_tenant_db" "sales" {
  tenant        = qod_tenant.acme.name
  name          = "sales"
  kind          = "ducklake"
  allow_destroy = true
}

resource "qod_pool" "bi" {
  tenant    = qod_tenant.acme.name
  name      = "bi"
  tenant_db = qod_tenant_db.sales.name
  memory    = "1GiB"
  nodes     = { dual = 2 }
}

resource "qod_role" "analyst" {
  tenant = qod_tenant.acme.name
  name   = "analyst"

  permission = [
    { catalog = "sales", table = "orders", privileges = ["select"] },
  ]
  row_policy = [
    { table = "orders", predicate = "region = 'EU'" },
  ]
}

resource "qod_group" "analysts" {
  tenant = qod_tenant.acme.name
  name   = "analysts"
  roles  = [qod_role.analyst.name]
}

resource "qod_user" "ana" {
  tenant           = qod_tenant.acme.name
  name             = "ana"
  password         = var.ana_password
  password_version = 1 # raise it to have the password read again
  groups           = [qod_group.analysts.name]
}

resource "qod_pool_grant" "analysts" {
  tenant = qod_tenant.acme.name
  pool   = qod_pool.bi.name
  group  = qod_group.analysts.name
}

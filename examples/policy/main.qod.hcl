qod {
  stack = "policy"
}

variable "nodes" {
  description = "How many nodes the pool bi has."
  type        = number
  default     = 0
}

variable "ana" {
  description = "The address of ana, who does not want it in logs."
  sensitive   = true
  default     = "ana@acme.example"
}

tenant "acme" {
  display_name = "Acme"
}

tenant_db "sales" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  tenant_db         = tenant_db.sales
  memory            = "512MiB"
  threads           = 1
  statement_timeout = "10m"

  nodes {
    dual = var.nodes
  }
}

user "ana" {
  tenant = tenant.acme
  email  = var.ana
}

pool_grant "ana" {
  pool = pool.bi
  user = user.ana
}

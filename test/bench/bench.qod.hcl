# What the benchmark runs on: one node, so that a direct connection and the edge reach the same.
qod {
  stack = "bench"
}

variable "password" {
  type      = string
  sensitive = true
}

tenant "acme" {}

tenant_db "bench" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  tenant_db               = tenant_db.bench
  memory                  = "2GiB"
  threads                 = 2
  max_concurrent_per_node = 64
}

user "bench" {
  tenant   = tenant.acme
  admin    = true
  password = var.password
}

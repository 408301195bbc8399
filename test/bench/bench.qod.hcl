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

# Two users to be compared with the administrator: reader may select, and on analyst there are the
# policies of test/testdata/policies/policies.qod.hcl, which lies beside this file in the run.
role "reader" {
  tenant = tenant.acme

  permission {
    schema     = "main"
    privileges = ["select"]
  }
}

user "reader" {
  tenant   = tenant.acme
  roles    = [role.reader]
  password = var.password
}

user "analyst" {
  tenant   = tenant.acme
  roles    = [role.reader, role.restricted]
  groups   = [group.staff]
  password = var.password
}

pool_grant "readers" {
  pool = pool.bi
  role = role.reader
}

action "qod_pool_restart" "bi" {
  config {
    tenant = qod_tenant.acme.name
    name   = qod_pool.bi.name
  }
}

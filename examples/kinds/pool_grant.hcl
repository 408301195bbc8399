pool_grant {
  tenant = "acme"
  pool   = "bi"
  user   = "ann@corp.com"
}

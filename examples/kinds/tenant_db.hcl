tenant_db {
  tenant         = "acme"
  name           = "sales"
  kind           = "ducklake"
  default_schema = "main"
  disabled       = false
  allow_destroy  = true
}

tenant {
  name         = "acme"
  display_name = "Acme"
  disabled     = false
}

tenant {
  name         = "acme"
  display_name = "Acme"
  disabled     = false

  auth {
    issuer         = "https://login.acme.example/realms/data"
    audience       = ["qod"]
    username_claim = "email"
    roles_claim    = "roles"
    groups_claim   = "groups"
  }
}

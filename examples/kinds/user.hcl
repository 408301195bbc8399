user {
  tenant           = "acme"
  name             = "ann@corp.com"
  password         = "correct horse battery staple"
  password_version = 2
  email            = "ann@corp.com"
  admin            = false
  disabled         = false
  roles            = ["owner"]
  groups           = ["analysts"]
}

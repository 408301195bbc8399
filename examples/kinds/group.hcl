group {
  tenant      = "acme"
  name        = "analysts"
  description = "People who ask questions."
  roles       = ["owner"]
}

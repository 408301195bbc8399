role {
  tenant      = "acme"
  name        = "owner"
  description = "May do all in the sales database."

  permission {
    catalog    = "sales"
    privileges = ["all"]
  }
}

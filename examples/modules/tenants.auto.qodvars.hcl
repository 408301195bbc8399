tenants = {
  acme = {
    title = "Acme"
    staff = ["ana", "bob"]
  }
  globex = {
    staff = ["ann@globex.example"]
    pools = {
      bi  = { nodes = 1 }
      etl = { threads = 2 }
    }
  }
}

# Made by qod. Commit it: it tells this stack from another of the same name.
stack "two-tenants" {
  lineage = "417d713a-af7e-4b39-843a-e1abd0104511"
}

# Made by qod. Commit it: it tells this stack from another of the same name.
stack "modules" {
  lineage = "3f0c8f4e-5b0d-4b8e-9a2f-6c1d7e2a9b51"
}

# Made by qod. Commit it: it tells this stack from another of the same name.
stack "json" {
  lineage = "8d5a1c72-0e4f-4f6b-b1a9-2c7e93d4f068"
}

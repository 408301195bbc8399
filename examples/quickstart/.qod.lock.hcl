# Made by qod. Commit it: it tells this stack from another of the same name.
stack "quickstart" {
  lineage = "b96b1d13-1735-4544-ab6e-11741b871013"
}

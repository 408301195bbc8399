locals {
  # Pools that are there after the plan.
  pools = [for c in plan.resource_changes : c if c.kind == "pool" && c.change.after != null]
}

check "large pools are protected" {
  for_each = local.pools

  assert {
    condition     = each.value.protected || try(sum(values(each.value.change.effective.nodes)), 1) <= 8
    error_message = "${each.value.address} has more than 8 nodes: somebody has to own up to it with prevent_destroy = true."
  }
}

check "statements end" {
  for_each    = local.pools
  enforcement = "advisory"

  assert {
    condition     = each.value.change.effective.statement_timeout != "0s"
    error_message = "A statement may run in ${each.value.address} for ever: give it a statement_timeout."
  }
}

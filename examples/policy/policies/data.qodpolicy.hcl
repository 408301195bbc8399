check "no data goes" {
  for_each = [for c in plan.resource_changes : c if c.kind == "tenant_db"]

  assert {
    condition     = !contains(each.value.change.actions, "delete")
    error_message = "The data of ${each.value.object} would go with it. Only people do that, and without a pipeline."
  }
}

check "nothing is overwritten" {
  for_each    = plan.drift
  enforcement = "advisory"

  assert {
    condition     = each.value.deleted
    error_message = "Somebody changed ${each.value.attribute} of ${each.value.object} by hand, and this plan undoes it."
  }
}

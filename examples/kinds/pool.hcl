pool {
  tenant                  = "acme"
  name                    = "bi"
  tenant_db               = "sales"
  runtime                 = "local"
  max_concurrent_per_node = 8
  memory                  = "2GiB"
  threads                 = 4
  suspended               = false
  disabled                = false
  statement_timeout       = "5m"
  session_idle_timeout    = "30m"

  nodes {
    read = 2
    dual = 1
  }
}

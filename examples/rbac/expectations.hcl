# What the roles are for, as statements: qod access test expectations.hcl
expect "ana" {
  statement = "SELECT region, sum(price) FROM sales.main.orders GROUP BY region"
  allow     = true
}

expect "ana" {
  statement = "DELETE FROM sales.main.orders"
  allow     = false
  reason    = "not authorized"
}

expect "ana" {
  statement = "SELECT * FROM sales.main.salaries"
  allow     = false
}

expect "robot" {
  statement = "CREATE TABLE sales.staging.loads (day DATE)"
  allow     = true
}

expect "robot" {
  statement = "SELECT * FROM sales.main.orders"
  allow     = false
}

expect "auditor" {
  statement = "SELECT count(*) FROM sales.main.orders"
  allow     = true
}

expect "auditor" {
  statement = "DROP TABLE sales.main.orders"
  allow     = false
}

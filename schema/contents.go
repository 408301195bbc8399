package schema

// Contents are what a database holds: by schema, in it by table or view, the columns. Those of a view are nil:
// they are not known.
type Contents map[string]map[string][]string

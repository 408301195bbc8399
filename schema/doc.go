// Package schema says what a tenant, database, pool, role, group, user and grant is.
//
// Each kind is one Go value, made by [Define]. Its HCL specification, cty type, defaults and checks,
// stored JSON, SQL views and reference page are functions of that value; nothing is generated and no
// attribute is named twice. The package does no IO and knows nothing of files, stores or nodes.
package schema

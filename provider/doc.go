// Package provider lets Terraform manage what qod's own configuration files do, over the REST API of qod serve.
//
// There is one resource, one data source and one list for all kinds: their schemas, checks and values are functions of
// [schema.Kind], so a kind that is added there is here as well. Values cross between Terraform and cty by msgpack, which
// both speak. Nothing secret enters Terraform's state: secrets are write-only.
//
// The ways through it: provider.go configures; resource.go creates, reads, updates and deletes; plan.go says what a
// change will do; wait.go waits for the outside of an object.
package provider

// Package config reads the `*.qod.hcl` files of a directory and says which objects they ask for.
//
// [Load] parses the files and sorts their blocks; [Config.Evaluate] gives variables their values, puts
// locals and objects in order of reference, evaluates them and returns the [Desired] objects with the
// source range of every argument. [WriteDiagnostics] prints what is wrong for people, without secrets.
//
// Two marks travel with values. A sensitive mark is on everything that came from a sensitive variable
// or a secret argument; what carries it is printed nowhere. An object mark is on the value of every
// object, so that `tenant = tenant.acme` is known to be a reference and which object it is.
//
// The package reads files and nothing else: what exists already, what an owner may change and what
// follows from a change is left to the engine.
package config

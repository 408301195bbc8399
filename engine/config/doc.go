// Package config reads the configuration in a directory and says which objects it asks for.
//
// A configuration is written in HCL (`*.qod.hcl`), in HCL's JSON syntax (`*.qod.json`) or in both. [Load]
// parses the files and sorts their blocks, and does the same for the modules that they call, which are
// directories inside the configuration's own. [Config.Evaluate] gives variables their values, puts local
// values, objects and module calls in order of reference, evaluates them and returns the [Desired] objects
// and outputs with the source range of every argument. [WriteDiagnostics] prints what is wrong for people,
// without secrets.
//
// A module is evaluated as one node of the module that calls it, once for each key of for_each: its
// variables are the arguments of the call, its outputs are what the call's value has, and the addresses of
// its objects start with that of the call. Nothing else passes between the two, and the file functions of a
// module read the module's own directory.
//
// Besides objects, blocks say what becomes of those that exist: lifecycle, moved, removed and import go into
// the [Desired] as they are written, with addresses as seen from the root; a check warns. Their own
// references (`pool.bi`, `user.all["ana"]`) are names and not values, and in JSON strings.
//
// Three marks travel with values, across modules too. A sensitive mark is on everything that came from a
// sensitive variable or a secret argument; what carries it is printed nowhere. An ephemeral mark is on what
// came from an ephemeral variable; such values are sensitive and get into secret arguments and nowhere else.
// An object mark is on the value of every object, so that `tenant = tenant.acme` is known to be a reference
// and which object it is.
//
// The package reads files and nothing else: what exists already, what an owner may change and what
// follows from a change is left to the engine.
package config

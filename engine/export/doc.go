// Package export writes objects as configuration: the same objects at the same addresses, once it is
// evaluated. What it writes follows from the Kinds alone, in HCL or in its JSON syntax, and equal objects
// give equal bytes.
//
// [New] decides what is written: which objects share a block, what their labels are, what becomes a
// reference. [Document.HCL] and [Document.JSON] are two spellings of the result.
package export

// Package crash names the boundaries at which an apply may die. In a build with the tag crashpoints, the
// process kills itself when it reaches the one named by QOD_CRASH_AT; otherwise Point does nothing.
package crash

// Points lists every name that Point is called with. A test compares it with the calls in the source.
func Points() []string {
	return []string{}
}

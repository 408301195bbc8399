// Package crash names the boundaries at which an apply may die. In a build with the tag crashpoints, the
// process kills itself when it reaches the one named by QOD_CRASH_AT; otherwise Point does nothing.
package crash

// Points lists every name that Point is called with, sorted. A test compares it with the calls in the
// source.
func Points() []string {
	return []string{
		"catalog.data-removed",
		"catalog.database-created",
		"catalog.database-dropped",
		"catalog.database-named",
		"catalog.lake-made",
		"catalog.role-created",
		"catalog.role-dropped",
		"catalog.schema-closed",
		"catalog.sessions-ended",
		"engine.after-commit",
		"engine.before-commit",
		"engine.settle-created",
		"engine.settle-deleted",
		"engine.settle-ready",
		"engine.settle-removed",
	}
}

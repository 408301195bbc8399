package node

/*
#include <stddef.h>

// DuckDB brings jemalloc along on Linux, under names of its own. Elsewhere it takes the system's malloc.
extern int duckdb_je_mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));

// 4096 stands for all arenas.
static int purge(void) {
	return duckdb_je_mallctl ? duckdb_je_mallctl("arena.4096.purge", NULL, NULL, NULL, 0) : -1;
}
*/
import "C"

// purge gives the memory back to the system that DuckDB has freed and its allocator keeps for the next
// statement: hundreds of megabytes after one that has spilled, within some 30 ms. It reports whether there is
// such an allocator.
func purge() bool { return C.purge() == 0 }

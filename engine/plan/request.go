package plan

import "fmt"

// asked reports whether this is the plan of a request, which names single objects and says all of each.
func (b *builder) asked() bool { return b.in.About != nil }

// putFirst is the way out for whoever asks for what an attribute forbids.
func putFirst(attr string, value bool) string {
	return fmt.Sprintf("To allow it, put it with %s = %t first.", attr, value)
}

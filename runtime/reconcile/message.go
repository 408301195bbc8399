package reconcile

import (
	"fmt"
	"strings"
	"time"
)

// message says in words what a pool has too little or too much of, and why.
func (d *decision) message() string {
	var parts []string
	if d.absent > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s missing", d.absent, nodes(d.wanted)))
	}
	if d.old > 0 {
		text := nodes(d.old) + " to replace"
		if len(d.outdated) > 0 {
			text += " (" + strings.Join(d.outdated, "; ") + ")"
		}
		parts = append(parts, text)
	}
	if why := d.why(); len(parts) > 0 && why != "" {
		parts[len(parts)-1] += ": " + why
	}
	if n := d.leaving + d.excess; n > 0 {
		parts = append(parts, nodes(n)+" to stop")
	}
	if d.remains > 0 {
		parts = append(parts, "remains of "+nodes(d.remains)+" to remove")
	}
	text := strings.Join(parts, ", ")
	switch {
	case d.want.stop == "":
		return text
	case text == "":
		return d.want.stop
	}
	return d.want.stop + ": " + text
}

// why says what stands between the pool and its nodes.
func (d *decision) why() string {
	switch {
	case d.want.hold != "":
		return d.want.hold
	case d.now.Before(d.want.notBefore):
		return fmt.Sprintf("%s; next start at %s", d.want.failure, d.want.notBefore.UTC().Format(time.TimeOnly+"Z"))
	}
	var parts []string
	if d.starting > 0 {
		parts = append(parts, fmt.Sprintf("%d starting", d.starting))
	}
	if d.quarantined > 0 {
		parts = append(parts, fmt.Sprintf("%d quarantined", d.quarantined))
	}
	if d.reason != "" {
		parts = append(parts, d.reason)
	}
	return strings.Join(parts, ", ")
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

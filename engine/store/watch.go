package store

import "time"

// HeartbeatInterval is the longest time between the beats of a store that answers.
const HeartbeatInterval = 500 * time.Millisecond

// OnChange makes what Heartbeat calls of what Watch does: on is called only when the revision is another.
func OnChange(on func(Revision)) func(Revision) {
	last := Revision(-1)
	return func(now Revision) {
		if now != last {
			last = now
			on(now)
		}
	}
}

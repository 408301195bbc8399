// Package reconcile makes the nodes that run be those that the store asks for, and tells routing which
// of them work. It observes, decides and acts, and then looks again: every round starts from the
// store, the backend and the nodes' own answers, so that whoever starts later goes on where another
// process died.
//
//	          intent row                 good probe
//	(missing) ─────────▶ starting ──────────────────────▶ serving
//	    ▲                  │  │ too long       good probe ▲  │ failed probe
//	    │                  │  ▼                           │  ▼
//	    │                  │ stop ◀──────────────────── quarantined
//	    │                  │           silent too long       │
//	    │   exit           ▼                                 │
//	    └──────────────── gone ◀── stop ◀── draining ◀───────┘ superfluous, replaced, or
//	      remains removed                 idle, or too long    not to run (also from serving)
//
// decide is pure: it knows no backend and no clock. A follower, which may not act, runs the same rounds
// from the node rows and its own probes, and takes no step. What a node is asked is package wire's,
// how one is run package backend's, and the outside of a database is not handled here at all.
package reconcile

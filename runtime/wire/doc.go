// Package wire is what edge, manager and node say to each other beside Flight SQL itself: sealed
// bearers, handles and assertions, permission sets, the node's configuration and status. It is pure Go
// and versioned: a serve speaks the current version and the one before.
package wire

// Version is the version of this protocol.
const Version = 1

// MinVersion is the oldest version that is still spoken.
const MinVersion = 1

// Metadata of calls between edge and node. No client's metadata of these names is passed on.
const (
	// AssertionKey carries a sealed Assertion on every call to a node.
	AssertionKey = "qod-assertion-bin"
	// PermissionsKey carries a sealed Permissions when the node asked for it.
	PermissionsKey = "qod-permissions-bin"
	// SessionKey, in the node's trailer, carries the State of the session after the call.
	SessionKey = "qod-session"
	// ClassKey, in the node's trailer, carries the Class of the statement.
	ClassKey = "qod-class"
	// ReasonKey, in the node's trailer, carries a Reason with an error.
	ReasonKey = "qod-reason"
	// DeniedKey, in the node's trailer, carries a Denial as JSON with an error that the guard made.
	DeniedKey = "qod-denied-bin"
	// RowsKey, in the node's trailer, carries the number of rows sent or changed, in decimal.
	RowsKey = "qod-rows"
)

// Reason tells the edge what to do about a node's error.
type Reason string

const (
	// NeedPermissions: nothing was done; repeat the call with the permission set.
	NeedPermissions Reason = "need_permissions"
	// WrongRole: nothing was done; the statement belongs on a node of another role.
	WrongRole Reason = "wrong_role"
	// Busy: nothing was done; the node is at its limit of concurrent statements.
	Busy Reason = "busy"
	// Draining: nothing was done; the node takes no new statements.
	Draining Reason = "draining"
	// Transient: a fault of the node or of what it needs, not of the statement. Reads may be repeated.
	Transient Reason = "transient"
	// Denied: the guard refused the statement.
	Denied Reason = "denied"
	// TransactionLost: the session's transaction, or other state it had on its node, is gone.
	TransactionLost Reason = "transaction_lost"
	// Timeout: the statement ran into its timeout.
	Timeout Reason = "timeout"
	// Fatal: the node's engine is unusable; the node is to be replaced.
	Fatal Reason = "fatal"
)

// Class says what a statement does.
type Class string

const (
	Read        Class = "read"
	Write       Class = "write"
	DDL         Class = "ddl"
	Transaction Class = "transaction"
	Setting     Class = "setting"
	Metadata    Class = "metadata"
)

// State says how much of a session is on its node.
type State string

const (
	// Free: nothing; the next statement may go to any node.
	Free State = "free"
	// Stateful: settings, temporary objects or prepared names; the session stays on its node.
	Stateful State = "stateful"
	// InTransaction: as Stateful, with an open transaction.
	InTransaction State = "transaction"
)

// Actions that a node answers beside those of Flight SQL. Bodies and results are JSON.
const (
	// StatusAction returns a Status.
	StatusAction = "qod.status"
	// SessionsAction streams a Sessions at once and after every change, until cancelled.
	SessionsAction = "qod.sessions"
	// ConfigureAction takes a Live and applies it.
	ConfigureAction = "qod.configure"
	// SetKeysAction takes []Key, current first.
	SetKeysAction = "qod.set_keys"
	// DrainAction stops the node taking new statements; it returns a Status at once.
	DrainAction = "qod.drain"
	// CancelAction takes a Cancel and interrupts that statement.
	CancelAction = "qod.cancel"
)

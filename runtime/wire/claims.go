package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Bearer is what the token of a session says. The edge seals it with the cluster's key.
type Bearer struct {
	Session string    `json:"s"`
	User    string    `json:"u"`           // id of the user
	Tenant  string    `json:"t,omitempty"` // name, where the login gave one
	Pool    string    `json:"p,omitempty"` // name, where the login gave one
	Issued  time.Time `json:"i"`
	Expires time.Time `json:"e"`
	// Root is the session whose bearer began this one: what ends that ends this, and Issued is that one's.
	Root string `json:"r,omitempty"`
	// Token is the id of the personal access token that began the session, and Verifier names that of the
	// password: the session ends with either.
	Token    string `json:"k,omitempty"`
	Verifier string `json:"v,omitempty"`
	// Issuer names the settings of the issuer whose token began the session, which ends with them. Roles and
	// Groups are what the user holds by that token, beside its own.
	Issuer string   `json:"a,omitempty"`
	Roles  []string `json:"o,omitempty"`
	Groups []string `json:"g,omitempty"`
}

// Denial says why the guard refused a statement, for the audit.
type Denial struct {
	Code      string `json:"code"`
	Object    string `json:"object,omitempty"`    // a name of the statement
	Privilege string `json:"privilege,omitempty"` // that is missing
}

// Assertion tells a node on whose behalf a call is made. The edge seals it with the pool's key, and it
// is good for seconds: a node refuses a call without one.
type Assertion struct {
	User      string `json:"u"` // id
	Name      string `json:"n"` // of the user, for current_user and the log
	Tenant    string `json:"t"` // name
	Session   string `json:"s"`
	Statement string `json:"q"`
	// Permissions is the Hash of the permission set in force; a node that lacks the set asks for it.
	Permissions string    `json:"h"`
	Expires     time.Time `json:"e"`
	// Manager marks a call of the manager itself: status, drain, keys. Only such calls may do these.
	Manager bool `json:"m,omitempty"`
}

// Permission allows privileges on what it names; "*" names all.
type Permission struct {
	Catalog    string   `json:"catalog"`
	Schema     string   `json:"schema"`
	Table      string   `json:"table"`
	Privileges []string `json:"privileges"`
}

// RowPolicy lets only those rows of the tables it names be seen and changed for which the predicate
// holds. The predicates of several policies on one table are OR-ed.
type RowPolicy struct {
	Catalog   string `json:"catalog"`
	Schema    string `json:"schema"`
	Table     string `json:"table"`
	Predicate string `json:"predicate"`
}

// ColumnPolicy denies a column of the tables it names, or with an Expression over that column puts the
// expression's value in place of the column's. Of several on one column a denial counts before a mask,
// and two masks that differ are a denial.
type ColumnPolicy struct {
	Catalog    string `json:"catalog"`
	Schema     string `json:"schema"`
	Table      string `json:"table"`
	Column     string `json:"column"`
	Expression string `json:"expression,omitempty"` // empty: denied
}

// The words by which predicates mean a part of the Principal.
const (
	CurrentUser   = "current_user"
	CurrentTenant = "current_tenant"
	CurrentRoles  = "current_roles"
	CurrentGroups = "current_groups"
)

// PrincipalWords lists them.
func PrincipalWords() []string {
	return []string{CurrentUser, CurrentTenant, CurrentRoles, CurrentGroups}
}

// Principal is whom predicates are evaluated for.
type Principal struct {
	User   string   `json:"user"`
	Tenant string   `json:"tenant"`
	Roles  []string `json:"roles,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Permissions is all that a user may do on one database, sorted, without duplicates.
type Permissions struct {
	Admin   bool           `json:"admin,omitempty"` // all on everything; policies do not apply
	Grants  []Permission   `json:"grants,omitempty"`
	Rows    []RowPolicy    `json:"rows,omitempty"`
	Columns []ColumnPolicy `json:"columns,omitempty"`
	// Principal is given where a predicate needs it, so that users with equal rights share one set.
	Principal *Principal `json:"principal,omitempty"`
}

// Hash names the set: equal sets have equal hashes.
func (p Permissions) Hash() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("wire: encode permissions: " + err.Error()) // strings always encode
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:12])
}

// HandleKind says what a Handle stands for.
type HandleKind string

const (
	Ticket        HandleKind = "ticket"
	Prepared      HandleKind = "prepared"
	TransactionID HandleKind = "transaction"
)

// Handle is what a node gives to a client: the ticket of a result, a prepared statement, a
// transaction. The node seals it with the pool's key, so any edge can route it and nobody can make one.
type Handle struct {
	Kind        HandleKind `json:"k"`
	Node        string     `json:"n"`
	Incarnation string     `json:"i"`
	Session     string     `json:"s"`
	User        string     `json:"u"`
	Statement   string     `json:"q"`           // unique per execution, preparation or transaction
	Bind        string     `json:"b,omitempty"` // parameters kept on the node
	SQL         string     `json:"t,omitempty"` // a prepared statement's, or a re-runnable read's
	Transaction string     `json:"x,omitempty"` // the transaction a statement was prepared in
	ReadOnly    bool       `json:"r,omitempty"`
	Issued      time.Time  `json:"d"`
}

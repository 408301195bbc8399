package edge

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/wire"
)

// Headers of clients.
const (
	headerAuth   = "authorization"
	headerAuthQ  = "x-qod-authorization" // for clients that strip the standard one
	headerToken  = "auth-token-bin"      // of the older authentication of Flight
	headerTenant = "tenant"
	headerPool   = "pool"
)

// caller is who makes a call, and in which session.
type caller struct {
	session, user string
	tenant, pool  string // as chosen by header, name or bearer; "" if by none
	token         string // of a session that this call began, for the client to go on with
	expires       time.Time
	realm         string
	claimed       access.Claimed
	life          access.Session // what the session ends with
}

// noSQL is said of tokens that were made read-only: nothing in a session would keep SQL to reading.
const noSQL = "the token is read-only: it reads the REST API and runs no SQL"

func refused(reason string) *failure {
	return fail(codes.Unauthenticated, statusDenied, reason)
}

func header(md metadata.MD, name string) string {
	if values := md.Get(name); len(values) > 0 {
		return values[0]
	}
	return ""
}

// identify finds out who calls from the call's headers. A password begins a session.
func (e *Edge) identify(ctx context.Context, md metadata.MD) (caller, *failure) {
	credential := header(md, headerAuth)
	if credential == "" {
		credential = header(md, headerAuthQ)
	}
	if token := header(md, headerToken); credential == "" && token != "" {
		credential = "Bearer " + token
	}
	scheme, rest, _ := strings.Cut(credential, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "basic":
		return e.basic(ctx, md, rest)
	case "bearer":
		if access.LogsIn(rest) {
			return e.login(ctx, md, "", rest)
		}
		c, f := e.open(ctx, rest)
		return c.at(md), f
	case "":
		return caller{}, refused("no credentials: log in with user and password, or give a bearer token")
	}
	return caller{}, refused("this kind of credentials is not known: give Basic or Bearer")
}

func (e *Edge) basic(ctx context.Context, md metadata.MD, encoded string) (caller, *failure) {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return caller{}, refused("the credentials are not base64")
	}
	user, password, ok := strings.Cut(string(raw), ":")
	if !ok {
		return caller{}, refused("the credentials have no password")
	}
	return e.login(ctx, md, user, password)
}

// login begins a session. Tools that can only send a password may send a bearer as one.
func (e *Edge) login(ctx context.Context, md metadata.MD, user, password string) (caller, *failure) {
	if access.IsBearer(password) {
		c, f := e.open(ctx, password)
		return c.at(md), f
	}
	from := addressOf(ctx)
	p, err := e.directory.Authenticate(ctx, access.Login{
		User: user, Password: password, Tenant: header(md, headerTenant), Pool: header(md, headerPool), From: from,
	})
	var bad *access.Refused
	switch {
	case errors.As(err, &bad):
		e.audit.refused(from, bad)
		return caller{}, refused(err.Error())
	case err != nil:
		return caller{}, ended(ctx)
	}
	if e.directory.Current().ReadOnly(p.Token) {
		e.audit.refused(from, &access.Refused{User: p.UserName, Tenant: p.Tenant, Realm: p.Realm, Token: p.Token, Code: "token_read_only"})
		return caller{}, refused(noSQL)
	}
	now := time.Now()
	expires := now.Add(e.bearerLife)
	if !p.Expires.IsZero() && p.Expires.Before(expires) {
		expires = p.Expires
	}
	c, f := e.begin(caller{
		user: p.UserID, tenant: p.Tenant, pool: p.Pool, expires: expires, realm: p.Realm, claimed: p.Claimed,
		life: access.Session{User: p.UserID, Token: p.Token, Verifier: p.Verifier, Issuer: p.Issuer, Issued: now},
	})
	if f == nil {
		e.audit.loggedIn(from, p, c.session)
	}
	return c, f
}

// begin makes a session of its own for the caller, and its bearer. One that is begun by a bearer ends with
// that one's.
func (e *Edge) begin(c caller) (caller, *failure) {
	if c.session != "" && c.life.Root == "" {
		c.life.Root = c.session
	}
	c.session = uuid.NewString()
	c.life.ID = c.session
	b := wire.Bearer{
		Session: c.session, User: c.user, Tenant: c.tenant, Pool: c.pool, Issued: c.life.Issued, Expires: c.expires,
		Root: c.life.Root, Token: c.life.Token, Verifier: c.life.Verifier, Issuer: c.life.Issuer,
		Roles: c.claimed.Roles, Groups: c.claimed.Groups,
	}
	var err error
	if c.token, err = access.SealBearer(e.keyring(), b); err != nil {
		e.log.Error("bearer not sealed", "err", err)
		return caller{}, fail(codes.Internal, statusTransient, "the session could not be made")
	}
	return c, nil
}

// open reads a bearer. One whose session was ended from outside is refused.
func (e *Edge) open(ctx context.Context, token string) (caller, *failure) {
	b, err := access.OpenBearer(e.keyring(), token)
	if err != nil {
		return caller{}, refused(err.Error())
	}
	if !time.Now().Before(b.Expires) {
		return caller{}, refused("the token expired: log in again")
	}
	life := access.SessionOf(b)
	if e.directory.Current().ReadOnly(b.Token) {
		return caller{}, refused(noSQL)
	}
	if err := e.directory.Current().Ended(life); err != nil {
		e.noteEnded(addressOf(ctx), life, err)
		return caller{}, refused(err.Error())
	}
	return caller{
		session: b.Session, user: b.User, tenant: b.Tenant, pool: b.Pool, expires: b.Expires, realm: access.RealmSession, life: life,
		claimed: access.Claimed{Roles: b.Roles, Groups: b.Groups},
	}, nil
}

// at returns the caller with the tenant and pool that the call's headers name, if they do. A pool that
// the login named belongs to its tenant.
func (c caller) at(md metadata.MD) caller {
	tenant, pool := header(md, headerTenant), header(md, headerPool)
	if tenant != "" && tenant != c.tenant {
		c.tenant, c.pool = tenant, ""
	}
	if pool != "" {
		c.pool = pool
	}
	return c
}

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

// tokenPrefix marks our bearers, so that one given as a password is told from a password.
const tokenPrefix = "qod1."

// caller is who makes a call, and in which session.
type caller struct {
	session, user string
	tenant, pool  string // as chosen by header, name or bearer; "" if by none
	token         string // of a session that this call began, for the client to go on with
	expires       time.Time
}

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
		c, f := e.open(rest)
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
	if strings.HasPrefix(password, tokenPrefix) {
		c, f := e.open(password)
		return c.at(md), f
	}
	p, err := e.directory.Authenticate(ctx, access.Login{
		User: user, Password: password, Tenant: header(md, headerTenant), Pool: header(md, headerPool),
	})
	switch {
	case errors.Is(err, access.ErrUnauthenticated):
		return caller{}, refused(err.Error())
	case err != nil:
		return caller{}, ended(ctx)
	}
	return e.begin(p.UserID, p.Tenant, p.Pool, time.Now().Add(e.bearerLife))
}

// begin makes a session and its bearer.
func (e *Edge) begin(user, tenant, pool string, expires time.Time) (caller, *failure) {
	now := time.Now()
	b := wire.Bearer{
		Session: uuid.NewString(), User: user, Tenant: tenant, Pool: pool, Issued: now, Expires: expires,
	}
	sealed, err := e.keyring().Seal(wire.PurposeBearer, b)
	if err != nil {
		e.log.Error("bearer not sealed", "err", err)
		return caller{}, fail(codes.Internal, statusTransient, "the session could not be made")
	}
	return caller{
		session: b.Session, user: user, tenant: tenant, pool: pool, expires: expires,
		token: tokenPrefix + base64.RawURLEncoding.EncodeToString(sealed),
	}, nil
}

func (e *Edge) open(token string) (caller, *failure) {
	encoded, ours := strings.CutPrefix(token, tokenPrefix)
	sealed, err := base64.RawURLEncoding.DecodeString(encoded)
	var b wire.Bearer
	if !ours || err != nil || e.keyring().Open(wire.PurposeBearer, sealed, &b) != nil {
		return caller{}, refused("the token is not known here: log in again")
	}
	if !time.Now().Before(b.Expires) {
		return caller{}, refused("the token expired: log in again")
	}
	return caller{session: b.Session, user: b.User, tenant: b.Tenant, pool: b.Pool, expires: b.Expires}, nil
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

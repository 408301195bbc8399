package schema

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

const (
	maxIssuer    = 512 // bytes
	maxClaim     = 255 // bytes of an audience or of a claim's name
	maxAudiences = 16
)

func authBlock() Block {
	return Block{
		Name: "auth", Single: true, Effect: Live,
		Doc: "The OpenID Connect issuer whose tokens log in users of the tenant, beside passwords. Who a token is of must exist as a " +
			"user of the tenant. A change ends the sessions that tokens began.",
		Attrs: []Attr{
			{
				Name: "issuer", Type: cty.String, Mode: Required, Effect: Live, Host: true, Check: checkIssuer,
				Doc: "The issuer's URL, exactly as its tokens have it in `iss`. Its discovery document and keys are fetched from there. " +
					"It begins with https; http is for loopback addresses.",
			},
			{
				Name: "audience", Type: cty.Set(cty.String), Mode: Required, Effect: Live, Check: checkAudience,
				Doc: "Whom tokens must be for: one of these is in the token's `aud`.",
			},
			{
				Name: "username_claim", Type: cty.String, Default: cty.StringVal("email"), Effect: Live, Check: checkClaim,
				Doc: "The claim that holds the user's name. `email` counts only beside `email_verified = true`. Name another one only if " +
					"the issuer's users cannot choose its value.",
			},
			{
				Name: "roles_claim", Type: cty.String, Effect: Live, Check: checkClaim,
				Doc: "The claim that lists roles which the user holds in addition, such as `roles`, or `realm_access.roles` for one inside " +
					"another. Those that the tenant does not have are left out.",
			},
			{
				Name: "groups_claim", Type: cty.String, Effect: Live, Check: checkClaim,
				Doc: "The claim that lists groups which the user is in, in addition. Those that the tenant does not have are left out.",
			},
		},
	}
}

func checkIssuer(v cty.Value) error { return CheckIssuer(v.AsString()) }

// CheckIssuer says what is wrong with the URL of an issuer, or returns nil.
func CheckIssuer(issuer string) error {
	if len(issuer) > maxIssuer {
		return fmt.Errorf("this is not the URL of an issuer: it has more than %d bytes", maxIssuer)
	}
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return errors.New("this is not the URL of an issuer: write it as https://login.example.com") // err repeats what may be a password
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(issuer, "#"):
		return errors.New("this is not the URL of an issuer: it must have no user, query or fragment")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return fmt.Errorf("%q is not safe as the URL of an issuer: want https, or http on a loopback address", issuer)
	case u.Hostname() == "":
		return fmt.Errorf("%q is not the URL of an issuer: it names no host", issuer)
	}
	return nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func checkAudience(v cty.Value) error {
	switch n := v.LengthInt(); {
	case n == 0:
		return errors.New("name at least one audience: without one, tokens for any application would do")
	case n > maxAudiences:
		return fmt.Errorf("there are %d audiences: at most %d are allowed", n, maxAudiences)
	}
	return each(checkClaim)(v)
}

func checkClaim(v cty.Value) error {
	s := v.AsString()
	if s == "" || len(s) > maxClaim || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("%q will not do: want 1 to %d printable bytes", s, maxClaim)
	}
	return nil
}

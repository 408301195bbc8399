package oidc

import (
	"strings"
	"time"
)

// Claims are what a token that was checked says.
type Claims struct {
	Issued, Expires time.Time // Issued is zero where the token does not say
	all             map[string]any
}

// emailClaim holds an address that the user may have typed in: it names the user once it was verified.
const emailClaim = "email"

// Username returns what names the user, "" if the token has no such claim or it does not count.
func (c Claims) Username(claim string) string {
	name, _ := c.value(claim).(string)
	if claim == emailClaim && !c.verified() {
		return ""
	}
	return name
}

// verified reports whether the issuer vouches for the address. Some issuers write it as a string.
func (c Claims) verified() bool {
	v := c.all["email_verified"]
	return v == true || v == "true"
}

// List returns the names in a claim that is a list of strings, or one.
func (c Claims) List(claim string) []string {
	switch v := c.value(claim).(type) {
	case string:
		return []string{v}
	case []any:
		var names []string
		for _, item := range v {
			if name, ok := item.(string); ok {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

// value finds a claim by its name or, where there is none of that name, inside of others: a.b is b in a.
func (c Claims) value(claim string) any {
	if v, ok := c.all[claim]; ok {
		return v
	}
	var at any = c.all
	for part := range strings.SplitSeq(claim, ".") {
		inner, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = inner[part]
	}
	return at
}

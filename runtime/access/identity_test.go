package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qod-io/qod/engine/store"
)

// pass lets the time of a bubble pass.
func pass(d time.Duration) { <-time.After(d) }

func TestLockout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHolder(acme(t).directory())
		try := func(from, password, want string) time.Duration {
			t.Helper()
			_, err := h.Authenticate(t.Context(), Login{User: "ana", Tenant: "acme", Password: password, From: from})
			var refused *Refused
			code := ""
			if errors.As(err, &refused) {
				code = refused.Code
				if !errors.Is(err, ErrUnauthenticated) || err.Error() != ErrUnauthenticated.Error() {
					t.Errorf("%s is told as %q", code, err)
				}
			} else {
				refused = &Refused{}
			}
			if code != want {
				t.Errorf("%q from %s: %q, want %q", password, from, code, want)
			}
			return refused.Wait
		}
		good := "pw-of-u-ana"
		for range pairStrikes - 1 {
			if wait := try("10.0.0.1", "wrong", "password"); wait != 0 {
				t.Errorf("an early wait of %s", wait)
			}
		}
		for want := firstWait; want < 2*mostWait; want *= 2 {
			if got := try("10.0.0.1", "wrong", "password"); got != min(want, mostWait) {
				t.Errorf("wait %s, want %s", got, min(want, mostWait))
			}
			try("10.0.0.1", good, "locked") // nor does it make the wait longer
			try("10.0.0.2", good, "")
			pass(min(want, mostWait))
		}
		try("10.0.0.1", good, "")
		try("10.0.0.1", "wrong", "password")
		try("10.0.0.1", good, "")
		// Failures that are long ago do not count.
		for range pairStrikes - 1 {
			try("10.0.0.3", "wrong", "password")
		}
		pass(strikesLife + time.Second)
		if wait := try("10.0.0.3", "wrong", "password"); wait != 0 {
			t.Errorf("old failures began a wait of %s", wait)
		}
	})
}

// A right password that does not count yet must not be told from a wrong one by the time it takes, although
// it is remembered.
func TestLockedOutTakesAsLong(t *testing.T) {
	h := NewHolder(acme(t).directory())
	login := Login{User: "ben", Password: "pw-of-u-ben", From: "10.0.0.1"}
	if _, err := h.Authenticate(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	fastest := func(password string) time.Duration {
		best := time.Hour
		login.Password = password
		for range 3 {
			start := time.Now()
			if _, err := h.Authenticate(t.Context(), login); !errors.Is(err, ErrUnauthenticated) {
				t.Fatalf("err = %v", err)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	for range pairStrikes + 6 { // a wait that outlasts this test
		h.gate.lockout.fail("u-ben", login.From, time.Now())
	}
	wrong, right := fastest("wrong"), fastest("pw-of-u-ben")
	if right < wrong/4 {
		t.Errorf("a right password takes %s and a wrong one %s", right, wrong)
	}
}

func TestLockoutFromManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, now := newLockout(), time.Now()
		l.succeed("u", "10.9.9.9", now)
		for i := range userStrikes - 1 {
			if wait := l.fail("u", fmt.Sprintf("10.0.1.%d", i), now); wait != 0 {
				t.Fatalf("a wait of %s after %d failures", wait, i+1)
			}
		}
		if wait := l.fail("u", "10.0.2.1", now); wait != firstWait {
			t.Errorf("a wait of %s, want %s", wait, firstWait)
		}
		if !l.holds("u", "10.0.2.2", now) || l.holds("other", "10.0.2.2", now) {
			t.Error("the user must wait wherever a login comes from, and no other user")
		}
		if l.holds("u", "10.9.9.9", now) {
			t.Error("who logged in today waits for what others did")
		}
		if l.holds("u", "10.0.2.2", now.Add(firstWait)) {
			t.Error("the wait does not end")
		}
	})
}

func TestLockoutIsBounded(t *testing.T) {
	l, now := newLockout(), time.Now()
	for i := range 3 * lockoutLimit {
		l.fail(fmt.Sprint(i), "10.0.0.1", now.Add(time.Duration(i)*time.Millisecond))
	}
	if len(l.pairs) > lockoutLimit || len(l.users) > lockoutLimit {
		t.Errorf("%d and %d entries", len(l.pairs), len(l.users))
	}
	if last := fmt.Sprint(3*lockoutLimit - 1); l.users[last] == nil {
		t.Error("the newest entry is gone")
	}
}

func TestNetwork(t *testing.T) {
	for from, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
		"@": "@", "": "",
	} {
		if got := network(from); got != want {
			t.Errorf("network(%q) = %q, want %q", from, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	now := time.Now()
	w := acme(t)
	made := map[string]string{}
	add := func(name, owner string, alter func(*store.Token)) {
		row, secret, err := NewToken(owner, name, now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if alter != nil {
			alter(&row)
		}
		if strings.Contains(fmt.Sprintf("%s %x", row.Hash, row.Hash), secret) || len(secret) < 40 {
			t.Errorf("token %q", secret)
		}
		w.snap.Tokens = append(w.snap.Tokens, row)
		made[name] = secret
	}
	add("good", "u-ana", nil)
	add("revoked", "u-ana", func(r *store.Token) { r.Revoked = now })
	add("expired", "u-ana", func(r *store.Token) { r.Expires = now.Add(-time.Second) })
	add("of a disabled user", "u-eve", nil)
	add("of a disabled tenant", "u-shut", nil)
	add("of nobody", "u-gone", nil)
	made["unknown"] = "qodp_aaaaaaaaaaaa_" + strings.Repeat("A", 26)
	made["forged"] = made["good"][:len(made["good"])-1] + "!"
	made["longer"] = made["good"] + "A"
	made["without a secret"] = made["good"][:len("qodp_")+tokenIDSize]
	d := w.directory()
	for name, code := range map[string]string{
		"good": "", "revoked": "token_revoked", "expired": "token_expired", "of a disabled user": "disabled",
		"of a disabled tenant": "tenant_disabled", "of nobody": "no_owner", "unknown": "unknown_token", "forged": "unknown_token",
		"longer": "unknown_token", "without a secret": "unknown_token",
	} {
		p, err := d.Authenticate(t.Context(), Login{User: "whoever@acme/bi", Password: made[name]})
		var refused *Refused
		if errors.As(err, &refused) {
			if refused.Code != code || strings.Contains(err.Error(), "qodp_") {
				t.Errorf("%s: %+v", name, refused)
			}
			continue
		}
		if err != nil || code != "" || p.UserID != "u-ana" || p.Pool != "bi" || p.Token == "" || p.Expires.IsZero() || p.Realm != RealmToken {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	for _, life := range []time.Duration{0, -1, MaxTokenLife + 1} {
		if _, _, err := NewToken("u", "", now, life); err == nil {
			t.Errorf("a token that lives for %s was made", life)
		}
	}
	if _, _, err := NewToken("u", "a\x1b[31m", now, time.Hour); err == nil {
		t.Error("a name that is not printable was taken")
	}
}

func TestEndedSessions(t *testing.T) {
	now := time.Now()
	w := acme(t)
	w.snap.Tokens = []store.Token{
		{ID: "good", Owner: "u-ana", Expires: now.Add(time.Hour)}, {ID: "revoked", Owner: "u-ana", Revoked: now},
	}
	w.snap.Revoked = []store.Revocation{{Session: "s1"}, {User: "u-ben", At: now}}
	d := w.directory()
	name := d.verifierName("u-ana")
	tests := map[string]struct {
		session Session
		code    string
	}{
		"plain":                    {Session{ID: "s", User: "u-ana", Issued: now}, ""},
		"with the password of now": {Session{ID: "s", User: "u-ana", Verifier: name, Issued: now}, ""},
		"with another password":    {Session{ID: "s", User: "u-ana", Verifier: "x", Issued: now}, "password_changed"},
		"revoked":                  {Session{ID: "s1", User: "u-ana", Issued: now}, "session_revoked"},
		"begun from a revoked one": {Session{ID: "s2", Root: "s1", User: "u-ana", Issued: now}, "session_revoked"},
		"before the user's were":   {Session{ID: "s", User: "u-ben", Issued: now}, "session_revoked"},
		"after the user's were":    {Session{ID: "s", User: "u-ben", Issued: now.Add(1)}, ""},
		"of a good token":          {Session{ID: "s", User: "u-ana", Token: "good", Issued: now}, ""},
		"of a revoked token":       {Session{ID: "s", User: "u-ana", Token: "revoked", Issued: now}, "token_revoked"},
		"of no token":              {Session{ID: "s", User: "u-ana", Token: "gone", Issued: now}, "token_revoked"},
		"of another's token":       {Session{ID: "s", User: "u-eve", Token: "good", Issued: now}, "token_revoked"},
	}
	for what, tc := range tests {
		err := d.Ended(tc.session)
		var ended *EndedError
		if got := errors.As(err, &ended); got != (tc.code != "") || got && ended.Code != tc.code {
			t.Errorf("%s: %v, want %q", what, err, tc.code)
		}
	}
	if name == "" || d.verifierName("u-nobody") != "" {
		t.Error("a verifier has no name, or none has one")
	}
	w.password("u-ana", "another")
	if w.directory().verifierName("u-ana") == name {
		t.Error("a new password has the old one's name")
	}
}

func TestAgeOfTheDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHolder(acme(t).directory())
		pass(time.Minute)
		if got := h.Age(time.Now()); got != time.Minute {
			t.Errorf("age %s", got)
		}
		h.Confirm(time.Now())
		if got := h.Age(time.Now()); got != 0 {
			t.Errorf("age %s after it was confirmed", got)
		}
		_, changed := h.Watch()
		h.Swap(h.Current())
		<-changed
	})
}

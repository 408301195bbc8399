package schema

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"
)

// NamePattern is the form of the names of tenants, pools, stacks and the like, as a regular expression.
const NamePattern = `^[a-z][a-z0-9_-]{0,62}$`

var (
	namePattern  = regexp.MustCompile(NamePattern)
	emailPattern = regexp.MustCompile(`^[^\s\pC/:@]+( [^\s\pC/:@]+)*@[A-Za-z0-9.-]+$`)
)

func checkName(v cty.Value) error {
	name := v.AsString()
	if namePattern.MatchString(name) {
		return nil
	}
	hint := ""
	if fixed := slug(name); fixed != name && namePattern.MatchString(fixed) {
		hint = fmt.Sprintf("; %q would do", fixed)
	}
	return fmt.Errorf("%q is not a name: want a letter a-z first, then at most 62 of a-z, 0-9, _ and -%s", name, hint)
}

// CheckName says what is wrong with a name of a tenant, pool, stack and the like, or returns nil.
func CheckName(name string) error { return checkName(cty.StringVal(name)) }

// reserved are the names of databases that every DuckDB has, or that a node needs beside the tenant's.
var reserved = []string{"main", "temp", "system", "memory", "scratch", "pg_catalog", "information_schema"}

func checkDatabaseName(v cty.Value) error {
	if slices.Contains(reserved, v.AsString()) {
		return fmt.Errorf("%q is reserved by DuckDB and cannot be the name of a database", v.AsString())
	}
	return checkName(v)
}

func checkUserName(v cty.Value) error {
	name := v.AsString()
	if len(name) <= 254 && emailPattern.MatchString(name) && norm.NFC.IsNormalString(name) {
		return nil
	}
	return checkName(v)
}

func slug(name string) string {
	fixed := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		case r == ' ', r == '.':
			return '_'
		}
		return -1
	}, strings.ToLower(name))
	return fixed[:min(len(fixed), 63)]
}

// check says what is wrong with a known, non-null value.
func (a *Attr) check(v cty.Value) error {
	if err := a.checkOneOf(v); err != nil || a.Check == nil {
		return err
	}
	return a.Check(v)
}

func (a *Attr) checkOneOf(v cty.Value) error {
	switch {
	case len(a.OneOf) == 0:
		return nil
	case a.Set():
		return each(oneOf(a.OneOf))(v)
	}
	return oneOf(a.OneOf)(v)
}

func oneOf(values []string) func(cty.Value) error {
	return func(v cty.Value) error {
		if slices.Contains(values, v.AsString()) {
			return nil
		}
		hint := ""
		if near := Nearest(v.AsString(), values); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Errorf("%q is not known: want %s%s", v.AsString(), orList(values), hint)
	}
}

func orList(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// shortNumber prints a number, but not one of millions of digits.
func shortNumber(f *big.Float) string {
	if exp := f.MantExp(nil); exp > 1024 || exp < -1024 {
		return "the number"
	}
	return f.Text('f', -1)
}

func whole(low, high int64) func(cty.Value) error {
	return func(v cty.Value) error {
		f := v.AsBigFloat()
		if !f.IsInt() || f.Cmp(big.NewFloat(float64(low))) < 0 || f.Cmp(big.NewFloat(float64(high))) > 0 {
			return fmt.Errorf("%s is out of range: want a whole number from %d to %d", shortNumber(f), low, high)
		}
		return nil
	}
}

func each(check func(cty.Value) error) func(cty.Value) error {
	return func(v cty.Value) error {
		for it := v.ElementIterator(); it.Next(); {
			_, ev := it.Element()
			if ev.IsNull() {
				return errors.New("a null is not allowed here")
			}
			if err := check(ev); err != nil {
				return err
			}
		}
		return nil
	}
}

// Bytes reads a size such as 1GiB, 512MiB or 2GB.
func Bytes(s string) (int64, error) {
	units := []struct {
		suffix string
		size   int64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
		{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || n <= 0 || n*float64(u.size) > 1<<60 {
			break
		}
		return int64(n * float64(u.size)), nil
	}
	return 0, fmt.Errorf("%q is not a size: write it as 512MiB or 2GiB", s)
}

func checkMemory(v cty.Value) error {
	n, err := Bytes(v.AsString())
	if err == nil && n < 64<<20 {
		err = fmt.Errorf("%s is too little for a node: want at least 64MiB", v.AsString())
	}
	return err
}

// Duration reads a span such as 90s, 5m or 1h; "0s" stands for no limit where one is allowed.
func Duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration: write it as 90s, 5m or 1h", s)
	}
	return d, nil
}

func checkDuration(v cty.Value) error {
	_, err := Duration(v.AsString())
	return err
}

func checkVerifier(v cty.Value) error {
	if !strings.HasPrefix(v.AsString(), "$argon2id$v=19$") {
		return errors.New("this is not an argon2id verifier: it starts with $argon2id$v=19$")
	}
	const maxMemory, maxTime, maxThreads = 64 << 10, 8, 4 // every login that is tried costs that
	var m, t, p uint32
	cost, _, _ := strings.Cut(strings.TrimPrefix(v.AsString(), "$argon2id$v=19$"), "$")
	if _, err := fmt.Sscanf(cost, "m=%d,t=%d,p=%d", &m, &t, &p); err != nil {
		return errors.New("this argon2id verifier does not name its cost as m=…,t=…,p=…")
	}
	if m > maxMemory || t > maxTime || p > maxThreads {
		return fmt.Errorf("this argon2id verifier costs too much to check: at most m=%d,t=%d,p=%d is allowed",
			maxMemory, maxTime, maxThreads)
	}
	return nil
}

func checkPassword(v cty.Value) error {
	if n := len(v.AsString()); n < 8 || n > 1024 {
		return errors.New("a password has 8 to 1024 bytes")
	}
	return nil
}

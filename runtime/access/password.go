package access

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Cost of the verifiers that Hash makes. Verify takes any cost up to the limits below it.
const (
	hashMemory  = 19456 // KiB
	hashTime    = 2
	hashThreads = 1
	saltSize    = 16
	hashSize    = 32

	maxMemory  = 64 << 10 // KiB; every login that is tried takes it
	maxTime    = 8
	maxThreads = 4
)

var (
	errVerifier = errors.New("this is not a usable argon2id verifier")
	errCost     = fmt.Errorf("this argon2id verifier costs too much to check: at most m=%d,t=%d,p=%d is allowed",
		maxMemory, maxTime, maxThreads)
)

// Hash returns a verifier of the password: $argon2id$v=19$m=19456,t=2,p=1$salt$hash.
func Hash(password string) (string, error) {
	if password == "" {
		return "", errors.New("hash password: it is empty")
	}
	salt := make([]byte, saltSize)
	rand.Read(salt)
	v := verifier{memory: hashMemory, time: hashTime, threads: hashThreads, salt: salt}
	v.hash = v.derive(password, hashSize)
	return v.String(), nil
}

// Verify reports whether the verifier is one of the password. It takes as long for a wrong password as
// for the right one. A verifier that cannot be read verifies nothing, and is an error.
func Verify(phc, password string) (bool, error) {
	v, err := parseVerifier(phc)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(v.derive(password, len(v.hash)), v.hash) == 1, nil
}

// dummyVerifier returns a verifier of no password, which costs as much to fail at as one of Hash.
func dummyVerifier() string {
	v := verifier{
		memory: hashMemory, time: hashTime, threads: hashThreads,
		salt: make([]byte, saltSize), hash: make([]byte, hashSize),
	}
	rand.Read(v.salt)
	rand.Read(v.hash)
	return v.String()
}

type verifier struct {
	memory, time uint32
	threads      uint8
	salt, hash   []byte
}

func (v verifier) derive(password string, size int) []byte {
	return argon2.IDKey([]byte(password), v.salt, v.time, v.memory, v.threads, uint32(size))
}

func (v verifier) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, v.memory, v.time, v.threads,
		b64.EncodeToString(v.salt), b64.EncodeToString(v.hash))
}

func parseVerifier(phc string) (verifier, error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v=19" {
		return verifier{}, errVerifier
	}
	var v verifier
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &v.memory, &v.time, &v.threads); n != 3 || err != nil {
		return verifier{}, errVerifier
	}
	if v.memory < 8 || v.time < 1 || v.threads < 1 {
		return verifier{}, errVerifier
	}
	if v.memory > maxMemory || v.time > maxTime || v.threads > maxThreads {
		return verifier{}, errCost
	}
	var err error
	if v.salt, err = base64.RawStdEncoding.DecodeString(parts[4]); err != nil || len(v.salt) < 8 {
		return verifier{}, errVerifier
	}
	if v.hash, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil || len(v.hash) < 16 || len(v.hash) > 128 {
		return verifier{}, errVerifier
	}
	return v, nil
}

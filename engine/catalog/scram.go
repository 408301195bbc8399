package catalog

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

const (
	scramIterations = 4096 // what Postgres itself uses; the passwords have 192 random bits
	scramSaltBytes  = 16
)

// verifier returns what Postgres keeps of a password for SCRAM-SHA-256 (RFC 5803). The password is ASCII,
// so that SASLprep leaves it as it is.
func verifier(password []byte) (string, error) {
	salt := make([]byte, scramSaltBytes)
	rand.Read(salt)
	return verifierWith(password, salt, scramIterations)
}

func verifierWith(password, salt []byte, iterations int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, string(password), salt, iterations, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("derive verifier: %w", err)
	}
	stored := sha256.Sum256(sign(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, b64(salt), b64(stored[:]), b64(sign(salted, "Server Key"))), nil
}

func sign(key []byte, message string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(message))
	return mac.Sum(nil)
}

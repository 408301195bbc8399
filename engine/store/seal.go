package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// MasterKeySize is the size of a master key in bytes.
const MasterKeySize = 32

// Sealed is a secret as it is stored: a version byte, a nonce, and AES-256-GCM ciphertext.
type Sealed []byte

const sealVersion = 1

// Sealer seals secrets with the master key, which is never in the store.
type Sealer struct {
	aead        cipher.AEAD
	fingerprint []byte
}

// NewSealer returns the Sealer of a master key.
func NewSealer(master []byte) (*Sealer, error) {
	if len(master) != MasterKeySize {
		return nil, fmt.Errorf("master key has %d bytes, not %d", len(master), MasterKeySize)
	}
	sealing, err := hkdf.Key(sha256.New, master, nil, "qod seal", 32)
	if err != nil {
		return nil, fmt.Errorf("derive sealing key: %w", err)
	}
	fingerprint, err := hkdf.Key(sha256.New, master, nil, "qod fingerprint", 32)
	if err != nil {
		return nil, fmt.Errorf("derive fingerprint key: %w", err)
	}
	block, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make cipher: %w", err)
	}
	return &Sealer{aead: aead, fingerprint: fingerprint}, nil
}

// Seal encrypts a secret for one use: what was sealed for another object or attribute does not open.
func (s *Sealer) Seal(key SecretKey, secret []byte) Sealed {
	out := make([]byte, 1+s.aead.NonceSize(), 1+s.aead.NonceSize()+len(secret)+s.aead.Overhead())
	out[0] = sealVersion
	rand.Read(out[1:])
	return s.aead.Seal(out, out[1:1+s.aead.NonceSize()], secret, key.bind())
}

// Open decrypts what Seal made for the same key.
func (s *Sealer) Open(key SecretKey, sealed Sealed) ([]byte, error) {
	if len(sealed) < 1+s.aead.NonceSize() || sealed[0] != sealVersion {
		return nil, errors.New("open secret: unknown form")
	}
	nonce, body := sealed[1:1+s.aead.NonceSize()], sealed[1+s.aead.NonceSize():]
	secret, err := s.aead.Open(nil, nonce, body, key.bind())
	if err != nil {
		return nil, errors.New("open secret: the master key is not the one it was sealed with, or the row was altered")
	}
	return secret, nil
}

// Fingerprint stands for a secret in specs: equal secrets of one attribute of one object have equal
// fingerprints, and without the master key nothing can be learned from one.
func (s *Sealer) Fingerprint(key SecretKey, secret []byte) string {
	mac := hmac.New(sha256.New, s.fingerprint)
	mac.Write(key.bind())
	mac.Write(secret)
	return "hmac:" + hex.EncodeToString(mac.Sum(nil)[:16])
}

func (k SecretKey) bind() []byte { return []byte(k.Object + "\x00" + k.Attr + "\x00") }

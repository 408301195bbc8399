package wire

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// KeySize is the size of a key in bytes.
const KeySize = 32

// Key is a sealing key and its number, 1 to 255.
type Key struct {
	ID  int    `json:"id"`
	Key []byte `json:"key"`
}

// Purpose binds what is sealed to one use: a ticket never opens as a bearer.
type Purpose string

const (
	PurposeBearer      Purpose = "bearer"
	PurposeHandle      Purpose = "handle"
	PurposeAssertion   Purpose = "assertion"
	PurposePermissions Purpose = "permissions"
)

// ErrSealed is returned for bytes that do not open: forged, damaged, or of a key that is gone.
var ErrSealed = errors.New("not sealed by this cluster, or by a key that is no longer kept")

// Keyring seals with its first key and opens with any. It is immutable and safe for concurrent use.
type Keyring struct {
	keys  []Key
	aeads []cipher.AEAD
}

// NewKeyring returns a keyring of the keys, current first.
func NewKeyring(keys ...Key) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("make keyring: no key")
	}
	r := &Keyring{keys: keys, aeads: make([]cipher.AEAD, len(keys))}
	for i, k := range keys {
		if k.ID < 1 || k.ID > 255 || len(k.Key) != KeySize {
			return nil, fmt.Errorf("make keyring: key %d is unusable", k.ID)
		}
		block, err := aes.NewCipher(k.Key)
		if err != nil {
			return nil, fmt.Errorf("make keyring: %w", err)
		}
		if r.aeads[i], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("make keyring: %w", err)
		}
	}
	return r, nil
}

// Keys returns the keys, current first.
func (r *Keyring) Keys() []Key { return slices.Clone(r.keys) }

// Pool returns the keyring of a pool. Nodes hold only that of their own pool.
func (r *Keyring) Pool(id string) (*Keyring, error) {
	derived := make([]Key, len(r.keys))
	for i, k := range r.keys {
		key, err := hkdf.Key(sha256.New, k.Key, nil, "qod pool "+id, KeySize)
		if err != nil {
			return nil, fmt.Errorf("derive key of pool %s: %w", id, err)
		}
		derived[i] = Key{ID: k.ID, Key: key}
	}
	return NewKeyring(derived...)
}

// Seal returns v, encoded and encrypted: version, key number, nonce, ciphertext.
func (r *Keyring) Seal(p Purpose, v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", p, err)
	}
	aead := r.aeads[0]
	out := make([]byte, 2+aead.NonceSize(), 2+aead.NonceSize()+len(plain)+aead.Overhead())
	out[0], out[1] = Version, byte(r.keys[0].ID)
	rand.Read(out[2:])
	return aead.Seal(out, out[2:], plain, []byte(p)), nil
}

// Open reads into v what Seal made for the same purpose, or returns ErrSealed.
func (r *Keyring) Open(p Purpose, sealed []byte, v any) error {
	if len(sealed) < 2 || sealed[0] < MinVersion || sealed[0] > Version {
		return ErrSealed
	}
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == int(sealed[1]) })
	if i < 0 {
		return ErrSealed
	}
	aead := r.aeads[i]
	if len(sealed) < 2+aead.NonceSize() {
		return ErrSealed
	}
	nonce, body := sealed[2:2+aead.NonceSize()], sealed[2+aead.NonceSize():]
	plain, err := aead.Open(nil, nonce, body, []byte(p))
	if err != nil {
		return ErrSealed
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return ErrSealed
	}
	return nil
}

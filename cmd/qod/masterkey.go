package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/qod-io/qod/engine/store"
)

// masterKey reads the master key, or makes it when creating. The file must be closed to others.
func masterKey(path string, create bool) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		return makeMasterKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("master key %s can be read by others: run chmod 600 on it", path)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) != store.MasterKeySize {
		return nil, fmt.Errorf("master key %s is damaged: put the copy back that you keep apart", path)
	}
	return key, nil
}

// makeMasterKey never overwrites a key: without the old one, all secrets would be lost.
func makeMasterKey(path string) ([]byte, error) {
	key := make([]byte, store.MasterKeySize)
	rand.Read(key)
	err := writeSecretFile(path, hex.EncodeToString(key)+"\n")
	if errors.Is(err, fs.ErrExist) { // another process was first
		return masterKey(path, false)
	}
	if err != nil {
		return nil, fmt.Errorf("make master key: %w", err)
	}
	return key, nil
}

// writeSecretFile makes a file of mode 0600 that appears whole or not at all. It fails when the file exists.
func writeSecretFile(path, content string) error {
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if _, err := f.WriteString(content); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Link(temp, path)
}

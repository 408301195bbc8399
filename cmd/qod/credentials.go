package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// savedLogins are what qod login keeps, by the addresses of servers.
type savedLogins struct {
	Servers map[string]credential `json:"servers"`
}

type credential struct {
	Token  string `json:"token"`
	CAFile string `json:"ca_file,omitempty"`
}

// address is how a server is called in the file.
func address(server string) string { return strings.ToLower(strings.TrimRight(server, "/")) }

func (c *savedLogins) of(server string) credential { return c.Servers[address(server)] }

// credentialsFile is the same for all working directories.
func (a *app) credentialsFile() (string, error) {
	base, _ := a.env("XDG_CONFIG_HOME")
	if base == "" {
		home, _ := a.env("HOME")
		if home == "" {
			return "", errors.New("find the file of credentials: neither XDG_CONFIG_HOME nor HOME is set")
		}
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "qod", "credentials.json"), nil
}

// credentials reads what is kept, which is nothing where there is no file.
func (a *app) credentials() (*savedLogins, error) {
	out := &savedLogins{Servers: map[string]credential{}}
	name, err := a.credentialsFile()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read credentials: others can read %s: chmod 600 it, and revoke the tokens in it if somebody has", name)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	if err := json.Unmarshal(raw, out); err != nil || out.Servers == nil {
		return nil, fmt.Errorf("read credentials: %s is damaged: remove it, and log in again", name)
	}
	return out, nil
}

// keep writes what is kept: whole, or not at all.
func (a *app) keep(c *savedLogins) error {
	name, err := a.credentialsFile()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("keep credentials: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("keep credentials: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "credentials-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("keep credentials: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keep credentials: %w", err), os.Remove(f.Name()))
	}
	return nil
}

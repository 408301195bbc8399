package edge

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Certificate serves a certificate from files and reads them again when they change. It is safe for
// concurrent use.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	stamp   [2]fs.FileInfo // of the files that current was read from
	looked  time.Time
}

// lookEvery is how often the files are looked at, at most.
const lookEvery = time.Second

// LoadCertificate reads a certificate chain and its key, both PEM.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	c.looked = time.Now()
	return c, nil
}

// Expires is when the certificate that is served now ends.
func (c *Certificate) Expires() time.Time { return c.get().Leaf.NotAfter }

// Config returns a server's TLS configuration that always serves the current certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
	}
}

// WebConfig is Config for HTTPS.
func (c *Certificate) WebConfig() *tls.Config {
	config := c.Config()
	config.NextProtos = []string{"h2", "http/1.1"}
	return config
}

// get returns the current certificate. Files that do not fit together, as half of a change does, leave
// the one that is served in place.
func (c *Certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if changed(c.stamps(), c.stamp) {
			if err := c.read(); err != nil {
				c.log.Warn("certificate not reloaded", "file", c.certFile, "err", err)
			}
		}
	}
	return c.current
}

func (c *Certificate) stamps() (stamp [2]fs.FileInfo) {
	for i, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			stamp[i] = info
		}
	}
	return stamp
}

// changed compares more than times, since two files may be made within one tick of the clock.
func changed(now, then [2]fs.FileInfo) bool {
	for i := range now {
		a, b := now[i], then[i]
		if a == nil || b == nil {
			if a != b {
				return true
			}
			continue
		}
		if !os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) {
			return true
		}
	}
	return false
}

func (c *Certificate) read() error {
	stamp := c.stamps()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("load certificate %s: %w", c.certFile, err)
	}
	c.current, c.stamp = &pair, stamp
	return nil
}

const selfSignedLife = 10 * 365 * 24 * time.Hour

// SelfSigned returns the files of a self-signed certificate in dir for the hosts, names or addresses.
// It makes them, valid for ten years, unless usable ones are there. The key's file is 0600.
func SelfSigned(dir string, hosts []string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, "edge.crt"), filepath.Join(dir, "edge.key")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	switch {
	case err == nil && time.Now().Before(pair.Leaf.NotAfter):
		return certFile, keyFile, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", "", fmt.Errorf("read certificate %s: %w", certFile, err)
	}
	cert, key, err := makeSelfSigned(hosts)
	if err != nil {
		return "", "", fmt.Errorf("make certificate: %w", err)
	}
	if err := writeFile(keyFile, "PRIVATE KEY", key, 0o600); err != nil {
		return "", "", err
	}
	if err := writeFile(certFile, "CERTIFICATE", cert, 0o644); err != nil {
		return "", "", err
	}
	return certFile, keyFile, nil
}

func makeSelfSigned(hosts []string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "qod"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(selfSignedLife),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true, // so that clients can name it as their root
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	if cert, err = x509.CreateCertificate(rand.Reader, template, template, private.Public(), private); err != nil {
		return nil, nil, err
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return cert, key, err
}

// writeFile replaces the file in one step.
func writeFile(name, kind string, der []byte, mode os.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer os.Remove(temp.Name()) // fails once it is renamed
	err = errors.Join(
		temp.Chmod(mode),
		pem.Encode(temp, &pem.Block{Type: kind, Bytes: der}),
		temp.Sync(),
		temp.Close(),
	)
	if err == nil {
		err = os.Rename(temp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

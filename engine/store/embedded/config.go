package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	superuser = "qod"
	database  = "qod"
	port      = 5432

	maxSocketPath = 107 // bytes of sun_path without the final NUL
	socketName    = ".s.PGSQL.5432"
)

var (
	// ErrAbsent is returned when there is no cluster and the caller did not want one made.
	ErrAbsent = errors.New("there is no private Postgres yet")
	// ErrNotOurs is matched when the data directory carries another cluster's id.
	ErrNotOurs = errors.New("the data directory belongs to another installation")
)

// Config says where the private Postgres lives.
type Config struct {
	// StateDir is qod's state directory, absolute. The cluster, its log, its id and the superuser's
	// password are kept there, all under names that begin with "postgres". It is made when missing;
	// as root it is opened for passing through, since the server runs as another user.
	StateDir string
	// RunDir holds sockets: absolute, short, and owned by the current user. It is made when missing.
	RunDir string
	// BinDir has the programs postgres and initdb. Empty: they are searched for, and fetched if need be.
	BinDir string
	// User is the operating system user that runs the server when qod runs as root. Empty: postgres,
	// or nobody where there is none. Without root it is not looked at.
	User string
	// Existing makes Start fail with ErrAbsent instead of making a cluster.
	Existing bool
	// NoFetch makes Start fail instead of fetching the programs when none are found.
	NoFetch bool
	// NoSync turns fsync off: for tests, whose clusters need not survive a crash of the machine.
	NoSync bool
	// Log is told what is started and stopped. Nil: nothing is logged.
	Log *slog.Logger
}

// cluster is a Config with its defaults in place and its names worked out.
type cluster struct {
	Config
	root     string // StateDir/postgres
	data     string
	socket   string // the directory of the socket
	account  *account
	log      *slog.Logger
	password string // file
	id       string // file
	logFile  string
	lockFile string
}

// account is the unprivileged user of the server; nil means the current user.
type account struct {
	name     string
	uid, gid int
}

func (cfg Config) resolve() (*cluster, error) {
	for name, dir := range map[string]string{"state": cfg.StateDir, "run": cfg.RunDir} {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("resolve private Postgres: the %s directory %q is not absolute", name, dir)
		}
	}
	if dir, err := filepath.EvalSymlinks(cfg.StateDir); err == nil {
		cfg.StateDir = dir // the server's process shows the resolved path
	}
	c := &cluster{
		Config:   cfg,
		root:     filepath.Join(cfg.StateDir, "postgres"),
		data:     filepath.Join(cfg.StateDir, "postgres", "data"),
		socket:   filepath.Join(cfg.RunDir, "pg"),
		log:      cfg.Log,
		password: filepath.Join(cfg.StateDir, "postgres.password"),
		id:       filepath.Join(cfg.StateDir, "postgres.id"),
		logFile:  filepath.Join(cfg.StateDir, "postgres.log"),
		lockFile: filepath.Join(cfg.StateDir, "postgres.lock"),
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	path := filepath.Join(c.socket, socketName)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("resolve private Postgres: the socket %s has a path of %d bytes, and the system allows %d: "+
			"choose a shorter run directory", path, len(path), maxSocketPath)
	}
	var err error
	c.account, err = unprivileged(cfg.User)
	return c, err
}

// unprivileged returns the account the server runs as, nil for the current user.
func unprivileged(name string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	candidates := []string{name}
	if name == "" {
		candidates = []string{"postgres", "nobody"}
	}
	for _, candidate := range candidates {
		u, err := user.Lookup(candidate)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr != nil || gidErr != nil || uid == 0 {
			return nil, fmt.Errorf("choose the user of the private Postgres: %s is no unprivileged user", candidate)
		}
		return &account{name: candidate, uid: uid, gid: gid}, nil
	}
	return nil, fmt.Errorf("choose the user of the private Postgres: there is no user %v, and Postgres refuses to run as root", candidates)
}

// attributes are those of the server's processes: a session of their own, and the account's identity.
func (c *cluster) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if c.account != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(c.account.uid), Gid: uint32(c.account.gid)}
	}
	return attr
}

// give hands a path over to the server's account.
func (c *cluster) give(path string) error {
	if c.account == nil {
		return nil
	}
	if err := os.Chown(path, c.account.uid, c.account.gid); err != nil {
		return fmt.Errorf("give %s to user %s: %w", path, c.account.name, err)
	}
	return nil
}

// environment is all that the server's programs get to see.
func (c *cluster) environment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "LANG=C", "TZ=UTC", "HOME=" + c.root}
}

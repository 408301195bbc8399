// Package fakenode is a node without an engine, for tests of what runs and watches nodes: a real
// process on a real socket, which checks assertions and answers the manager's actions. A test binary
// becomes one by calling Main first in TestMain. It serves no statements.
package fakenode

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/qod-io/qod/runtime/wire"
)

// Behaviours, named in the Database of a node's or task's Lake, separated by commas.
const (
	Stubborn = "stubborn" // ignores SIGTERM
	Crash    = "crash"    // ends at once with status 3, after saying why
	Unready  = "unready"  // answers, and is never ready unless told so
)

// Main runs the fake node and exits, if this process was started as `BIN node`; otherwise it returns.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != "node" {
		return
	}
	run := task
	if os.Args[2] == "--id" {
		run = node
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fake node:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

func readConfig[T any]() (T, error) {
	var v T
	f := os.NewFile(3, "config")
	defer f.Close()
	return v, json.NewDecoder(f).Decode(&v)
}

func node() error {
	config, err := readConfig[wire.NodeConfig]()
	if err != nil {
		return fmt.Errorf("read descriptor 3: %w", err)
	}
	does := strings.Split(config.Lake.Database, ",")
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	s, err := newServer(config)
	if err != nil {
		return err
	}
	for _, word := range does {
		switch word {
		case Crash:
			return fmt.Errorf("told to crash")
		case Unready:
			s.status.Ready = false
		case Stubborn:
			signal.Ignore(syscall.SIGTERM)
		}
	}
	probe := filepath.Join(config.TempDir, "probe")
	if err := os.WriteFile(probe, nil, 0o600); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(4, "listener"))
	if err != nil {
		return fmt.Errorf("use descriptor 4: %w", err)
	}
	server := grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
		MinTime: wire.KeepaliveTime / 2, PermitWithoutStream: true,
	}))
	flight.RegisterFlightServiceServer(server, s)
	go func() {
		<-terminated
		os.Exit(0)
	}()
	return server.Serve(listener)
}

// task plays `--init-lake` and `--load-tpch`: it leaves its flag as a file among the lake's data, and
// prints who it is.
func task() error {
	t, err := readConfig[wire.LakeTask]()
	if err != nil {
		return fmt.Errorf("read descriptor 3: %w", err)
	}
	if t.Lake.Database == Crash {
		return fmt.Errorf("cannot log in with password %s", t.Lake.Password)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir, "scratch"), nil, 0o600); err != nil {
		return err
	}
	name := filepath.Join(t.Lake.DataPath, strings.TrimPrefix(os.Args[2], "--"))
	if err := os.WriteFile(name, []byte(time.Now().String()), 0o600); err != nil {
		return err
	}
	fmt.Printf("uid %d, environment %d\n", os.Geteuid(), len(os.Environ()))
	return nil
}

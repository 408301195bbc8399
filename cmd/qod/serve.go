package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/runtime/edge"
	"github.com/qod-io/qod/runtime/wire"
)

func newServe(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Keep nodes as the store says, and route Arrow Flight SQL to them",
		Long: "serve keeps databases and nodes as the store says, and takes Arrow Flight SQL from clients. Nodes outlive it.\n" +
			"A second serve on the same host routes and never acts; it takes over when the first ends.",
		Example: "  qod serve\n  qod serve --detach\n  qod serve --flight-listen 127.0.0.1:0 --http-listen 127.0.0.1:0",
		Args:    noArguments,
	}
	detached := cmd.Flags().Bool("detach", false, "start in the background and return once it is healthy")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.paths.HAEnabled {
			return errors.New("QOD_HA_ENABLED: several managers need a runtime that every host reaches, and there is only the local one: leave it off")
		}
		if *detached {
			return a.detach(cmd.Context())
		}
		return a.serve(cmd.Context())
	}
	return cmd
}

// server is a running serve.
type server struct {
	*world
	directory *access.Holder
	history   *store.History
	audit     *store.AuditLog
	registry  *prometheus.Registry
	settled   atomic.Bool
	listening atomic.Bool
}

func (a *app) serve(ctx context.Context) error {
	start := time.Now()
	flight, err := net.Listen("tcp", a.paths.FlightListen)
	if err != nil {
		return fmt.Errorf("listen for Flight SQL: %w", err)
	}
	defer flight.Close() // the edge has closed it when all went well
	web, err := net.Listen("tcp", a.paths.HTTPListen)
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	defer web.Close()
	w, err := a.open(ctx, openOptions{create: true, log: a.log})
	if err != nil {
		return err
	}
	defer w.Close()
	s := &server{world: w, registry: prometheus.NewRegistry()}
	s.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	presence, err := w.paths.announce(flight.Addr(), web.Addr())
	if err != nil {
		return err
	}
	defer presence.withdraw()
	a.printf("Flight SQL on %s, HTTP on %s\n", flight.Addr(), web.Addr())
	a.log.Info("state is open", "took", time.Since(start))
	return s.run(ctx, flight, web, start)
}

// run runs every part until ctx ends or one of them fails: none dies alone.
func (s *server) run(ctx context.Context, flight, web net.Listener, start time.Time) error {
	directory, err := s.grants(ctx)
	if err != nil {
		return err
	}
	s.directory = access.NewHolder(directory)
	s.history = store.NewHistory(s.postgres, time.Duration(s.HistoryDays)*24*time.Hour, s.log)
	s.audit = store.NewAuditLog(s.postgres, time.Duration(s.AuditDays)*24*time.Hour, s.log)
	s.countDropped()
	front, serveWeb, err := s.fronts(ctx.Done())
	if err != nil {
		return err
	}
	loop, err := s.runtime.newLoop(s.registry, s.log)
	if err != nil {
		return err
	}
	s.runtime.loop, s.runtime.serving = loop, true
	g, ctx := errgroup.WithContext(ctx)
	run := func(name string, f func(context.Context) error) {
		g.Go(func() error {
			err := f(ctx)
			if ctx.Err() == nil {
				return fmt.Errorf("%s ended: %w", name, errors.Join(err, errUnexpected))
			}
			if err != nil && !errors.Is(err, ctx.Err()) {
				s.log.Warn("did not end well", "part", name, "error", err)
			}
			return nil
		})
	}
	run("grants", s.followGrants)
	run("outside steps", s.engine.Run)
	run("nodes", loop.Run)
	run("right to act", s.runtime.waitForRight)
	run("first pass", func(ctx context.Context) error {
		select {
		case <-loop.FirstPass():
			s.settled.Store(true)
			s.log.Info("first pass is done", "took", time.Since(start))
		case <-ctx.Done():
		}
		<-ctx.Done()
		return ctx.Err()
	})
	run("history", s.history.Run)
	run("audit", s.audit.Run)
	run("expiry", s.expireIdentity)
	run("HTTP", func(ctx context.Context) error { return serveWeb(ctx, web) })
	run("Flight SQL", func(ctx context.Context) error {
		// Until the nodes have been found, nobody knows where sessions are. Clients wait in the backlog.
		select {
		case <-loop.FirstPass():
		case <-ctx.Done():
			return ctx.Err()
		}
		s.listening.Store(true)
		defer s.listening.Store(false)
		return front.Run(ctx, flight)
	})
	err = g.Wait()
	s.log.Info("stopped")
	return err
}

var errUnexpected = errors.New("it was not told to end")

// certificate returns the operator's certificate, or the self-signed one of this state directory.
func (s *server) certificate() (*edge.Certificate, error) {
	cert, key := s.TLSCertFile, s.TLSKeyFile
	if cert == "" {
		hosts := []string{"localhost", "127.0.0.1", "::1"}
		if name, err := os.Hostname(); err == nil {
			hosts = append(hosts, name)
		}
		if err := os.MkdirAll(s.in("tls"), 0o700); err != nil {
			return nil, fmt.Errorf("make certificate: %w", err)
		}
		var err error
		if cert, key, err = edge.SelfSigned(s.in("tls"), hosts); err != nil {
			return nil, err
		}
	}
	return edge.LoadCertificate(cert, key, s.log)
}

// fronts returns what takes calls: Flight SQL, and a server of all that is HTTP, which lets go of who watches
// once ending is closed. They show the same certificate.
func (s *server) fronts(ending <-chan struct{}) (*edge.Edge, func(context.Context, net.Listener) error, error) {
	cert, err := s.certificate()
	if err != nil {
		return nil, nil, err
	}
	front, err := s.newEdge(cert)
	if err != nil {
		return nil, nil, err
	}
	rest, err := s.newREST(ending)
	if err != nil {
		return nil, nil, err
	}
	handler := api.Handler(api.Config{Ready: s.readiness, Gatherer: s.registry, REST: rest})
	return front, func(ctx context.Context, l net.Listener) error { return api.Run(ctx, l, handler, cert.WebConfig()) }, nil
}

func (s *server) newEdge(cert *edge.Certificate) (*edge.Edge, error) {
	return edge.New(edge.Config{
		Directory: s.directory, Fleet: s.fleet, Keyring: func() *wire.Keyring { return s.keyring }, Log: s.log,
		Certificate: cert, Record: s.record, Audit: s.note, Stale: s.staleGrants, Registerer: s.registry,
		BearerLife: time.Duration(s.SessionTTLSec) * time.Second, DrainLimit: s.drainLimit(),
	})
}

// newREST returns the handler of REST, which lets go of who watches once ending is closed.
func (s *server) newREST(ending <-chan struct{}) (*api.REST, error) {
	return api.NewREST(api.RESTConfig{
		Engine: s.engine, State: s.postgres, Directory: s.directory, Keyring: func() *wire.Keyring { return s.keyring },
		Stale: s.staleGrants, Note: s.audit.Add, Status: s.status, BearerLife: time.Duration(s.SessionTTLSec) * time.Second,
		Version: version, Log: s.log, Ending: ending,
	})
}

// status looks at the store and at all nodes.
func (s *server) status(ctx context.Context) (api.Status, error) {
	now, err := s.look(ctx)
	if err != nil {
		return api.Status{}, err
	}
	return now.document(s.serves()), nil
}

func (s *server) readiness() api.Readiness {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	alive := s.postgres.Ping(ctx) == nil
	return api.Readiness{
		Settled: s.settled.Load(), Edge: s.listening.Load(), Postgres: alive, Acting: s.runtime.acting(),
	}
}

// record turns what the edge saw of a statement into a row of history.
func (s *server) record(r edge.Record) { s.history.Add(store.Statement(r)) }

package node

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/qod-io/qod/runtime/wire"
)

// Names of session options.
const (
	optionCatalog = "catalog"
	optionSchema  = "schema"
	// optionLast is how the last finished statement of the session ended, as "ID STATUS ROWS": a client
	// whose call was cut reads its outcome here.
	optionLast = "qod.last_statement"
)

// SetSessionOptions sets the session's catalog, of which there is one, and its schema.
func (s *server) SetSessionOptions(ctx context.Context, request *flight.SetSessionOptionsRequest) (*flight.SetSessionOptionsResult, error) {
	c := callOf(ctx)
	c.say(wire.ClassKey, string(wire.Setting))
	failed := map[string]*flight.SetSessionOptionsResultError{}
	for name, value := range request.GetSessionOptions() {
		var err error
		switch name {
		case optionCatalog:
			if v := value.GetStringValue(); v != s.cfg.Lake.Name && v != "" {
				err = fmt.Errorf("no catalog %s", v)
			}
		case optionSchema:
			err = s.useSchema(ctx, c, value.GetStringValue())
			if err != nil && asFault(err).reason != "" && asFault(err).reason != wire.Denied {
				return nil, err // not the value's fault
			}
		default:
			failed[name] = &flight.SetSessionOptionsResultError{Value: flight.SetSessionOptionsResultErrorInvalidName}
			continue
		}
		if err != nil {
			failed[name] = &flight.SetSessionOptionsResultError{Value: flight.SetSessionOptionsResultErrorInvalidValue}
		}
	}
	return &flight.SetSessionOptionsResult{Errors: failed}, nil
}

// useSchema puts the session into a schema. The default one, while the session is in it, changes nothing.
func (s *server) useSchema(ctx context.Context, c *call, schema string) error {
	if schema == "" {
		schema = defaultSchema(s.cfg.Lake)
	}
	n, done := s.sessions.use(c)
	defer done()
	n.mu.Lock()
	there := n.main == nil && schema == defaultSchema(s.cfg.Lake)
	n.mu.Unlock()
	if there {
		return nil
	}
	lake := s.cfg.Lake
	lake.DefaultSchema = schema
	q, err := s.ask(ctx, c, home(lake), "", false)
	if err != nil {
		return err
	}
	_, err = s.once(ctx, c, n, q)
	return err
}

// GetSessionOptions tells the session's options. Clients call it to see whether the connection lives, so
// it makes no session.
func (s *server) GetSessionOptions(ctx context.Context, _ *flight.GetSessionOptionsRequest) (*flight.GetSessionOptionsResult, error) {
	c := callOf(ctx)
	schema, last := defaultSchema(s.cfg.Lake), ""
	if n := s.sessions.find(c.Session); n != nil {
		n.mu.Lock()
		if n.schema != "" {
			schema = n.schema
		}
		if n.last != nil {
			last = fmt.Sprintf("%s %s %d", n.last.id, n.last.status(), n.last.rows)
		}
		n.mu.Unlock()
	}
	options := map[string]any{optionCatalog: s.cfg.Lake.Name, optionSchema: schema, optionLast: last}
	values, err := flight.NewSessionOptionValues(options)
	if err != nil {
		return nil, err
	}
	return &flight.GetSessionOptionsResult{SessionOptions: values}, nil
}

// CloseSession ends what runs in the session, rolls back and forgets it. It may be called again.
func (s *server) CloseSession(ctx context.Context, _ *flight.CloseSessionRequest) (*flight.CloseSessionResult, error) {
	c := callOf(ctx)
	s.running.cancelAll(c.Session, cancelled{"the session was closed"})
	s.closeLanes(ctx, s.sessions.remove(c.Session))
	return &flight.CloseSessionResult{Status: flight.CloseSessionResultClosed}, nil
}

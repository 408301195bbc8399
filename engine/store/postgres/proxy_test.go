package postgres_test

import (
	"bytes"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// proxy stands between a store and the server, and fails as networks and clients do.
type proxy struct {
	url      string
	listener net.Listener
	network  string
	address  string
	frozen   chan struct{} // receives when freezeAt's text was seen

	mu      sync.Mutex
	away    bool   // connections are refused
	drop    []byte // once the client sent this, it never gets another answer, and the connection breaks
	freeze  []byte // once the client sent this, nothing passes any more until thaw
	thawed  chan struct{}
	dropped int
	refused int
	conns   map[net.Conn]bool
	group   sync.WaitGroup
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	config, err := pgx.ParseConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, frozen: make(chan struct{}, 1), thawed: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.network, p.address = pgNetwork(config)
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Host, u.RawQuery = listener.Addr().String(), url.Values{"sslmode": {"disable"}}.Encode()
	p.url = u.String()
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.thaw()
		p.cut(true)
		p.group.Wait()
	})
	return p
}

func pgNetwork(config *pgx.ConnConfig) (network, address string) {
	if config.Host[0] == '/' {
		return "unix", config.Host + "/.s.PGSQL." + strconv.Itoa(int(config.Port))
	}
	return "tcp", net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial(p.network, p.address)
		p.mu.Lock()
		if err != nil || p.away {
			p.refused++
			p.mu.Unlock()
			_ = client.Close()
			if server != nil {
				_ = server.Close()
			}
			continue
		}
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.group.Go(func() { p.up(client, server) })
		p.group.Go(func() { p.down(client, server) })
	}
}

// up passes what the client sends.
func (p *proxy) up(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		drop := p.drop != nil && bytes.Contains(buf[:n], p.drop)
		freeze := p.freeze != nil && bytes.Contains(buf[:n], p.freeze)
		if drop {
			p.drop = nil
			p.dropped++
		}
		if freeze {
			p.freeze = nil
		}
		p.mu.Unlock()
		if drop {
			_ = client.Close() // the answer finds nobody
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if drop {
			return // the server reads what it was sent before it sees the end
		}
		if freeze {
			p.frozen <- struct{}{}
			<-p.thawed
		}
	}
}

func (p *proxy) down(client, server net.Conn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := server.Read(buf)
		if err != nil {
			_ = client.Close()
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut breaks all connections, and refuses new ones if the server is to be away.
func (p *proxy) cut(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.conns)
}

func (p *proxy) dropAnswerTo(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop = []byte(text)
}

func (p *proxy) drops() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

func (p *proxy) refusals() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

func (p *proxy) freezeAt(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeze = []byte(text)
}

func (p *proxy) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
	default:
		close(p.thawed)
	}
}

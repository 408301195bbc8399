package test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A token does on a server what its owner may do, and one to read only changes nothing.
func TestRemoteRights(t *testing.T) {
	i := install(t, "")
	i.write(t, remoteFiles)
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	server := "https://" + s.HTTP
	reader := i.away(t, server, i.token(t, "admin", "--read-only"))
	reader.must(t, "plan", "--var", "name=Other")
	reader.refuses(t, "read-only", "apply", "--auto-approve", "--var", "name=Other")
	reader.refuses(t, "read-only", "state", "mv", "role.analyst", "role.other")
	ana := i.away(t, server, i.token(t, "acme/ana"))
	ana.refuses(t, "outside of your tenant", "plan")
	ana.refuses(t, "outside of your tenant", "destroy", "--auto-approve")
	ana.refuses(t, "for system administrators", "history")
	ana.writes(t, "role \"r\" {\n  tenant = \"acme\"\n}\ntenant \"more\" {}\nrole \"s\" {\n  tenant = \"globex\"\n}\n")
	ana.refuses(t, "Only a system administrator may do that", "apply", "--auto-approve")
	ana.writes(t, "role \"r\" {\n  tenant = \"acme\"\n}\n")
	ana.must(t, "apply", "--auto-approve")
	if out := ana.must(t, "export"); !strings.Contains(out, `role "r"`) || strings.Contains(out, "globex") {
		t.Errorf("export: %s", out)
	}
	saved := filepath.Join(i.root, "theirs.qodplan")
	i.must(t, "plan", "--var", "name=Other", "--out", saved)
	ana.refuses(t, "outside of your tenant", "apply", saved)
	ana.refuses(t, "only a system administrator may adopt", "apply", "--auto-approve", "--adopt-stack")
	ana.must(t, "destroy", "--auto-approve")
	nobody := i.away(t, server, "qodp_none_none")
	nobody.refuses(t, "qod login", "plan")
	if out := i.must(t, "show"); !strings.Contains(out, `"Acme"`) {
		t.Errorf("something was changed: %s", out)
	}
}

// writes replaces the configuration by one of the stack "mine".
func (a *afar) writes(t *testing.T, src string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.dir, "main.qod.hcl"), []byte("qod {\n  stack = \"mine\"\n}\n"+src), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What login keeps lets in, and only its owner reads it.
func TestLogin(t *testing.T) {
	i := install(t, "")
	i.write(t, remoteFiles)
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	a := i.away(t, "https://"+s.HTTP, "")
	a.refuses(t, "qod login --server", "plan")
	a.refuses(t, "log in at", "login", "--user", "admin", "--password-file", a.secretFile(t, "wrong"))
	a.refuses(t, "give --user", "login")
	if out := a.must(t, "login", "--user", "admin", "--password-file", a.secretFile(t, secrets["admin"])); !strings.Contains(out, "as admin, until ") {
		t.Errorf("login: %s", out)
	}
	kept := filepath.Join(a.dir, ".config", "qod", "credentials.json")
	info, err := os.Stat(kept)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("credentials: %v, %v", info, err)
	}
	a.must(t, "plan")
	if err := os.Chmod(kept, 0o644); err != nil {
		t.Fatal(err)
	}
	a.refuses(t, "others can read", "plan")
	if err := os.Chmod(kept, 0o600); err != nil {
		t.Fatal(err)
	}
	a.must(t, "logout")
	a.refuses(t, "qod login --server", "plan")
	token := i.token(t, "admin", "--read-only")
	if out, errs, code := a.run(t, token+"\n", "login", "--token-stdin"); code != 0 || !strings.Contains(out, "to read only") {
		t.Errorf("login --token-stdin: %d %s%s", code, out, errs)
	}
	a.must(t, "plan")
	a.hidesAll(t, token)
	i.must(t, "down")
	a.refuses(t, "server https://", "plan")
}

func (a *afar) secretFile(t *testing.T, secret string) string {
	t.Helper()
	name := filepath.Join(a.dir, "password")
	if err := os.WriteFile(name, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A connection that breaks in the middle leaves nothing half-done, and the message says how to see what is.
func TestRemoteConnectionBreaks(t *testing.T) {
	i := install(t, "")
	i.write(t, remoteFiles)
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	token := i.token(t, "admin")
	for _, row := range []struct{ name, at, words string }{
		{"after the commit", "event: committed\ndata: {}\n\n", "after the plan was committed"},
		{"before a word", "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/event-stream", "committed as a whole or not at all"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := i.away(t, "http://"+breaking(t, s.HTTP, row.at), token)
			a.refuses(t, row.words, "apply", "--auto-approve", "--var", "name="+row.name)
			if out := i.must(t, "show"); !strings.Contains(out, row.name) {
				t.Errorf("the plan was not committed: %s", out)
			}
			i.expect(t, 0, nil, "plan", "--detailed-exitcode", "--var", "name="+row.name)
		})
	}
}

// breaking forwards connections, and closes each once an answer has the words: the client gets what is before them,
// and, where they are an event, the event.
func breaking(t *testing.T, to, words string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			forward(conn, to, words)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

// forward serves one connection to its end: clients of the test make one after the other.
func forward(conn net.Conn, to, words string) {
	defer conn.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		bytesTo(server, conn, "")
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	bytesTo(conn, server, words)
	conn.Close()
	<-done
}

// bytesTo copies until the words were met, and those only where they are an event.
func bytesTo(to, from net.Conn, words string) {
	var all []byte
	sent := 0
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		all = append(all, buffer[:n]...)
		end, at := len(all), bytes.Index(all, []byte(words))
		met := words != "" && at >= 0
		if met && strings.HasPrefix(words, "event:") {
			end = at + len(words)
		} else if met {
			end = sent
		}
		if _, failed := to.Write(all[sent:end]); failed != nil || err != nil || met {
			return
		}
		sent = end
	}
}

// An apply from afar waits until the server has brought databases and nodes after it, and stops to listen when it is told to.
func TestRemoteApplyIsFollowed(t *testing.T) {
	i := install(t, "quickstart")
	s := i.serve(t)
	a := i.away(t, "https://"+s.HTTP, i.token(t, "admin"))
	out := a.must(t, "apply", "--auto-approve")
	for _, want := range []string{"Committed.", "tenant_db.acme/tpch: not provisioned yet", "Apply complete: "} {
		if !strings.Contains(out, want) {
			t.Errorf("apply does not say %q:\n%s", want, out)
		}
	}
	if out := a.must(t, "plan", "--detailed-exitcode"); !strings.Contains(out, "No changes.") {
		t.Errorf("plan: %s", out)
	}
	if out := a.must(t, "status"); !strings.Contains(out, "pool.acme/bi: 2 of 2 nodes serving") || !strings.Contains(out, s.HTTP) {
		t.Errorf("status: %s", out)
	}
	old := i.nodePIDs(t)
	if out := a.must(t, "restart", "pool.acme/bi"); !strings.Contains(out, "All nodes are new.") {
		t.Errorf("restart: %s", out)
	}
	i.replaced(t, old)
	a.must(t, "destroy", "--auto-approve")
	there := &installation{name: i.name, dir: a.dir, root: i.root, bin: i.bin, env: a.env}
	p := there.start(t, "apply", "--auto-approve")
	p.until(t, "not provisioned yet")
	p.interrupt(t)
	if code, out := p.ends(t); code != 1 || !strings.Contains(out, "committed, not converged:") || !strings.Contains(out, "run qod apply again") {
		t.Errorf("interrupted: exit code %d\n%s", code, out)
	}
	a.must(t, "wait", "--timeout", "60s")
	a.must(t, "destroy", "--auto-approve")
	a.hidesAll(t)
}

package test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// common is an installation of the quickstart, applied, loaded and served, for tests that only read or
// clean up after themselves. The user "reader" may see a part of the tables in its schema "shop".
var common struct {
	sync.Mutex
	*installation
	serving serving
}

func TestMain(m *testing.M) {
	code := m.Run()
	if common.installation != nil {
		code = max(code, purgeCommon())
	}
	os.Exit(code)
}

// purgeCommon runs outside of any test, so it reports by its result.
func purgeCommon() int {
	cmd := common.command(contextBackground(), "down", "--purge")
	if out, err := cmd.CombinedOutput(); err != nil {
		os.Stderr.Write(out)
		return 1
	}
	if err := os.RemoveAll(common.root); err != nil {
		return 1
	}
	return 0
}

// shared returns the common installation.
func shared(t testing.TB) (*installation, serving) {
	t.Helper()
	common.Lock()
	defer common.Unlock()
	if common.installation != nil {
		return common.installation, common.serving
	}
	root, err := os.MkdirTemp("", "qod-shared")
	if err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t, root, "quickstart")
	common.installation = i
	i.init(t)
	i.writeFile(t, "reader.qod.hcl", readFile(t, "testdata/clients/reader.qod.hcl"))
	i.must(t, "apply", "--auto-approve")
	common.serving = i.serve(t)
	i.must(t, "load", "tpch", "--sf", "0.1", "acme/tpch")
	i.login(t, common.serving.Flight, "loader").runFile(t, "testdata/clients/shop.sql")
	return i, common.serving
}

// certificate is the one that the installation's serve made.
func (i *installation) certificate() string { return i.state("tls", "edge.crt") }

// clientEnv is what the suites of other languages read.
func (i *installation) clientEnv(address, user string) []string {
	return append(os.Environ(),
		"QOD_URI=grpc+tls://"+address, "QOD_ADDRESS="+address, "QOD_USER="+user+"@acme/bi",
		"QOD_SECRET="+secrets[user+"_password"], "QOD_CA="+i.certificate(), "QOD_Q1="+filepath.Join(i.dir, "q1.sql"))
}

package catalog_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// host stands for DuckDB, which this package must not link: it makes the two tables of a DuckLake that the
// catalog looks at, as the lake's own role, which shows that the role may. What a real lake needs beyond
// that is tested where DuckDB is.
type host struct {
	root  string
	inits atomic.Int32
	fail  error // of InitLake, after half of its work
}

func (h *host) DataPath(id string) string { return filepath.Join(h.root, id) }

func (h *host) DataExists(_ context.Context, id string) (bool, error) {
	_, err := os.Stat(h.DataPath(id))
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

func (h *host) RemoveData(_ context.Context, id string) error { return os.RemoveAll(h.DataPath(id)) }

func (h *host) InitLake(ctx context.Context, lake catalog.Lake) error {
	h.inits.Add(1)
	if err := os.MkdirAll(lake.DataPath, 0o700); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, lakeURL(lake))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS public.ducklake_metadata (key text NOT NULL, value text NOT NULL)`)
	if err != nil || h.fail != nil {
		return h.fail
	}
	_, err = conn.Exec(ctx, `CREATE TABLE IF NOT EXISTS public.ducklake_schema (schema_id bigint, schema_name text, end_snapshot bigint)`)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "INSERT INTO public.ducklake_schema VALUES (0, $1, NULL)", lake.DefaultSchema)
	return err
}

func lakeURL(lake catalog.Lake) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(lake.User, lake.Password), Path: "/" + lake.Database,
		RawQuery: url.Values{"host": {lake.Host}, "port": {strconv.Itoa(lake.Port)}}.Encode(),
	}
	return u.String()
}

// lake is one tenant_db of a test with its surroundings.
type lake struct {
	t        *testing.T
	admin    string // URL
	host     *host
	object   store.Object
	password []byte
}

func newLake(t *testing.T) *lake {
	t.Helper()
	return lakeBy(t, pgtest.Server(t).URL("postgres"))
}

func lakeBy(t *testing.T, admin string) *lake {
	t.Helper()
	l := &lake{t: t, admin: admin, host: &host{root: t.TempDir()}, object: object(t, uuid.NewString(), "sales", "main")}
	secrets, err := l.catalog().Secrets()
	if err != nil {
		t.Fatal(err)
	}
	l.password = secrets[catalog.PasswordAttr]
	t.Cleanup(func() {
		if err := l.catalog().Delete(context.Background(), l.object); err != nil {
			t.Error(err)
		}
	})
	return l
}

func object(t *testing.T, id, name, defaultSchema string) store.Object {
	t.Helper()
	kind, ok := schema.Lookup("tenant_db")
	if !ok {
		t.Fatal("there is no kind tenant_db")
	}
	attrs := kind.Empty().AsValueMap()
	attrs["tenant"], attrs["name"], attrs["kind"] = cty.StringVal("acme"), cty.StringVal(name), cty.StringVal("ducklake")
	attrs["default_schema"] = cty.StringVal(defaultSchema)
	return store.Object{ID: id, Kind: kind, Spec: cty.ObjectVal(attrs)}
}

// catalog returns a new Catalog each time, as another process would have it.
func (l *lake) catalog() *catalog.Catalog {
	l.t.Helper()
	c, err := catalog.New(catalog.Config{Admin: l.admin, Host: l.host})
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *lake) secret(string) ([]byte, error) { return l.password, nil }

func (l *lake) tryCreate() error { return l.catalog().Create(l.t.Context(), l.object, l.secret) }

func (l *lake) create() {
	l.t.Helper()
	if err := l.tryCreate(); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lake) delete() {
	l.t.Helper()
	if err := l.catalog().Delete(l.t.Context(), l.object); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lake) missing() []string {
	l.t.Helper()
	all, err := l.catalog().Observe(l.t.Context(), []store.Object{l.object})
	if err != nil {
		l.t.Fatal(err)
	}
	return all[l.object.ID]
}

// of returns how the lake is attached.
func (l *lake) of() catalog.Lake {
	l.t.Helper()
	of, err := l.catalog().LakeOf(l.object, l.password)
	if err != nil {
		l.t.Fatal(err)
	}
	return of
}

func (l *lake) name() string { return l.of().Database }

// connect opens a connection that ends with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.WithoutCancel(t.Context()), url) // cleanups connect, too
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func sql(t *testing.T, url string, statements ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn := connect(t, url)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func ask[T any](t *testing.T, url, query string, args ...any) T {
	t.Helper()
	var answer T
	conn := connect(t, url)
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

package main

import (
	"fmt"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/spf13/pflag"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Settings are all that qod can be told beside its configuration. Each has a flag (--state-dir), an
// environment variable (QOD_STATE_DIR), an attribute of the server file (state_dir) and a default; the
// first that is given counts. The tag says name, default and documentation.
type Settings struct {
	StateDir       string `name:"state_dir" doc:"Directory of everything qod keeps on this host. Default: a directory of its own for each working directory, under $XDG_STATE_HOME/qod, or /var/lib/qod for root."`
	RunDir         string `name:"run_dir" doc:"Directory of sockets. Default: a short one made from the state directory's name."`
	DatabaseURL    string `name:"database_url" secret:"true" doc:"URL of the Postgres that keeps the state, of a role that may create databases and roles. Default: a private Postgres in the state directory."`
	PostgresBin    string `name:"postgres_bin" doc:"Directory of initdb and postgres for the private Postgres. Default: searched, else fetched once."`
	ExtensionDir   string `name:"extension_dir" doc:"Directory of DuckDB's extensions. Default: extensions in the state directory."`
	DataRoot       string `name:"data_root" doc:"Directory under which each database has its data. Default: data in the state directory."`
	MasterKeyFile  string `name:"master_key_file" doc:"File of the key that seals secrets, made at first use. Keep a copy apart from that of Postgres. Default: master.key in the state directory."`
	AdminPassword  string `name:"admin_password" secret:"true" doc:"Password of the first system administrator. Default: generated into the state directory."`
	FlightListen   string `name:"flight_listen" default:"0.0.0.0:31338" check:"address" doc:"Address for Arrow Flight SQL. Port 0 takes a free one and prints it."`
	HTTPListen     string `name:"http_listen" default:"0.0.0.0:20900" check:"address" doc:"Address for REST, /health, /ready, /live and /metrics: HTTPS, and HTTP in clear. REST in clear is for loopback only."`
	TLSCertFile    string `name:"tls_cert_file" doc:"Certificate chain for Flight SQL and HTTPS, PEM. Default: a self-signed one, made once and kept."`
	TLSKeyFile     string `name:"tls_key_file" doc:"Private key of the certificate, PEM."`
	ReconcileSec   int    `name:"reconcile_interval_sec" default:"30" check:"0-86400" doc:"Seconds between passes over all pools when nothing changes. 0: only at start and on changes."`
	HealthCheckSec int    `name:"health_check_interval_sec" default:"5" check:"1-3600" doc:"Seconds between probes of a node."`
	DrainSec       int    `name:"drain_timeout_sec" default:"60" check:"0-86400" doc:"Seconds that statements may go on when a node or serve is to stop."`
	SessionTTLSec  int    `name:"session_ttl_sec" default:"86400" check:"60-31536000" doc:"Seconds after which a session's token expires."`
	HistoryDays    int    `name:"history_retention_days" default:"7" check:"1-3650" doc:"Days that the history of statements is kept."`
	AuditDays      int    `name:"audit_retention_days" default:"90" check:"1-3650" doc:"Days that the audit of logins, refusals and revocations is kept."`
	StaleSec       int    `name:"stale_grants_sec" default:"60" check:"0-86400" doc:"Seconds without an answer of the store after which a serve that does not act refuses the statements of all but administrators. 0: never."`
	StaleActing    bool   `name:"stale_grants_acting" default:"false" doc:"Hold the serve that acts to stale_grants_sec too. By default it goes on: nobody else could have changed anything on a single host."`
	NodeUIDBase    int    `name:"node_uid_base" default:"61000" check:"1000-2000000000" doc:"First user id for nodes when qod runs as root. Each database has one of its own."`
	HAEnabled      bool   `name:"ha_enabled" default:"false" doc:"Several managers on several hosts. Not possible with the local runtime, and refused at start."`
	Server         string `name:"server" doc:"URL of the qod serve whose state commands are about, as https://qod.example.com:20900. Default: the state on this host."`
	ServerCA       string `name:"server_ca" doc:"File with the certificates, PEM, that the server's must go back to. Default: the one that qod login was given, else those of the system."`
	Token          string `name:"token" secret:"true" doc:"Token for the server. Default: what qod login keeps."`
	LogLevel       string `name:"log_level" default:"info" check:"debug|info|warn|error" doc:"Least level that is logged."`

	sources map[string]string
}

// setting is one field of Settings.
type setting struct {
	Name, Default, Check, Doc string
	Secret                    bool
	index                     int
}

// Env is the setting's environment variable.
func (s setting) Env() string { return "QOD_" + strings.ToUpper(s.Name) }

// Flag is the setting's flag, without dashes.
func (s setting) Flag() string { return strings.ReplaceAll(s.Name, "_", "-") }

func settingList() []setting {
	t := reflect.TypeFor[Settings]()
	var list []setting
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if tag.Get("name") == "" {
			continue
		}
		list = append(list, setting{
			Name: tag.Get("name"), Default: tag.Get("default"), Check: tag.Get("check"), Doc: tag.Get("doc"),
			Secret: tag.Get("secret") == "true", index: i,
		})
	}
	return list
}

// addFlags declares a flag for each setting that is no secret: arguments can be read by everybody.
func addFlags(flags *pflag.FlagSet) {
	for _, s := range settingList() {
		if !s.Secret {
			flags.String(s.Flag(), s.Default, s.Doc)
		}
	}
}

// loadSettings reads the settings: flag, environment, server file, default.
func loadSettings(flags *pflag.FlagSet, env func(string) (string, bool), file string) (*Settings, error) {
	fromFile, err := readServerFile(file)
	if err != nil {
		return nil, err
	}
	out := &Settings{sources: map[string]string{}}
	v := reflect.ValueOf(out).Elem()
	for _, s := range settingList() {
		text, source, where := s.Default, "default", ""
		if value, ok := fromFile[s.Name]; ok {
			text, source, where = value, file, s.Name+" in "+file
		}
		if value, ok := env(s.Env()); ok && value != "" {
			text, source, where = value, "environment", s.Env()
		}
		if flag := flags.Lookup(s.Flag()); flag != nil && flag.Changed {
			text, source, where = flag.Value.String(), "flag", "--"+s.Flag()
		}
		if err := s.set(v.Field(s.index), text); err != nil {
			shown := text
			if s.Secret {
				shown = "(secret)"
			}
			return nil, fmt.Errorf("%s=%s: %w", where, shown, err)
		}
		out.sources[s.Name] = source
	}
	if (out.TLSCertFile == "") != (out.TLSKeyFile == "") {
		return nil, fmt.Errorf("tls_cert_file and tls_key_file go together: one is missing")
	}
	return out, nil
}

func (s setting) set(field reflect.Value, text string) error {
	switch field.Kind() {
	case reflect.String:
		if err := s.checkText(text); err != nil {
			return err
		}
		field.SetString(text)
	case reflect.Int:
		n, err := strconv.Atoi(text)
		low, high, _ := strings.Cut(s.Check, "-")
		least, _ := strconv.Atoi(low) // the tags are tested
		most, _ := strconv.Atoi(high)
		if err != nil || n < least || n > most {
			return fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		field.SetInt(int64(n))
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		field.SetBool(b)
	default:
		return fmt.Errorf("setting has an unknown type")
	}
	return nil
}

func (s setting) checkText(text string) error {
	switch {
	case s.Check == "":
		return nil
	case s.Check == "address":
		if _, _, err := net.SplitHostPort(text); err != nil {
			return fmt.Errorf("want HOST:PORT, as in 0.0.0.0:31338")
		}
		return nil
	}
	for _, choice := range strings.Split(s.Check, "|") {
		if text == choice {
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.ReplaceAll(s.Check, "|", ", "))
}

// readServerFile reads the attributes of a server file. Unknown ones are refused with their place.
func readServerFile(path string) (map[string]string, error) {
	if path == "" {
		return nil, nil
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read server file: %w", err)
	}
	f, diags := hclparse.NewParser().ParseHCL(src, path)
	if diags.HasErrors() {
		return nil, diags
	}
	body := &hcl.BodySchema{}
	for _, s := range settingList() {
		body.Attributes = append(body.Attributes, hcl.AttributeSchema{Name: s.Name})
	}
	content, diags := f.Body.Content(body)
	out := map[string]string{}
	for name, attr := range content.Attributes {
		v, more := attr.Expr.Value(nil)
		if more.HasErrors() {
			return nil, append(diags, more...)
		}
		text, err := convert.Convert(v, cty.String)
		if err != nil || text.IsNull() {
			return nil, fmt.Errorf("%s: %s must be a plain value", attr.Range, name)
		}
		out[name] = text.AsString()
	}
	if diags.HasErrors() {
		return nil, diags
	}
	return out, nil
}

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the derived files")

func TestSettingsPageIsCurrent(t *testing.T) {
	const path = "../../docs/reference/settings.md"
	want := settingsPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), want); diff != "" {
		t.Errorf("settings.md differs (-file +settings); run: make docs\n%s", diff)
	}
}

func settingsPage() string {
	out := &strings.Builder{}
	out.WriteString("# Settings\n\nA flag wins over an environment variable, that over the file of `--config`, that over the default.\n" +
		"An invalid value ends the command and names the variable. `qod config` prints what is in force, and from where.\n\n" +
		"| variable | flag | default | meaning |\n|---|---|---|---|\n")
	for _, s := range settingList() {
		flag, value := "`--"+s.Flag()+"`", s.Default
		if s.Secret {
			flag = ""
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", s.Env(), flag, value, s.Doc)
	}
	return out.String()
}

func TestSettingsPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.hcl")
	if err := os.WriteFile(file, []byte("drain_timeout_sec = 7\nhistory_retention_days = 3\nlog_level = \"warn\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("qod", pflag.ContinueOnError)
	addFlags(flags)
	if err := flags.Parse([]string{"--log-level", "debug"}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"QOD_HISTORY_RETENTION_DAYS": "5", "QOD_LOG_LEVEL": "error"}
	s, err := loadSettings(flags, lookup(env), file)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{s.DrainSec, s.HistoryDays, s.LogLevel, s.ReconcileSec}
	if diff := cmp.Diff([]any{7, 5, "debug", 30}, got); diff != "" {
		t.Error(diff)
	}
	if s.sources["history_retention_days"] != "environment" || s.sources["drain_timeout_sec"] != file {
		t.Errorf("sources: %v", s.sources)
	}
}

func TestInvalidSettingsAreNamed(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want string
	}{
		"number":  {map[string]string{"QOD_DRAIN_TIMEOUT_SEC": "soon"}, "QOD_DRAIN_TIMEOUT_SEC=soon: want a whole number from 0 to 86400"},
		"range":   {map[string]string{"QOD_HEALTH_CHECK_INTERVAL_SEC": "0"}, "QOD_HEALTH_CHECK_INTERVAL_SEC=0: want a whole number from 1 to 3600"},
		"bool":    {map[string]string{"QOD_HA_ENABLED": "maybe"}, "QOD_HA_ENABLED=maybe: want true or false"},
		"address": {map[string]string{"QOD_FLIGHT_LISTEN": "here"}, "QOD_FLIGHT_LISTEN=here: want HOST:PORT, as in 0.0.0.0:31338"},
		"choice":  {map[string]string{"QOD_LOG_LEVEL": "loud"}, "QOD_LOG_LEVEL=loud: want one of debug, info, warn, error"},
		"pair":    {map[string]string{"QOD_TLS_CERT_FILE": "x"}, "tls_cert_file and tls_key_file go together: one is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("qod", pflag.ContinueOnError)
			addFlags(flags)
			_, err := loadSettings(flags, lookup(tt.env), "")
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// Every number has its bounds, and every default passes its own check.
func TestSettingsAreWellFormed(t *testing.T) {
	v := reflect.ValueOf(&Settings{}).Elem()
	for _, s := range settingList() {
		if s.Doc == "" {
			t.Errorf("%s has no documentation", s.Name)
		}
		if err := s.set(v.Field(s.index), s.Default); err != nil && s.Default != "" {
			t.Errorf("%s: default %q: %v", s.Name, s.Default, err)
		}
		if v.Field(s.index).Kind() == reflect.Int && !strings.Contains(s.Check, "-") {
			t.Errorf("%s has no bounds", s.Name)
		}
	}
}

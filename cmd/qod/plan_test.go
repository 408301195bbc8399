package main

import (
	"os"
	"strings"
	"testing"
)

// A plan reads its store while it evaluates the configuration. What is wrong with the configuration is all
// that is said then, whatever is wrong with the store.
func TestConfigurationErrorsAloneAndFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		file, want string
		alone      bool
	}{
		"bad configuration":  {small + "tennant \"acme\" {}\n", "tennant", true},
		"good configuration": {small, "open state", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("QOD_STATE_DIR", dir+"/state")
			t.Setenv("QOD_DATABASE_URL", "postgres://nobody:none@127.0.0.1:1/none?connect_timeout=1")
			if err := os.WriteFile("main.qod.hcl", []byte(tt.file), 0o644); err != nil {
				t.Fatal(err)
			}
			code, out := command(t, "", "plan")
			if code != 1 || !strings.Contains(out, tt.want) {
				t.Errorf("exit code %d, want 1, with %q:\n%s", code, tt.want, out)
			}
			if tt.alone && strings.Contains(out, "state") {
				t.Errorf("not alone:\n%s", out)
			}
		})
	}
}

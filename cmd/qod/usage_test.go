package main

import (
	"strings"
	"testing"
)

// A command line that is wrong is not repeated where it may have the value of a variable.
func TestUsageShowsNoSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("QOD_STATE_DIR", t.TempDir())
	tests := map[string]struct {
		args []string
		want string
	}{
		"no equals sign": {[]string{"plan", "--var", "pw:hunter2"}, "--var: want NAME=VALUE"},
		"one dash":       {[]string{"plan", "-var", "pw:hunter2"}, "--var: want NAME=VALUE"},
		"no such flag":   {[]string{"plan", "--password=hunter2"}, "unknown flag --password"},
		"no such short":  {[]string{"apply", "-password=hunter2"}, "unknown flag -password"},
		"no quotes":      {[]string{"plan", "--var", "pw=my", "hunter2"}, "a value that has spaces needs quotes"},
		"undeclared":     {[]string{"validate", "--var", "pw=hunter2"}, "No configuration files"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, out := command(t, "", tt.args...)
			if code != 1 || !strings.Contains(out, tt.want) || strings.Contains(out, "hunter2") {
				t.Errorf("exit code %d, want %q:\n%s", code, tt.want, out)
			}
		})
	}
}

package api_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What schemathesis makes of the description, good and bad, is answered as the description says.
func TestAnswersAreAsDescribed(t *testing.T) {
	python := os.Getenv("QOD_TEST_PYTHON")
	if python == "" {
		t.Fatal("QOD_TEST_PYTHON is not set: run the tests by make test, which fetches what they need")
	}
	s := newSite(t)
	s.estate("acme")
	// A bearer: guesses at the password, which the tool makes too, would soon have the password itself wait.
	bearer := s.bearer(`{"user":"root","password":"` + secret + `"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(python), "st"), "run", s.url+"/openapi.json",
		"--url", s.url, "-H", "Authorization: "+bearer, "--exclude-path", "/watch", "--checks", "all",
		"--exclude-checks", "positive_data_acceptance", // the checks of kinds are stricter than their types
		"--phases", "examples,coverage,fuzzing", "--max-examples", "8", "--seed", "1", "--max-time", "80",
		"--workers", "1", // two threads at once make the parser of Python 3.11 fail
		"--continue-on-failure", "--request-timeout", "20", "--no-shrink", "--suppress-health-check", "all")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "COLUMNS=160")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("schemathesis: %v\n%s", err, strings.ToValidUTF8(string(out), "?"))
	}
	snap, err := s.store.Snapshot(t.Context())
	if err != nil || snap.Revision < 10 {
		t.Errorf("nothing was written: %v", err)
	}
}

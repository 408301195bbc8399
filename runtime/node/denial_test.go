package node

import (
	"encoding/json"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// The edge learns from the trailer why the guard refused, and only then.
func TestDenialInTheTrailer(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	_, err := c.Execute(t.Context(), "SELECT * FROM read_csv('/etc/passwd')")
	c.wantCode(err, codes.PermissionDenied, wire.Denied)
	var denial wire.Denial
	if err := json.Unmarshal([]byte(c.trailer(wire.DeniedKey)), &denial); err != nil || denial.Code != string(guard.BadFunction) {
		t.Errorf("denial %+v, %v", denial, err)
	}
	if _, err = c.Execute(t.Context(), "SELECT no_such_column"); err == nil {
		t.Fatal("a column that does not exist was read")
	}
	if got := c.trailer(wire.DeniedKey); got != "" {
		t.Errorf("an error of the engine has the denial %s", got)
	}
}

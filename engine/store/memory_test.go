package store_test

import (
	"bytes"
	"testing"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
)

func TestMemory(t *testing.T) {
	sealer, err := store.NewSealer(bytes.Repeat([]byte{7}, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, func(*testing.T) storetest.Bundle {
		m := store.NewMemory(sealer)
		return storetest.Bundle{Store: m, Applies: m, Nodes: m, Keys: m, Statements: m, Tokens: m, Revocations: m, Audit: m, Sealer: sealer}
	})
}

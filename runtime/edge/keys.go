package edge

import (
	"sync"

	"github.com/qod-io/qod/runtime/wire"
)

// poolKeys remembers the keyrings of pools, which are derived from the cluster's.
type poolKeys struct {
	mu      sync.Mutex
	cluster *wire.Keyring // of which the derived ones are
	derived map[string]*wire.Keyring
}

func (k *poolKeys) pool(cluster *wire.Keyring, id string) (*wire.Keyring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cluster != cluster {
		k.cluster, k.derived = cluster, map[string]*wire.Keyring{}
	}
	if r, ok := k.derived[id]; ok {
		return r, nil
	}
	r, err := cluster.Pool(id)
	if err != nil {
		return nil, err
	}
	k.derived[id] = r
	return r, nil
}

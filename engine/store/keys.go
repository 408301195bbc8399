package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"
)

// clusterKeySize is the size of a cluster key in bytes.
const clusterKeySize = 32

// OpenKey is a key of the cluster in clear.
type OpenKey struct {
	ID  int
	Key []byte
}

// ClusterKeys returns the cluster's keys, newest first. Where there is none and create is true it makes
// the first; of several that do so at the same time, all get the same.
func ClusterKeys(ctx context.Context, keys Keys, s *Sealer, create bool) ([]OpenKey, error) {
	rows, err := keys.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list cluster keys: %w", err)
	}
	if len(rows) == 0 && create {
		secret := make([]byte, clusterKeySize)
		rand.Read(secret)
		rows, err = keys.AddKey(ctx, Key{ID: 1, Sealed: s.Seal(clusterKey(1), secret), Created: time.Now()})
		if err != nil {
			return nil, fmt.Errorf("make cluster key: %w", err)
		}
	}
	open := make([]OpenKey, len(rows))
	for i, row := range rows {
		open[i].ID = row.ID
		if open[i].Key, err = s.Open(clusterKey(row.ID), row.Sealed); err != nil {
			return nil, fmt.Errorf("open cluster key %d: %w", row.ID, err)
		}
	}
	return open, nil
}

func clusterKey(id int) SecretKey { return SecretKey{Object: "cluster", Attr: fmt.Sprint(id)} }

package local

import (
	"context"
	"os"
	"sync"

	"github.com/qod-io/qod/runtime/backend"
)

// Exits calls exited with the id of each node whose process ends, one after the other, until ctx ends.
// Nodes that had ended before and left remains are told first. It sees the nodes that existed when it
// was called and those that this Backend started since, whoever started the former.
func (b *Backend) Exits(ctx context.Context, exited func(id string)) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	ended := make(chan string)
	watched := map[string]process{}
	for {
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		gone, err := b.watchNew(ctx, watched, &watching, ended)
		if err != nil {
			return err
		}
		for _, id := range gone {
			exited(id)
		}
		for again := false; !again; {
			select {
			case id := <-ended:
				b.reap(id)
				exited(id)
			case <-changed:
				again = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// watchNew starts to watch every node that is not watched yet, and returns those that have ended.
func (b *Backend) watchNew(
	ctx context.Context, watched map[string]process, watching *sync.WaitGroup, ended chan<- string,
) (gone []string, err error) {
	records, err := b.records()
	if err != nil {
		return nil, err
	}
	found, err := b.scan()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		p, ok, err := b.running(r, found)
		if err != nil {
			return nil, err
		}
		if !ok {
			p = r.Process
		}
		if was, known := watched[r.ID]; known && was == p {
			continue
		}
		if !ok && r.Process.PID == 0 {
			continue // being started, or cut short: either way no process has ended
		}
		watched[r.ID] = p
		f, err := p.open(r.ID)
		if err != nil {
			return nil, err
		}
		if f == nil {
			gone = append(gone, r.ID)
			continue
		}
		watching.Go(func() { watch(ctx, f, r.ID, ended) })
	}
	return gone, nil
}

func watch(ctx context.Context, f *os.File, id string, ended chan<- string) {
	defer f.Close()
	if awaitExit(ctx, f) != nil {
		return
	}
	select {
	case ended <- id:
	case <-ctx.Done():
	}
}

var _ backend.Backend = (*Backend)(nil)

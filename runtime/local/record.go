package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/runtime/backend"
)

// record is what a node's directory says of it. Process is zero from the intent to start until the
// process exists.
type record struct {
	ID       string       `json:"id"`
	PoolID   string       `json:"poolId"`
	Role     backend.Role `json:"role"`
	SpecHash string       `json:"specHash"`
	// Parts is missing in records that another version wrote.
	Parts    backend.Parts `json:"parts,omitempty"`
	Endpoint string        `json:"endpoint"`
	Started  time.Time     `json:"started"`
	Binary   string        `json:"binary"`
	Process  process       `json:"process"`
}

func (r record) node() backend.Node {
	return backend.Node{
		ID: r.ID, PoolID: r.PoolID, Role: r.Role, Endpoint: r.Endpoint, PID: r.Process.PID,
		Started: r.Started, SpecHash: r.SpecHash, Parts: r.Parts,
	}
}

func (b *Backend) recordPath(id string) string { return filepath.Join(b.nodeDir(id), "node.json") }

// readRecord returns fs.ErrNotExist where there is none. A record that is damaged, which a write by
// rename does not leave, counts as an intent: the process is looked for.
func (b *Backend) readRecord(id string) (record, error) {
	raw, err := os.ReadFile(b.recordPath(id))
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(raw, &r); err != nil || r.ID != id {
		b.cfg.Log.Warn("node record is damaged", "node", id)
		return record{ID: id, Endpoint: b.endpoint(id)}, nil
	}
	return r, nil
}

func (b *Backend) records() ([]record, error) {
	entries, err := os.ReadDir(b.nodesDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var records []record
	for _, e := range entries {
		if checkID(e.Name()) != nil {
			continue
		}
		r, err := b.readRecord(e.Name())
		if errors.Is(err, fs.ErrNotExist) { // cut short between the directory and the record, or just removed
			if _, err := os.Stat(b.nodeDir(e.Name())); err != nil {
				continue
			}
			r = record{ID: e.Name(), Endpoint: b.endpoint(e.Name())}
		} else if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		records = append(records, r)
	}
	return records, nil
}

func (b *Backend) writeRecord(r record) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode node record: %w", err)
	}
	return writeFile(b.recordPath(r.ID), append(raw, '\n'), 0o600)
}

// writeFile replaces a file as a whole: a reader sees the old content or the new.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// checkID refuses what is not a uuid: ids become names of files.
func checkID(id string) error {
	u, err := uuid.Parse(id)
	if err != nil || u.String() != id {
		return fmt.Errorf("%q is not a uuid", id)
	}
	return nil
}

// lastLine returns the end of a log for a reason, or nothing.
func lastLine(path string) string {
	const most = 300
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if _, err := f.Seek(-4096, io.SeekEnd); err != nil {
		_, err = f.Seek(0, io.SeekStart)
		if err != nil {
			return ""
		}
	}
	tail, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(tail))
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	return strings.ToValidUTF8(line[:min(len(line), most)], "")
}

package plan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

const (
	// fileFormat is the version of the form in which plans are saved.
	fileFormat = 2
	// fileHead starts the first line of a saved plan; the format follows. The rest is in base64.
	fileHead = "qod plan "
	// MaxFile is the size in bytes of the largest file that is read as a plan.
	MaxFile = 256 << 20
)

// file is what a saved plan says, before it is sealed.
type file struct {
	ID        string            `json:"id"`
	Stack     string            `json:"stack"`
	Lineage   string            `json:"lineage"`
	Created   time.Time         `json:"created"`
	Mode      Mode              `json:"mode"`
	Partial   bool              `json:"partial"`
	Changes   []fileChange      `json:"changes"`
	Drift     []fileDrift       `json:"drift"`
	Settled   []string          `json:"settled"`
	Live      []Finding         `json:"live"`
	Draining  []Finding         `json:"draining"`
	Outputs   []fileOutput      `json:"outputs"`
	Result    *[]fileResult     `json:"result"`
	Warnings  []fileWarning     `json:"warnings"`
	Unchanged int               `json:"unchanged"`
	Secrets   map[string][]byte `json:"secrets"`
}

type fileChange struct {
	Action       Action          `json:"action"`
	ID           string          `json:"id"`
	NewID        string          `json:"new_id,omitempty"`
	Kind         string          `json:"kind"`
	Address      string          `json:"address,omitempty"`
	Addr         schema.Addr     `json:"addr"`
	Was          schema.Addr     `json:"was"`
	Moved        string          `json:"moved,omitempty"`
	Saw          int64           `json:"saw"`
	Spec         json.RawMessage `json:"spec,omitempty"`
	Applied      json.RawMessage `json:"applied,omitempty"`
	Attrs        []fileAttr      `json:"attrs,omitempty"`
	Secrets      []string        `json:"secrets,omitempty"`
	Sensitive    []string        `json:"sensitive,omitempty"`
	Reason       Reason          `json:"reason,omitempty"`
	Detail       string          `json:"detail,omitempty"`
	Import       bool            `json:"import,omitempty"`
	From         string          `json:"from,omitempty"`
	Protected    bool            `json:"protected,omitempty"`
	WasProtected bool            `json:"was_protected,omitempty"`
}

type fileAttr struct {
	Name      string          `json:"name"`
	Before    json.RawMessage `json:"before,omitempty"`
	After     json.RawMessage `json:"after,omitempty"`
	Effect    schema.Effect   `json:"effect"`
	Sensitive bool            `json:"sensitive,omitempty"`
	Note      string          `json:"note,omitempty"`
}

type fileDrift struct {
	Addr    schema.Addr `json:"addr"`
	Address string      `json:"address"`
	Attr    *fileAttr   `json:"attr,omitempty"` // left out where the object was deleted
}

type fileWarning struct {
	Error   bool       `json:"error,omitempty"` // never in a saved plan, which has only warnings
	Address string     `json:"address,omitempty"`
	Path    []string   `json:"path,omitempty"`
	Range   *hcl.Range `json:"range,omitempty"`
	Summary string     `json:"summary"`
	Detail  string     `json:"detail"`
}

// Marshal returns the file form of a plan, which seal keeps from being read and altered: it has the values
// that must not be shown. Secrets are sealed by themselves before, so that reading a plan does not open
// them; they are kept by "id/attribute", and the values of sensitive results by "output/name".
func Marshal(p *Plan, secrets map[string][]byte, seal func(plain []byte) []byte) ([]byte, error) {
	if p.Failed() {
		return nil, errors.New("save plan: it has errors, and could not be applied")
	}
	plain, err := encode(p, secrets)
	if err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	fmt.Fprintf(out, "%s%d\n", fileHead, fileFormat)
	enc := base64.NewEncoder(base64.StdEncoding, out)
	enc.Write(seal(plain)) // to memory
	enc.Close()
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// Unmarshal reads the file form of a plan and returns it with its secrets, still sealed. It reads the whole
// plan or none: what differs in any way from what Marshal writes is an error.
func Unmarshal(data []byte, open func(sealed []byte) ([]byte, error)) (*Plan, map[string][]byte, error) {
	if len(data) > MaxFile {
		return nil, nil, fmt.Errorf("read plan: the file is larger than %d MiB: this is not a plan", MaxFile>>20)
	}
	head, rest, _ := bytes.Cut(data, []byte("\n"))
	word, isPlan := strings.CutPrefix(string(head[:min(len(head), 64)]), fileHead)
	format, err := strconv.Atoi(word)
	switch {
	case bytes.HasPrefix(data, []byte("{")) && bytes.Contains(data, []byte(`"qod_plan"`)):
		return nil, nil, errors.New("read plan: an older qod saved it: make it anew with qod plan --out")
	case !isPlan || err != nil:
		return nil, nil, errors.New("read plan: this is not a plan that qod saved")
	case format != fileFormat:
		return nil, nil, fmt.Errorf("read plan: it has format %d, and this qod reads %d: make it anew with qod plan --out", format, fileFormat)
	}
	sealed, err := base64.StdEncoding.DecodeString(string(rest))
	if err != nil || !bytes.HasSuffix(rest, []byte("\n")) {
		return nil, nil, errors.New("read plan: the file was cut off or altered: make the plan anew")
	}
	plain, err := open(sealed)
	if err != nil {
		return nil, nil, fmt.Errorf("read plan: %w", err)
	}
	p, secrets, err := decode(plain)
	if err != nil {
		return nil, nil, fmt.Errorf("read plan: %w", err)
	}
	return p, secrets, nil
}

func encode(p *Plan, secrets map[string][]byte) ([]byte, error) {
	f, err := fileOf(p, secrets)
	if err != nil {
		return nil, err
	}
	return json.Marshal(f)
}

func fileOf(p *Plan, secrets map[string][]byte) (file, error) {
	f := file{
		ID: p.ID, Stack: p.Stack, Lineage: p.Lineage, Created: p.Created.UTC(), Mode: p.Mode, Partial: p.Partial,
		Live: p.Live, Draining: p.Draining, Settled: p.Settled, Unchanged: p.Unchanged, Secrets: secrets,
	}
	for _, c := range p.Changes {
		fc, err := encodeChange(c)
		if err != nil {
			return f, fmt.Errorf("save change of %s: %w", c.Addr, err)
		}
		f.Changes = append(f.Changes, fc)
	}
	for _, d := range p.Drift {
		fd, err := encodeDrift(d)
		if err != nil {
			return f, fmt.Errorf("save drift of %s: %w", d.Addr, err)
		}
		f.Drift = append(f.Drift, fd)
	}
	for _, w := range p.Problems {
		f.Warnings = append(f.Warnings, fileWarning{!w.Warning, w.Address, names(w.Path), w.Range, w.Summary, w.Detail})
	}
	var err error
	f.Outputs, f.Result, err = encodeOutputs(p)
	return f, err
}

func decode(plain []byte) (*Plan, map[string][]byte, error) {
	var f file
	dec := json.NewDecoder(bytes.NewReader(plain))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, nil, fmt.Errorf("its form is not what this qod writes: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, nil, errors.New("something follows the plan")
	}
	p, err := f.plan()
	if err == nil {
		err = check(p)
	}
	if err != nil {
		return nil, nil, err
	}
	// What a reader would skip or fill in, such as a missing field, shows here.
	again, err := encode(p, f.Secrets)
	if err != nil || !bytes.Equal(again, plain) {
		return nil, nil, errors.New("something is missing in it, or it was not written by this qod: make the plan anew")
	}
	return p, f.Secrets, nil
}

// plan returns what the file says, unchecked.
func (f file) plan() (*Plan, error) {
	p := &Plan{
		ID: f.ID, Stack: f.Stack, Lineage: f.Lineage, Created: f.Created, Mode: f.Mode, Partial: f.Partial,
		Live: f.Live, Draining: f.Draining, Settled: f.Settled, Unchanged: f.Unchanged,
	}
	for _, fc := range f.Changes {
		c, err := decodeChange(fc)
		if err != nil {
			return nil, fmt.Errorf("change of %s: %w", fc.Addr, err)
		}
		p.Changes = append(p.Changes, c)
	}
	for _, fd := range f.Drift {
		d, err := decodeDrift(fd)
		if err != nil {
			return nil, fmt.Errorf("drift of %s: %w", fd.Addr, err)
		}
		p.Drift = append(p.Drift, d)
	}
	for _, w := range f.Warnings {
		problem := Problem{Warning: !w.Error, Address: w.Address, Range: w.Range, Summary: w.Summary, Detail: w.Detail}
		for _, name := range w.Path {
			problem.Path = problem.Path.GetAttr(name)
		}
		p.Problems = append(p.Problems, problem)
	}
	return p, decodeOutputs(p, f.Outputs, f.Result)
}

func encodeChange(c Change) (fileChange, error) {
	fc := fileChange{
		Action: c.Action, ID: c.ID, NewID: c.NewID, Kind: c.Kind.Name, Address: c.Address, Addr: c.Addr, Was: c.Was,
		Moved: c.Moved, Saw: c.Saw, Secrets: c.Secrets, Sensitive: c.Sensitive, Reason: c.Reason, Detail: c.Detail,
		Import: c.Import, From: c.From, Protected: c.Protected, WasProtected: c.WasProtected,
	}
	var err error
	if c.Spec != cty.NilVal {
		if fc.Spec, err = c.Kind.Encode(c.Spec); err != nil {
			return fc, err
		}
	}
	if c.Applied != cty.NilVal {
		if fc.Applied, err = c.Kind.Encode(c.Applied); err != nil {
			return fc, err
		}
	}
	for _, a := range c.Attrs {
		fa, err := encodeFileAttr(c.Kind, a)
		if err != nil {
			return fc, err
		}
		fc.Attrs = append(fc.Attrs, fa)
	}
	return fc, nil
}

func encodeDrift(d Drift) (fileDrift, error) {
	fd := fileDrift{Addr: d.Addr, Address: d.Address}
	k, ok := schema.Lookup(d.Addr.Kind)
	if !ok {
		return fd, fmt.Errorf("there is no kind %q", d.Addr.Kind)
	}
	if d.Deleted {
		return fd, nil
	}
	attr, err := encodeFileAttr(k, d.Attr)
	fd.Attr = &attr
	return fd, err
}

func encodeFileAttr(k *schema.Kind, a Attr) (fileAttr, error) {
	fa := fileAttr{Name: a.Name, Effect: a.Effect, Sensitive: a.Sensitive, Note: a.Note}
	var err error
	if fa.Before, err = encodeAttr(k, a.Name, a.Before); err != nil {
		return fa, err
	}
	fa.After, err = encodeAttr(k, a.Name, a.After)
	return fa, err
}

// encodeAttr stores one attribute as an object in which nothing else is written.
func encodeAttr(k *schema.Kind, name string, v cty.Value) (json.RawMessage, error) {
	if v == cty.NilVal || v.IsNull() {
		return nil, nil
	}
	attrs := k.Empty().AsValueMap()
	attrs[name] = v
	return k.Encode(cty.ObjectVal(attrs))
}

func decodeChange(fc fileChange) (Change, error) {
	k, ok := schema.Lookup(fc.Kind)
	if !ok {
		return Change{}, fmt.Errorf("there is no kind %q", fc.Kind)
	}
	c := Change{
		Action: fc.Action, ID: fc.ID, NewID: fc.NewID, Kind: k, Address: fc.Address, Addr: fc.Addr, Was: fc.Was,
		Moved: fc.Moved, Saw: fc.Saw, Secrets: fc.Secrets, Sensitive: fc.Sensitive, Reason: fc.Reason, Detail: fc.Detail,
		Import: fc.Import, From: fc.From, Protected: fc.Protected, WasProtected: fc.WasProtected,
		Spec: cty.NilVal, Applied: cty.NilVal,
	}
	var err error
	if fc.Spec != nil {
		if c.Spec, err = k.Decode(fc.Spec); err != nil {
			return c, err
		}
	}
	if fc.Applied != nil {
		if c.Applied, err = k.Decode(fc.Applied); err != nil {
			return c, err
		}
	}
	for _, fa := range fc.Attrs {
		a, err := decodeFileAttr(k, fa)
		if err != nil {
			return c, err
		}
		c.Attrs = append(c.Attrs, a)
	}
	return c, nil
}

func decodeDrift(fd fileDrift) (Drift, error) {
	k, ok := schema.Lookup(fd.Addr.Kind)
	if !ok {
		return Drift{}, fmt.Errorf("there is no kind %q", fd.Addr.Kind)
	}
	d := Drift{Addr: fd.Addr, Address: fd.Address, Deleted: fd.Attr == nil}
	if d.Deleted {
		return d, nil
	}
	var err error
	d.Attr, err = decodeFileAttr(k, *fd.Attr)
	return d, err
}

func decodeFileAttr(k *schema.Kind, fa fileAttr) (Attr, error) {
	a := Attr{Name: fa.Name, Effect: fa.Effect, Sensitive: fa.Sensitive, Note: fa.Note, Default: cty.NilVal}
	if def, ok := k.Attr(fa.Name); ok {
		a.Default = def.Default
	} else if _, ok := k.Block(fa.Name); !ok {
		return a, fmt.Errorf("%s has no attribute %q", k.Name, fa.Name)
	}
	var err error
	if a.Before, err = decodeAttr(k, fa.Name, fa.Before); err != nil {
		return a, err
	}
	a.After, err = decodeAttr(k, fa.Name, fa.After)
	return a, err
}

func decodeAttr(k *schema.Kind, name string, raw json.RawMessage) (cty.Value, error) {
	if raw == nil {
		return k.Empty().GetAttr(name), nil
	}
	v, err := k.Decode(raw)
	if err != nil {
		return cty.NilVal, err
	}
	return v.GetAttr(name), nil
}

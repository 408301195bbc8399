package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// JSON returns the document in HCL's JSON syntax.
func (d *Document) JSON() ([]byte, error) {
	top := body{blocks: d.blocks}
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(top.json(nil)), "", "  "); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// json is the body as an object: comments, arguments, then blocks by type.
func (b *body) json(comments []string) string {
	var items []string
	if comments = append(comments, b.notes...); len(comments) > 0 {
		items = append(items, `"//":`+quote(strings.Join(comments, "\n")))
	}
	for _, a := range b.attrs {
		items = append(items, quote(a.name)+":"+a.value.json())
	}
	byType := map[string][]block{}
	for _, nested := range b.blocks {
		byType[nested.kind] = append(byType[nested.kind], nested)
	}
	for _, nested := range b.blocks {
		if same := byType[nested.kind]; same != nil {
			items = append(items, quote(nested.kind)+":"+blocksJSON(same))
			delete(byType, nested.kind)
		}
	}
	return "{" + strings.Join(items, ",") + "}"
}

// blocksJSON is blocks of one type: an object by label, or without labels the one body or an array.
func blocksJSON(blocks []block) string {
	items := make([]string, len(blocks))
	for i := range blocks {
		b := &blocks[i]
		var comments []string
		if b.comment != "" {
			comments = append(comments, b.comment)
		}
		items[i] = b.json(comments)
		if len(b.labels) > 0 {
			items[i] = quote(b.labels[0]) + ":" + items[i]
		}
	}
	joined := strings.Join(items, ",")
	switch {
	case len(blocks[0].labels) > 0:
		return "{" + joined + "}"
	case len(blocks) > 1:
		return "[" + joined + "]"
	}
	return joined
}

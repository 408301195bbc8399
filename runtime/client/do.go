package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Do makes a request that this package has no name for; body and answer are JSON. It is sent again, as others are, where
// that is harmless: where repeatable says so, and where it has not reached the server.
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body, out any, repeatable bool) error {
	return c.do(ctx, call{method: method, path: path, query: query, body: body, repeatable: repeatable}, out)
}

// ErrCutOff is the end of events of which the last one is missing.
var ErrCutOff = errors.New("the connection broke")

// maxEvent bounds an event, in bytes.
const maxEvent = 16 << 20

// Events posts a body and hands on the events of the answer, until on says that one was the last, or fails. A refusal is
// an [*Error], as of other requests. The request is sent once: where the connection breaks without the last event,
// the error matches ErrCutOff, and began says whether the server had begun to answer.
func (c *Client) Events(ctx context.Context, path string, body any, on func(name string, data []byte) (last bool, err error)) (began bool, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return false, fmt.Errorf("encode request: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.JoinPath("v1").String()+"/"+path, bytes.NewReader(raw))
	if err != nil {
		return false, fmt.Errorf("make request: %w", err)
	}
	c.sign(request, true)
	answer, err := c.http.Do(request)
	switch {
	case err != nil && unsent(err):
		return false, fmt.Errorf("reach qod: %w", err)
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrCutOff, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		read, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		if err != nil {
			return false, fmt.Errorf("%w: %w", ErrCutOff, err)
		}
		return false, refusal(answer, read)
	}
	return true, events(answer.Body, on)
}

// events reads server-sent events.
func events(from io.Reader, on func(name string, data []byte) (last bool, err error)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	name := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			if last, err := on(name, []byte(value)); last || err != nil {
				return err
			}
		}
	}
	return errors.Join(ErrCutOff, lines.Err())
}

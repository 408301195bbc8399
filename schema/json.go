package schema

import (
	"bytes"
	"encoding/json"
)

// unmarshalExact keeps numbers as they are written: a float64 would lose those beyond 2^53.
func unmarshalExact(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(into)
}

package provider

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/qod-io/qod/runtime/client"
)

// shuffled returns an object whose sets are in another order: nobody may rely on that of an answer.
func (d *double) shuffled(o client.Object) client.Object {
	if d.order == nil {
		return o
	}
	for _, raw := range []*json.RawMessage{&o.Spec, &o.Effective} {
		var tree any
		numbers := json.NewDecoder(bytes.NewReader(*raw))
		numbers.UseNumber() // 2^53 and its neighbours stay what they are
		if numbers.Decode(&tree) != nil {
			continue // it is what the double wrote itself
		}
		shuffle(d.order, tree)
		if mixed, err := json.Marshal(tree); err == nil {
			*raw = mixed
		}
	}
	return o
}

// shuffle has all arrays in another order: those of the kinds are sets.
func shuffle(order *rand.Rand, tree any) {
	switch v := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) { // the same from run to run
			shuffle(order, v[name])
		}
	case []any:
		for _, item := range v {
			shuffle(order, item)
		}
		order.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
	}
}

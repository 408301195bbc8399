package store

import (
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// StandIn returns another value of the same type for who may know that a value has changed, and not what it is: equal
// values of one attribute of one object have equal ones, and different values different ones. A null stays.
func (s *Sealer) StandIn(key SecretKey, v cty.Value) (cty.Value, error) {
	if v == cty.NilVal || v.IsNull() || v.Type().IsSetType() && v.LengthInt() == 0 {
		return v, nil
	}
	if v.Type() == cty.Bool { // of two values each stands for the other, or for itself
		return cty.BoolVal(v.True() != (s.number(key, nil)%2 == 0)), nil
	}
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return cty.NilVal, err
	}
	return s.standIn(key, raw, v.Type()), nil
}

func (s *Sealer) standIn(key SecretKey, raw []byte, t cty.Type) cty.Value {
	switch {
	case t == cty.String:
		return cty.StringVal(s.digits(key, raw))
	case t == cty.Number:
		return cty.NumberUIntVal(s.number(key, raw))
	case t.IsSetType():
		return cty.SetVal([]cty.Value{s.standIn(key, raw, t.ElementType())})
	case t.IsObjectType():
		values := map[string]cty.Value{}
		for name, at := range t.AttributeTypes() {
			values[name] = s.standIn(key, raw, at)
		}
		return cty.ObjectVal(values)
	}
	return cty.NullVal(t)
}

// number is one of 32 bits in place of a fingerprint.
func (s *Sealer) number(key SecretKey, raw []byte) uint64 {
	n, _ := strconv.ParseUint(s.digits(key, raw)[:8], 16, 64) // they are hexadecimal
	return n
}

func (s *Sealer) digits(key SecretKey, raw []byte) string {
	return strings.TrimPrefix(s.Fingerprint(key, raw), "hmac:")
}

package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// Value returns the document as expressions see it: under the names of its JSON, and with the same values. What
// the JSON leaves out is null, or false where it is a truth value; an object has all attributes of its kind. What must
// not be shown is unknown, since the document does not have it; only that it is not null is known of an attribute.
func (d *Document) Value() (cty.Value, error) {
	v, err := valueOf(reflect.ValueOf(*d))
	if err != nil {
		return cty.NilVal, fmt.Errorf("read plan: %w", err)
	}
	return v, nil
}

// Example returns what [Document.Value] may be like: a change of each kind with each action, of which all that the
// configuration says is unknown. An expression that names what no plan has fails with it.
func Example() (cty.Value, error) {
	none := json.RawMessage("null")
	d := Document{FormatVersion: FormatVersion, Stack: "example", Mode: "normal", Drift: []ResourceDrift{}}
	for _, k := range schema.Kinds() {
		name := k.Name + ".example"
		for i, actions := range [][]string{{"create"}, {"update"}, {"delete", "create"}, {"delete"}} {
			at := fmt.Sprintf("%s[%d]", name, i)
			d.ResourceChanges = append(d.ResourceChanges, ResourceChange{
				Address: at, Kind: k.Name, Object: "example", Change: ValueChange{Actions: actions, Before: none, After: none, Effective: none},
			})
		}
		d.LiveChanges = append(d.LiveChanges, LiveChange{Address: name, Kind: k.Name, Object: "example"})
		d.Drift = append(d.Drift, ResourceDrift{Address: name, Kind: k.Name, Object: "example", Sensitive: true, Before: none, After: none})
	}
	d.Draining = d.LiveChanges
	v, err := d.Value()
	if err != nil {
		return cty.NilVal, err
	}
	attrs := v.AsValueMap()
	attrs["outputs"] = cty.DynamicVal
	changes := attrs["resource_changes"].AsValueSlice()
	for i := range changes {
		changes[i] = exampleChange(changes[i])
	}
	attrs["resource_changes"] = cty.TupleVal(changes)
	return cty.ObjectVal(attrs), nil
}

// exampleChange puts objects of which nothing is known where the actions of a change have some.
func exampleChange(v cty.Value) cty.Value {
	rc := v.AsValueMap()
	change := rc["change"].AsValueMap()
	actions := change["actions"].AsValueSlice()
	for side, without := range map[string]Action{"before": Create, "after": Delete, "effective": Delete} {
		if len(actions) == 1 && actions[0].AsString() == string(without) {
			continue
		}
		attrs := map[string]cty.Value{}
		for name, t := range change[side].Type().AttributeTypes() {
			attrs[name] = cty.UnknownVal(t)
		}
		change[side] = cty.ObjectVal(attrs)
	}
	rc["change"] = cty.ObjectVal(change)
	return cty.ObjectVal(rc)
}

// valueOf follows the JSON tags of a type.
func valueOf(v reflect.Value) (cty.Value, error) {
	switch x := v.Interface().(type) {
	case json.RawMessage:
		return anyValue(x)
	case time.Time:
		return cty.StringVal(x.Format(time.RFC3339Nano)), nil // as encoding/json writes it
	case ResourceChange:
		return x.value(v)
	case ResourceDrift:
		return x.value(v)
	case OutputValues:
		return x.value(v)
	}
	switch v.Kind() {
	case reflect.String:
		return cty.StringVal(v.String()), nil
	case reflect.Bool:
		return cty.BoolVal(v.Bool()), nil
	case reflect.Int:
		return cty.NumberIntVal(v.Int()), nil
	case reflect.Pointer:
		return valueOf(v.Elem())
	case reflect.Slice:
		return listOf(v)
	case reflect.Map:
		return mapOf(v)
	}
	attrs, err := attributes(v)
	return cty.ObjectVal(attrs), err
}

// attributes returns the fields of a struct under their names in JSON.
func attributes(v reflect.Value) (map[string]cty.Value, error) {
	attrs := map[string]cty.Value{}
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		if options == "omitempty" && field.IsZero() && field.Kind() != reflect.Bool {
			attrs[name] = cty.NullVal(typeOf(field.Type()))
			continue
		}
		var err error
		if attrs[name], err = valueOf(field); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return attrs, nil
}

// typeOf is the type of what is left out, as far as expressions have to know it.
func typeOf(t reflect.Type) cty.Type {
	switch {
	case t.Kind() == reflect.String:
		return cty.String
	case t.Kind() == reflect.Slice && typeOf(t.Elem()) != cty.DynamicPseudoType:
		return cty.List(typeOf(t.Elem()))
	}
	return cty.DynamicPseudoType
}

// listOf returns a list of texts, or of lists of them. Other elements, such as changes, need not be alike.
func listOf(v reflect.Value) (cty.Value, error) {
	items := make([]cty.Value, v.Len())
	for i := range items {
		var err error
		if items[i], err = valueOf(v.Index(i)); err != nil {
			return cty.NilVal, err
		}
	}
	switch t := typeOf(v.Type().Elem()); {
	case t == cty.DynamicPseudoType:
		return cty.TupleVal(items), nil
	case len(items) == 0:
		return cty.ListValEmpty(t), nil
	}
	return cty.ListVal(items), nil
}

// mapOf returns a map, or an object where the elements need not be alike.
func mapOf(v reflect.Value) (cty.Value, error) {
	items := map[string]cty.Value{}
	for it := v.MapRange(); it.Next(); {
		item, err := valueOf(it.Value())
		if err != nil {
			return cty.NilVal, fmt.Errorf("%s: %w", it.Key(), err)
		}
		items[it.Key().String()] = item
	}
	t := map[reflect.Kind]cty.Type{reflect.String: cty.String, reflect.Bool: cty.Bool}[v.Type().Elem().Kind()]
	switch {
	case t == cty.NilType:
		return cty.ObjectVal(items), nil
	case len(items) == 0:
		return cty.MapValEmpty(t), nil
	}
	return cty.MapVal(items), nil
}

// anyValue reads JSON of any type.
func anyValue(raw json.RawMessage) (cty.Value, error) {
	t, err := ctyjson.ImpliedType(raw)
	if err != nil {
		return cty.NilVal, err
	}
	return ctyjson.Unmarshal(raw, t)
}

func (rc ResourceChange) value(v reflect.Value) (cty.Value, error) {
	attrs, err := attributes(v)
	if err != nil {
		return cty.NilVal, err
	}
	k, ok := schema.Lookup(rc.Kind)
	if !ok {
		return cty.NilVal, fmt.Errorf("there is no kind %q", rc.Kind)
	}
	change := attrs["change"].AsValueMap()
	for side, of := range map[string]struct {
		raw       json.RawMessage
		sensitive map[string]bool
	}{
		"before":    {rc.Change.Before, rc.Change.BeforeSensitive},
		"after":     {rc.Change.After, rc.Change.AfterSensitive},
		"effective": {rc.Change.Effective, rc.Change.AfterSensitive},
	} {
		if change[side], err = objectValue(k, of.raw, of.sensitive); err != nil {
			return cty.NilVal, fmt.Errorf("%s of %s: %w", side, rc.Address, err)
		}
	}
	attrs["change"] = cty.ObjectVal(change)
	return cty.ObjectVal(attrs), nil
}

// shownType is the type of an object of a kind in the document: without secrets that are not kept, and with lists
// in place of sets.
func shownType(k *schema.Kind) cty.Type {
	types := map[string]cty.Type{}
	for name, t := range k.Type().AttributeTypes() {
		if a, isAttr := k.Attr(name); !isAttr || a.StoredAs == "" {
			types[name] = asLists(t)
		}
	}
	return cty.Object(types)
}

func asLists(t cty.Type) cty.Type {
	switch {
	case t.IsObjectType():
		types := map[string]cty.Type{}
		for name, at := range t.AttributeTypes() {
			types[name] = asLists(at)
		}
		return cty.Object(types)
	case t.IsSetType():
		return cty.List(asLists(t.ElementType()))
	}
	return t
}

// objectValue reads what [ShowValue] wrote.
func objectValue(k *schema.Kind, raw json.RawMessage, sensitive map[string]bool) (cty.Value, error) {
	t := shownType(k)
	v, err := ctyjson.Unmarshal(raw, t)
	if err != nil || v.IsNull() {
		return cty.NullVal(t), err
	}
	attrs := v.AsValueMap()
	for name := range sensitive {
		attrs[name] = withheld(t.AttributeType(name))
	}
	return cty.ObjectVal(attrs), nil
}

// withheld stands for a value that must not be shown.
func withheld(t cty.Type) cty.Value { return cty.UnknownVal(t).RefineNotNull() }

func (d ResourceDrift) value(v reflect.Value) (cty.Value, error) {
	attrs, err := attributes(v)
	if err != nil {
		return cty.NilVal, err
	}
	if d.Sensitive && !d.Deleted {
		attrs["before"], attrs["after"] = cty.DynamicVal, cty.DynamicVal
	}
	return cty.ObjectVal(attrs), nil
}

func (o OutputValues) value(v reflect.Value) (cty.Value, error) {
	attrs, err := attributes(v)
	if err != nil {
		return cty.NilVal, err
	}
	for side, without := range map[string]Action{"before": Create, "after": Delete} {
		if o.Sensitive && (len(o.Actions) != 1 || o.Actions[0] != string(without)) {
			attrs[side] = cty.DynamicVal
		}
	}
	return cty.ObjectVal(attrs), nil
}

package node

import (
	"fmt"
	"math/big"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	duck "github.com/duckdb/duckdb-go-bindings"
	"google.golang.org/grpc/codes"
)

// engineValue returns one Arrow value as a value of the engine, in its own type: the engine casts it to
// the parameter's. The caller destroys it. The engine makes no value of what it cannot take, and would
// crash when that is bound.
func engineValue(column arrow.Array, i int) (duck.Value, error) {
	v, err := makeValue(column, i)
	if err == nil && v.Ptr == nil {
		return v, faultf(codes.InvalidArgument, "", "a value of type %s is invalid: text must be UTF-8", column.DataType())
	}
	return v, err
}

func makeValue(column arrow.Array, i int) (duck.Value, error) {
	if column.IsNull(i) {
		return duck.CreateNullValue(), nil
	}
	switch a := column.(type) {
	case *array.Null:
		return duck.CreateNullValue(), nil
	case *array.Boolean:
		return duck.CreateBool(a.Value(i)), nil
	case *array.Dictionary:
		return engineValue(a.Dictionary(), a.GetValueIndex(i))
	case array.ExtensionArray:
		return engineValue(a.Storage(), i)
	case *array.Decimal32:
		return decimalValue(decimal128.FromI64(int64(a.Value(i))), a.DataType().(*arrow.Decimal32Type).Scale), nil
	case *array.Decimal64:
		return decimalValue(decimal128.FromI64(int64(a.Value(i))), a.DataType().(*arrow.Decimal64Type).Scale), nil
	case *array.Decimal128:
		return decimalValue(a.Value(i), a.DataType().(*arrow.Decimal128Type).Scale), nil
	}
	if v, ok := numberValue(column, i); ok {
		return v, nil
	}
	if v, ok := textValue(column, i); ok {
		return v, nil
	}
	if v, ok := timeValue(column, i); ok {
		return v, nil
	}
	return nestedValue(column, i)
}

func numberValue(column arrow.Array, i int) (duck.Value, bool) {
	switch a := column.(type) {
	case *array.Int8:
		return duck.CreateInt8(a.Value(i)), true
	case *array.Int16:
		return duck.CreateInt16(a.Value(i)), true
	case *array.Int32:
		return duck.CreateInt32(a.Value(i)), true
	case *array.Int64:
		return duck.CreateInt64(a.Value(i)), true
	case *array.Uint8:
		return duck.CreateUInt8(a.Value(i)), true
	case *array.Uint16:
		return duck.CreateUInt16(a.Value(i)), true
	case *array.Uint32:
		return duck.CreateUInt32(a.Value(i)), true
	case *array.Uint64:
		return duck.CreateUInt64(a.Value(i)), true
	case *array.Float16:
		return duck.CreateFloat(a.Value(i).Float32()), true
	case *array.Float32:
		return duck.CreateFloat(a.Value(i)), true
	case *array.Float64:
		return duck.CreateDouble(a.Value(i)), true
	}
	return duck.Value{}, false
}

func textValue(column arrow.Array, i int) (duck.Value, bool) {
	switch a := column.(type) {
	case *array.String:
		return varchar(a.Value(i)), true
	case *array.LargeString:
		return varchar(a.Value(i)), true
	case *array.StringView:
		return varchar(a.Value(i)), true
	case *array.Binary:
		return duck.CreateBlob(a.Value(i)), true
	case *array.LargeBinary:
		return duck.CreateBlob(a.Value(i)), true
	case *array.BinaryView:
		return duck.CreateBlob(a.Value(i)), true
	case *array.FixedSizeBinary:
		return duck.CreateBlob(a.Value(i)), true
	case *array.Decimal256:
		return varchar(a.ValueStr(i)), true
	}
	return duck.Value{}, false
}

func varchar(s string) duck.Value { return duck.CreateVarcharLength(s, duck.IdxT(len(s))) }

func timeValue(column arrow.Array, i int) (duck.Value, bool) {
	switch a := column.(type) {
	case *array.Date32:
		return duck.CreateDate(duck.NewDate(int32(a.Value(i)))), true
	case *array.Date64:
		return duck.CreateDate(duck.NewDate(int32(int64(a.Value(i)) / int64(24*time.Hour/time.Millisecond)))), true
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		return duck.CreateTime(duck.NewTime(int64(a.Value(i)) * int64(unit.Multiplier()/time.Microsecond))), true
	case *array.Time64:
		if a.DataType().(*arrow.Time64Type).Unit == arrow.Nanosecond {
			return duck.CreateTimeNS(duck.NewTimeNS(int64(a.Value(i)))), true
		}
		return duck.CreateTime(duck.NewTime(int64(a.Value(i)))), true
	case *array.Timestamp:
		return timestampValue(a.DataType().(*arrow.TimestampType), int64(a.Value(i))), true
	case *array.Duration:
		unit := a.DataType().(*arrow.DurationType).Unit
		micros := int64(a.Value(i)) / 1000
		if unit != arrow.Nanosecond {
			micros = int64(a.Value(i)) * int64(unit.Multiplier()/time.Microsecond)
		}
		return duck.CreateInterval(duck.NewInterval(0, 0, micros)), true
	case *array.MonthInterval:
		return duck.CreateInterval(duck.NewInterval(int32(a.Value(i)), 0, 0)), true
	case *array.DayTimeInterval:
		v := a.Value(i)
		return duck.CreateInterval(duck.NewInterval(0, v.Days, int64(v.Milliseconds)*1000)), true
	case *array.MonthDayNanoInterval:
		v := a.Value(i)
		return duck.CreateInterval(duck.NewInterval(v.Months, v.Days, v.Nanoseconds/1000)), true
	}
	return duck.Value{}, false
}

func timestampValue(t *arrow.TimestampType, v int64) duck.Value {
	if t.TimeZone != "" {
		micros := v / 1000
		if t.Unit != arrow.Nanosecond {
			micros = v * int64(t.Unit.Multiplier()/time.Microsecond)
		}
		return duck.CreateTimestampTZ(duck.NewTimestamp(micros))
	}
	switch t.Unit {
	case arrow.Second:
		return duck.CreateTimestampS(duck.NewTimestampS(v))
	case arrow.Millisecond:
		return duck.CreateTimestampMS(duck.NewTimestampMS(v))
	case arrow.Microsecond:
		return duck.CreateTimestamp(duck.NewTimestamp(v))
	default:
		return duck.CreateTimestampNS(duck.NewTimestampNS(v))
	}
}

func decimalValue(v decimal128.Num, scale int32) duck.Value {
	// A scale the engine's decimal cannot have goes as text, which it casts exactly.
	if scale < 0 || scale > 38 {
		return varchar(v.ToString(scale))
	}
	digits := len(new(big.Int).Abs(v.BigInt()).String())
	width := uint8(max(digits, int(scale), 1))
	if width > 38 {
		return varchar(v.ToString(scale))
	}
	return duck.CreateDecimal(duck.NewDecimal(width, uint8(scale), duck.NewHugeInt(v.LowBits(), v.HighBits())))
}

func unsupported(t arrow.DataType) error {
	return faultf(codes.InvalidArgument, "", "parameters of type %s are not supported", t)
}

// nestedValue handles lists, structs and maps.
func nestedValue(column arrow.Array, i int) (duck.Value, error) {
	switch a := column.(type) {
	case array.ListLike:
		if m, ok := column.(*array.Map); ok {
			return mapValue(m, i)
		}
		start, end := a.ValueOffsets(i)
		child, err := engineType(a.ListValues().DataType())
		if err != nil {
			return duck.Value{}, err
		}
		defer duck.DestroyLogicalType(&child)
		items, err := engineValues(a.ListValues(), int(start), int(end))
		if err != nil {
			return duck.Value{}, err
		}
		defer destroyValues(items)
		return duck.CreateListValue(child, items), nil
	case *array.Struct:
		t, err := engineType(a.DataType())
		if err != nil {
			return duck.Value{}, err
		}
		defer duck.DestroyLogicalType(&t)
		var fields []duck.Value
		defer func() { destroyValues(fields) }()
		for f := range a.NumField() {
			v, err := engineValue(a.Field(f), i)
			if err != nil {
				return duck.Value{}, err
			}
			fields = append(fields, v)
		}
		return duck.CreateStructValue(t, fields), nil
	}
	return duck.Value{}, unsupported(column.DataType())
}

func mapValue(a *array.Map, i int) (duck.Value, error) {
	t, err := engineType(a.DataType())
	if err != nil {
		return duck.Value{}, err
	}
	defer duck.DestroyLogicalType(&t)
	start, end := a.ValueOffsets(i)
	keys, err := engineValues(a.Keys(), int(start), int(end))
	if err != nil {
		return duck.Value{}, err
	}
	defer destroyValues(keys)
	items, err := engineValues(a.Items(), int(start), int(end))
	if err != nil {
		return duck.Value{}, err
	}
	defer destroyValues(items)
	return duck.CreateMapValue(t, keys, items), nil
}

func engineValues(column arrow.Array, start, end int) ([]duck.Value, error) {
	var values []duck.Value
	for i := start; i < end; i++ {
		v, err := engineValue(column, i)
		if err != nil {
			destroyValues(values)
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func destroyValues(values []duck.Value) {
	for i := range values {
		duck.DestroyValue(&values[i])
	}
}

// rowValues returns one row of parameters.
func rowValues(b arrow.RecordBatch, row int) ([]duck.Value, error) {
	var values []duck.Value
	for c := range int(b.NumCols()) {
		v, err := engineValue(b.Column(c), row)
		if err != nil {
			destroyValues(values)
			return nil, fmt.Errorf("read parameter %d: %w", c+1, err)
		}
		values = append(values, v)
	}
	return values, nil
}

package node

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	duck "github.com/duckdb/duckdb-go-bindings"
)

// engineType returns the engine's type of an Arrow type, for values that need it spelled out. The caller
// destroys it.
func engineType(t arrow.DataType) (duck.LogicalType, error) {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		return duck.CreateDecimalType(uint8(t.Precision), uint8(t.Scale)), nil
	case *arrow.DictionaryType:
		return engineType(t.ValueType)
	case arrow.ExtensionType:
		return engineType(t.StorageType())
	case *arrow.MapType:
		return mapType(t)
	case *arrow.StructType:
		return structType(t)
	case arrow.ListLikeType:
		child, err := engineType(t.Elem())
		if err != nil {
			return duck.LogicalType{}, err
		}
		defer duck.DestroyLogicalType(&child)
		return duck.CreateListType(child), nil
	case *arrow.TimestampType:
		return duck.CreateLogicalType(timestampType(t)), nil
	}
	id, ok := scalarTypes()[t.ID()]
	if !ok {
		return duck.LogicalType{}, unsupported(t)
	}
	return duck.CreateLogicalType(id), nil
}

func scalarTypes() map[arrow.Type]duck.Type {
	return map[arrow.Type]duck.Type{
		arrow.NULL: duck.TypeSQLNull, arrow.BOOL: duck.TypeBoolean,
		arrow.INT8: duck.TypeTinyInt, arrow.INT16: duck.TypeSmallInt,
		arrow.INT32: duck.TypeInteger, arrow.INT64: duck.TypeBigInt,
		arrow.UINT8: duck.TypeUTinyInt, arrow.UINT16: duck.TypeUSmallInt,
		arrow.UINT32: duck.TypeUInteger, arrow.UINT64: duck.TypeUBigInt,
		arrow.FLOAT16: duck.TypeFloat, arrow.FLOAT32: duck.TypeFloat, arrow.FLOAT64: duck.TypeDouble,
		arrow.STRING: duck.TypeVarchar, arrow.LARGE_STRING: duck.TypeVarchar, arrow.STRING_VIEW: duck.TypeVarchar,
		arrow.BINARY: duck.TypeBlob, arrow.LARGE_BINARY: duck.TypeBlob, arrow.BINARY_VIEW: duck.TypeBlob,
		arrow.FIXED_SIZE_BINARY: duck.TypeBlob, arrow.DECIMAL256: duck.TypeVarchar,
		arrow.DATE32: duck.TypeDate, arrow.DATE64: duck.TypeDate,
		arrow.TIME32: duck.TypeTime, arrow.TIME64: duck.TypeTime,
		arrow.DURATION: duck.TypeInterval, arrow.INTERVAL_MONTHS: duck.TypeInterval,
		arrow.INTERVAL_DAY_TIME: duck.TypeInterval, arrow.INTERVAL_MONTH_DAY_NANO: duck.TypeInterval,
	}
}

func timestampType(t *arrow.TimestampType) duck.Type {
	if t.TimeZone != "" {
		return duck.TypeTimestampTZ
	}
	switch t.Unit {
	case arrow.Second:
		return duck.TypeTimestampS
	case arrow.Millisecond:
		return duck.TypeTimestampMS
	case arrow.Nanosecond:
		return duck.TypeTimestampNS
	default:
		return duck.TypeTimestamp
	}
}

func mapType(t *arrow.MapType) (duck.LogicalType, error) {
	key, err := engineType(t.KeyType())
	if err != nil {
		return duck.LogicalType{}, err
	}
	defer duck.DestroyLogicalType(&key)
	item, err := engineType(t.ItemType())
	if err != nil {
		return duck.LogicalType{}, err
	}
	defer duck.DestroyLogicalType(&item)
	return duck.CreateMapType(key, item), nil
}

func structType(t *arrow.StructType) (duck.LogicalType, error) {
	types := make([]duck.LogicalType, 0, t.NumFields())
	names := make([]string, 0, t.NumFields())
	defer func() { destroyTypes(types) }()
	for _, f := range t.Fields() {
		child, err := engineType(f.Type)
		if err != nil {
			return duck.LogicalType{}, err
		}
		types, names = append(types, child), append(names, f.Name)
	}
	return duck.CreateStructType(types, names), nil
}

// castName is a type's name for a CAST, or "" for types that a parameter is better not cast to: nested
// ones, and those the engine does not know yet.
func castName(t duck.LogicalType) string {
	id := duck.GetTypeId(t)
	if id == duck.TypeDecimal {
		return fmt.Sprintf("DECIMAL(%d,%d)", duck.DecimalWidth(t), duck.DecimalScale(t))
	}
	return map[duck.Type]string{
		duck.TypeBoolean: "BOOLEAN", duck.TypeTinyInt: "TINYINT", duck.TypeSmallInt: "SMALLINT",
		duck.TypeInteger: "INTEGER", duck.TypeBigInt: "BIGINT", duck.TypeUTinyInt: "UTINYINT",
		duck.TypeUSmallInt: "USMALLINT", duck.TypeUInteger: "UINTEGER", duck.TypeUBigInt: "UBIGINT",
		duck.TypeFloat: "FLOAT", duck.TypeDouble: "DOUBLE", duck.TypeVarchar: "VARCHAR", duck.TypeBlob: "BLOB",
		duck.TypeDate: "DATE", duck.TypeTime: "TIME", duck.TypeTimestamp: "TIMESTAMP",
		duck.TypeTimestampS: "TIMESTAMP_S", duck.TypeTimestampMS: "TIMESTAMP_MS",
		duck.TypeTimestampNS: "TIMESTAMP_NS", duck.TypeTimestampTZ: "TIMESTAMPTZ",
	}[id]
}

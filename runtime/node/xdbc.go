package node

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
)

// dataType is a type of the engine as ODBC and JDBC describe one.
type dataType struct {
	name     string
	code     int32 // of XDBC
	size     int32
	quote    string // around literals
	params   []string
	unsigned bool
	number   bool
	fixed    bool // has a fixed precision and scale
	radix    int32
	maxScale int32
}

func dataTypes() []dataType {
	return []dataType{
		{name: "BIGINT", code: -5, size: 19, number: true, fixed: true, radix: 10},
		{name: "BLOB", code: -3, size: 2147483647, quote: "'"},
		{name: "BOOLEAN", code: -7, size: 1},
		{name: "DATE", code: 91, size: 10, quote: "'"},
		{name: "DECIMAL", code: 3, size: 38, params: []string{"precision", "scale"}, number: true, radix: 10, maxScale: 38},
		{name: "DOUBLE", code: 8, size: 53, number: true, radix: 2},
		{name: "FLOAT", code: 7, size: 24, number: true, radix: 2},
		{name: "HUGEINT", code: 3, size: 38, number: true, fixed: true, radix: 10},
		{name: "INTEGER", code: 4, size: 10, number: true, fixed: true, radix: 10},
		{name: "SMALLINT", code: 5, size: 5, number: true, fixed: true, radix: 10},
		{name: "TIME", code: 92, size: 15, quote: "'", maxScale: 6},
		{name: "TIMESTAMP", code: 93, size: 26, quote: "'", maxScale: 6},
		{name: "TIMESTAMP WITH TIME ZONE", code: 93, size: 32, quote: "'", maxScale: 6},
		{name: "TINYINT", code: -6, size: 3, number: true, fixed: true, radix: 10},
		{name: "UBIGINT", code: -5, size: 20, number: true, unsigned: true, fixed: true, radix: 10},
		{name: "UINTEGER", code: -5, size: 10, number: true, unsigned: true, fixed: true, radix: 10},
		{name: "USMALLINT", code: 4, size: 5, number: true, unsigned: true, fixed: true, radix: 10},
		{name: "UTINYINT", code: 5, size: 3, number: true, unsigned: true, fixed: true, radix: 10},
		{name: "UUID", code: 12, size: 36, quote: "'"},
		{name: "VARCHAR", code: 12, size: 2147483647, quote: "'", params: []string{"length"}},
	}
}

// GetFlightInfoXdbcTypeInfo describes the list of data types.
func (s *server) GetFlightInfoXdbcTypeInfo(_ context.Context, _ flightsql.GetXdbcTypeInfo, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.XdbcTypeInfo)
}

// DoGetXdbcTypeInfo lists the data types.
func (s *server) DoGetXdbcTypeInfo(_ context.Context, cmd flightsql.GetXdbcTypeInfo) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	b := array.NewRecordBuilder(allocator(), schema_ref.XdbcTypeInfo)
	defer b.Release()
	for _, t := range dataTypes() {
		if want := cmd.GetDataType(); want == nil || *want == t.code {
			t.append(b)
		}
	}
	return oneBatch(schema_ref.XdbcTypeInfo, b.NewRecordBatch())
}

// append adds the type as a row, in the order of the reference schema.
func (t dataType) append(b *array.RecordBuilder) {
	const nullable, searchable = 1, 3
	b.Field(0).(*array.StringBuilder).Append(t.name)
	b.Field(1).(*array.Int32Builder).Append(t.code)
	b.Field(2).(*array.Int32Builder).Append(t.size)
	appendText(b.Field(3), t.quote)
	appendText(b.Field(4), t.quote)
	params := b.Field(5).(*array.ListBuilder)
	params.Append(true)
	params.ValueBuilder().(*array.StringBuilder).AppendValues(t.params, nil)
	b.Field(6).(*array.Int32Builder).Append(nullable)
	b.Field(7).(*array.BooleanBuilder).Append(t.name == "VARCHAR")
	b.Field(8).(*array.Int32Builder).Append(searchable)
	if t.number {
		b.Field(9).(*array.BooleanBuilder).Append(t.unsigned)
	} else {
		b.Field(9).AppendNull()
	}
	b.Field(10).(*array.BooleanBuilder).Append(t.fixed)
	b.Field(11).(*array.BooleanBuilder).Append(false)
	b.Field(12).(*array.StringBuilder).Append(t.name)
	b.Field(13).(*array.Int32Builder).Append(0)
	b.Field(14).(*array.Int32Builder).Append(t.maxScale)
	b.Field(15).(*array.Int32Builder).Append(t.code)
	b.Field(16).AppendNull()
	if t.number {
		b.Field(17).(*array.Int32Builder).Append(t.radix)
	} else {
		b.Field(17).AppendNull()
	}
	b.Field(18).AppendNull()
}

func appendText(b array.Builder, v string) {
	if v == "" {
		b.AppendNull()
		return
	}
	b.(*array.StringBuilder).Append(v)
}

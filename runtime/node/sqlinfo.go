package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"

	"github.com/qod-io/qod/runtime/wire"
)

// registerInfo tells arrow-go all that clients may ask about the server. Clients break on missing codes,
// so every code is answered; 0 as a maximum means that there is none.
func (s *server) registerInfo() error {
	for code, value := range s.serverInfo() {
		if err := s.RegisterSqlInfo(code, value); err != nil {
			return fmt.Errorf("register info %d: %w", code, err)
		}
	}
	for code, value := range languageInfo() {
		if err := s.RegisterSqlInfo(code, value); err != nil {
			return fmt.Errorf("register info %d: %w", code, err)
		}
	}
	for code := flightsql.SqlInfoMaxBinaryLiteralLen; code <= flightsql.SqlInfoMaxUsernameLen; code++ {
		value := any(int64(0))
		if code == flightsql.SqlInfoMaxRowSizeIncludesBlobs {
			value = true
		}
		if err := s.RegisterSqlInfo(code, value); err != nil {
			return fmt.Errorf("register info %d: %w", code, err)
		}
	}
	return nil
}

func (s *server) serverInfo() map[flightsql.SqlInfo]any {
	return map[flightsql.SqlInfo]any{
		flightsql.SqlInfoFlightSqlServerName:                        "qod",
		flightsql.SqlInfoFlightSqlServerVersion:                     "DuckDB " + EngineVersion,
		flightsql.SqlInfoFlightSqlServerArrowVersion:                arrow.PkgVersion,
		flightsql.SqlInfoFlightSqlServerReadOnly:                    s.cfg.Role == roleRead,
		flightsql.SqlInfoFlightSqlServerSql:                         true,
		flightsql.SqlInfoFlightSqlServerSubstrait:                   false,
		flightsql.SqlInfoFlightSqlServerSubstraitMinVersion:         "",
		flightsql.SqlInfoFlightSqlServerSubstraitMaxVersion:         "",
		flightsql.SqlInfoFlightSqlServerTransaction:                 int32(1),
		flightsql.SqlInfoFlightSqlServerCancel:                      true,
		flightsql.SqlInfoFlightSqlServerBulkIngestion:               false,
		flightsql.SqlInfoFlightSqlServerIngestTransactionsSupported: false,
		flightsql.SqlInfoFlightSqlServerStatementTimeout:            int32(s.live.Load().StatementTimeout.Milliseconds()),
		flightsql.SqlInfoFlightSqlServerTransactionTimeout:          int32(s.live.Load().SessionIdleTimeout.Milliseconds()),
	}
}

func languageInfo() map[flightsql.SqlInfo]any {
	const insensitive, sortedAtEnd = int32(1), int32(3)
	return map[flightsql.SqlInfo]any{
		flightsql.SqlInfoDDLCatalog:                                          false,
		flightsql.SqlInfoDDLSchema:                                           true,
		flightsql.SqlInfoDDLTable:                                            true,
		flightsql.SqlInfoIdentifierCase:                                      insensitive,
		flightsql.SqlInfoIdentifierQuoteChar:                                 `"`,
		flightsql.SqlInfoQuotedIdentifierCase:                                insensitive,
		flightsql.SqlInfoAllTablesAreASelectable:                             true,
		flightsql.SqlInfoNullOrdering:                                        sortedAtEnd,
		flightsql.SqlInfoKeywords:                                            keywords(),
		flightsql.SqlInfoNumericFunctions:                                    []string{"abs", "ceil", "exp", "floor", "ln", "log", "mod", "pi", "pow", "round", "sign", "sqrt", "trunc"},
		flightsql.SqlInfoStringFunctions:                                     []string{"concat", "contains", "left", "length", "lower", "lpad", "ltrim", "repeat", "replace", "reverse", "right", "rpad", "rtrim", "substring", "trim", "upper"},
		flightsql.SqlInfoSystemFunctions:                                     []string{"coalesce", "current_catalog", "current_schema", "ifnull", "nullif", "version"},
		flightsql.SqlInfoDateTimeFunctions:                                   []string{"current_date", "date_diff", "date_part", "date_trunc", "dayname", "extract", "monthname", "now", "strftime"},
		flightsql.SqlInfoSearchStringEscape:                                  `\`,
		flightsql.SqlInfoExtraNameChars:                                      "",
		flightsql.SqlInfoSupportsColumnAliasing:                              true,
		flightsql.SqlInfoNullPlusNullIsNull:                                  true,
		flightsql.SqlInfoSupportsConvert:                                     map[int32][]int32{},
		flightsql.SqlInfoSupportsTableCorrelationNames:                       true,
		flightsql.SqlInfoSupportsDifferentTableCorrelationNames:              false,
		flightsql.SqlInfoSupportsExpressionsInOrderBy:                        true,
		flightsql.SqlInfoSupportsOrderByUnrelated:                            true,
		flightsql.SqlInfoSupportedGroupBy:                                    int32(3),
		flightsql.SqlInfoSupportsLikeEscapeClause:                            true,
		flightsql.SqlInfoSupportsNonNullableColumns:                          true,
		flightsql.SqlInfoSupportedGrammar:                                    int32(3),
		flightsql.SqlInfoANSI92SupportedLevel:                                int32(3),
		flightsql.SqlInfoSupportsIntegrityEnhancementFacility:                false,
		flightsql.SqlInfoOuterJoinsSupportLevel:                              int32(3),
		flightsql.SqlInfoSchemaTerm:                                          "schema",
		flightsql.SqlInfoProcedureTerm:                                       "procedure",
		flightsql.SqlInfoCatalogTerm:                                         "database",
		flightsql.SqlInfoCatalogAtStart:                                      true,
		flightsql.SqlInfoSchemasSupportedActions:                             int32(7),
		flightsql.SqlInfoCatalogsSupportedActions:                            int32(7),
		flightsql.SqlInfoSupportedPositionedCommands:                         int32(0),
		flightsql.SqlInfoSelectForUpdateSupported:                            false,
		flightsql.SqlInfoStoredProceduresSupported:                           false,
		flightsql.SqlInfoSupportedSubqueries:                                 int32(15),
		flightsql.SqlInfoCorrelatedSubqueriesSupported:                       true,
		flightsql.SqlInfoSupportedUnions:                                     int32(3),
		flightsql.SqlInfoDefaultTransactionIsolation:                         int64(3), // snapshots: repeatable read
		flightsql.SqlInfoTransactionsSupported:                               true,
		flightsql.SqlInfoSupportedTransactionsIsolationlevels:                int32(1 << 3),
		flightsql.SqlInfoDataDefinitionCausesTransactionCommit:               false,
		flightsql.SqlInfoDataDefinitionsInTransactionsIgnored:                false,
		flightsql.SqlInfoSupportedResultSetTypes:                             int32(1 << 1), // forward only
		flightsql.SqlInfoSupportedConcurrenciesForResultSetUnspecified:       int32(0),
		flightsql.SqlInfoSupportedConcurrenciesForResultSetForwardOnly:       int32(1 << 1), // read only
		flightsql.SqlInfoSupportedConcurrenciesForResultSetScrollSensitive:   int32(0),
		flightsql.SqlInfoSupportedConcurrenciesForResultSetScrollInsensitive: int32(0),
		flightsql.SqlInfoBatchUpdatesSupported:                               true,
		flightsql.SqlInfoSavePointsSupported:                                 false,
		flightsql.SqlInfoNamedParametersSupported:                            false,
		flightsql.SqlInfoLocatorsUpdateCopy:                                  false,
		flightsql.SqlInfoStoredFunctionsUsingCallSyntaxSupported:             false,
	}
}

func keywords() []string {
	return []string{
		"anti", "asof", "attach", "describe", "exclude", "ilike", "lambda", "macro", "map", "pivot", "positional",
		"pragma", "qualify", "replace", "sample", "semi", "show", "struct", "summarize", "try_cast", "unpivot",
	}
}

// infoCodes is a request for some codes.
type infoCodes []uint32

// GetInfo returns the codes.
func (c infoCodes) GetInfo() []uint32 { return c }

// GetFlightInfoSqlInfo describes the information about the server.
func (s *server) GetFlightInfoSqlInfo(_ context.Context, _ flightsql.GetSqlInfo, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.SqlInfo)
}

// DoGetSqlInfo tells about the server. Codes that nobody knows are left out; arrow-go would fail on them.
func (s *server) DoGetSqlInfo(ctx context.Context, cmd flightsql.GetSqlInfo) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	callOf(ctx).say(wire.ClassKey, string(wire.Metadata))
	known := s.knownInfo()
	asked := cmd.GetInfo()
	if len(asked) == 0 {
		return s.BaseServer.DoGetSqlInfo(ctx, infoCodes(known))
	}
	var codes infoCodes
	for _, code := range asked {
		if slices.Contains(known, code) {
			codes = append(codes, code)
		}
	}
	if len(codes) == 0 {
		return rowsOf(schema_ref.SqlInfo, nil)
	}
	return s.BaseServer.DoGetSqlInfo(ctx, codes)
}

func (s *server) knownInfo() []uint32 {
	var known []uint32
	for code := range s.serverInfo() {
		known = append(known, uint32(code))
	}
	for code := range languageInfo() {
		known = append(known, uint32(code))
	}
	for code := flightsql.SqlInfoMaxBinaryLiteralLen; code <= flightsql.SqlInfoMaxUsernameLen; code++ {
		known = append(known, uint32(code))
	}
	slices.Sort(known)
	return known
}

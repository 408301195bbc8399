package guard

// This file lists what of DuckDB 1.5's syntax tree, as json_serialize_sql writes it, is known. What is
// not listed is refused: a node or a field of a later version is looked at before it is allowed.

// vocabulary is the known words of the syntax tree.
type vocabulary struct {
	classes     map[string]bool // of expressions
	expressions map[string]bool // types of expressions
	nodes       map[string]bool // types of everything else
	keys        map[string]bool // names of fields
}

func newVocabulary() vocabulary {
	return vocabulary{
		classes: set(`CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT DEFAULT FUNCTION OPERATOR
			STAR SUBQUERY WINDOW PARAMETER COLLATE LAMBDA POSITIONAL_REFERENCE BETWEEN`),
		expressions: set(`OPERATOR_CAST OPERATOR_NOT OPERATOR_IS_NULL OPERATOR_IS_NOT_NULL OPERATOR_UNPACK
			OPERATOR_NULLIF OPERATOR_COALESCE OPERATOR_TRY
			COMPARE_EQUAL COMPARE_NOTEQUAL COMPARE_LESSTHAN COMPARE_GREATERTHAN COMPARE_LESSTHANOREQUALTO
			COMPARE_GREATERTHANOREQUALTO COMPARE_IN COMPARE_NOT_IN COMPARE_DISTINCT_FROM
			COMPARE_NOT_DISTINCT_FROM COMPARE_BETWEEN COMPARE_NOT_BETWEEN CONJUNCTION_AND CONJUNCTION_OR
			VALUE_CONSTANT VALUE_PARAMETER VALUE_DEFAULT GROUPING_FUNCTION
			WINDOW_AGGREGATE WINDOW_RANK WINDOW_RANK_DENSE WINDOW_NTILE WINDOW_PERCENT_RANK WINDOW_CUME_DIST
			WINDOW_ROW_NUMBER WINDOW_FIRST_VALUE WINDOW_LAST_VALUE WINDOW_LEAD WINDOW_LAG WINDOW_NTH_VALUE
			WINDOW_FILL FUNCTION CASE_EXPR ARRAY_EXTRACT ARRAY_SLICE STRUCT_EXTRACT ARRAY_CONSTRUCTOR ARROW
			SUBQUERY STAR COLUMN_REF COLLATE LAMBDA POSITIONAL_REFERENCE`),
		nodes: set(`SELECT_NODE SET_OPERATION_NODE RECURSIVE_CTE_NODE
			BASE_TABLE SUBQUERY JOIN TABLE_FUNCTION EXPRESSION_LIST EMPTY PIVOT SHOW_REF
			LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER ORDER_MODIFIER DISTINCT_MODIFIER
			ORDER_DEFAULT ASCENDING DESCENDING
			DECIMAL_TYPE_INFO STRING_TYPE_INFO LIST_TYPE_INFO STRUCT_TYPE_INFO ARRAY_TYPE_INFO UNBOUND_TYPE_INFO`),
		keys: set(`class type alias query_location value select_list from_table aggregate_handling
			modifiers limit offset orders null_order expression cte_map aliases query node cte_name union_all
			left right materialized key_targets key function_name schema catalog children order_bys is_operator
			distinct filter column_names table_name schema_name catalog_name at_clause unit expr function
			column_name_alias join_type ref_type condition using_columns cast_type try_cast id type_info
			child_type child_types first second size width scale name user_type_modifiers identifier index
			case_checks when_expr then_expr else_expr subquery_type subquery child comparison_type
			exclude_list qualified_exclude_list table column replace_list rename_list relation_name columns lhs
			where_clause group_expressions group_sets having qualify sample sample_size is_percentage method
			seed partitions start end start_expr end_expr offset_expr default_expr ignore_nulls filter_expr
			exclude_clause arg_orders values setop_type setop_all distinct_on_targets input lower upper
			collation source aggregates unpivot_names pivots pivot_expressions entries groups include_nulls
			star_expr show_type with_ordinality is_null`),
	}
}

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What somebody sees through JDBC who may see a part of a database, with the calls that DBeaver makes. It
 * runs as the user of testdata/clients/reader.qod.hcl over the tables of testdata/clients/shop.sql. Whoever
 * runs it looks for what is hidden in all that was received, so nothing here may send such a word itself.
 */
public final class JdbcReader extends Jdbc {
    private static final String[] ALL = {"sh_p.notes", "shop.long_lines", "shop.order_lines", "shop.orders", "shop.orderxlines"};
    private static final String LINES = "id BIGINT, order_id BIGINT, name VARCHAR";
    private static final String ORDERS = "id BIGINT, region VARCHAR, amount DECIMAL(12,2), card BIGINT";

    public static void main(String[] args) {
        check("catalogs and schemas", JdbcReader::schemas);
        check("tables by pattern", JdbcReader::tables);
        check("tables by type", JdbcReader::types);
        check("columns", JdbcReader::columns);
        check("keys and the rest of a tree", JdbcReader::rest);
        check("metadata getters", Jdbc::getters);
        check("a tree is opened", JdbcReader::tree);
        check("results and prepared statements", JdbcReader::results);
        check("hidden is told as absent", JdbcReader::denied);
        check("temporary tables", JdbcReader::temporary);
        exit();
    }

    private static void schemas(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        equal(list(m.getCatalogs(), "TABLE_CAT"), "[tpch]");
        equal(list(m.getSchemas(), "TABLE_SCHEM"), "[sh_p, shop]");
        equal(list(m.getSchemas(), "TABLE_CATALOG"), "[tpch, tpch]");
        equal(list(m.getSchemas("tpch", "%"), "TABLE_SCHEM"), "[sh_p, shop]");
        equal(list(m.getSchemas(null, null), "TABLE_SCHEM"), "[sh_p, shop]");
        equal(list(m.getSchemas(null, "sh_p"), "TABLE_SCHEM"), "[sh_p, shop]");
        equal(list(m.getSchemas("tpch", "sh\\_p"), "TABLE_SCHEM"), "[sh_p]");
        for (String pattern : new String[] {"", "hr", "main", "%schema", "sh\\%"}) {
            equal(list(m.getSchemas("tpch", pattern), "TABLE_SCHEM"), "[]");
        }
        for (String catalog : new String[] {"", "temp", "system", "absent"}) {
            equal(list(m.getSchemas(catalog, null), "TABLE_SCHEM"), "[]");
        }
    }

    /** The tables that are listed, as schema.table. */
    private static String tables(DatabaseMetaData m, String catalog, String schema, String table, String... types) throws SQLException {
        List<String> out = new ArrayList<>();
        try (ResultSet r = m.getTables(catalog, schema, table, types)) {
            while (r.next()) {
                out.add(r.getString("TABLE_SCHEM") + "." + r.getString("TABLE_NAME"));
                equal(r.getString("REMARKS"), null);
            }
        }
        return String.join(", ", out);
    }

    private static void tables(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        String all = String.join(", ", ALL);
        String[] any = null;
        for (String pattern : new String[] {null, "%"}) {
            equal(tables(m, null, pattern, pattern, any), all);
            equal(tables(m, "tpch", pattern, pattern, any), all);
            for (String catalog : new String[] {"", "temp", "absent"}) {
                equal(tables(m, catalog, pattern, pattern, any), "");
            }
        }
        Map<String, String> want = new LinkedHashMap<>();
        want.put("order_lines", "shop.order_lines, shop.orderxlines");
        want.put("order\\_lines", "shop.order_lines");
        want.put("order%", "shop.order_lines, shop.orders, shop.orderxlines");
        want.put("%lines", "shop.long_lines, shop.order_lines, shop.orderxlines");
        want.put("order_", "shop.orders");
        for (String none : new String[] {"", "order\\%", "payroll", "pay%", "%table", "%view", "staff", "nation"}) {
            want.put(none, "");
        }
        for (var one : want.entrySet()) {
            equal(one.getKey() + ": " + tables(m, "tpch", "sh%", one.getKey(), any), one.getKey() + ": " + one.getValue());
        }
        equal(tables(m, null, "hr", "%", any) + tables(m, null, "", "%", any), "");
        equal(tables(m, "tpch", "sh\\_p", "%", any), "sh_p.notes");
    }

    private static void types(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        equal(list(m.getTableTypes(), "TABLE_TYPE"), "[LOCAL TEMPORARY, TABLE, VIEW]");
        String all = String.join(", ", ALL), views = "shop.long_lines", tables = all.replace("shop.long_lines, ", "");
        equal(tables(m, null, null, "%", "TABLE"), tables);
        equal(tables(m, null, null, "%", "VIEW"), views);
        equal(tables(m, null, null, "%", "VIEW", "TABLE"), all);
        equal(tables(m, null, null, "%"), all);
        equal(tables(m, null, null, "%", "LOCAL TEMPORARY"), "");
        equal(tables(m, null, null, "%", "SYSTEM TABLE", "INDEX"), "");
        equal(list(m.getTables(null, null, "%lines", null), "TABLE_TYPE"), "[VIEW, TABLE, TABLE]");
    }

    /** The columns that are listed, as name type. */
    private static String columns(DatabaseMetaData m, String catalog, String schema, String table, String column) throws SQLException {
        List<String> out = new ArrayList<>();
        try (ResultSet r = m.getColumns(catalog, schema, table, column)) {
            while (r.next()) {
                out.add(r.getString("COLUMN_NAME") + " " + r.getString("TYPE_NAME"));
                equal(r.getString("REMARKS") + r.getString("COLUMN_DEF"), "nullnull");
            }
        }
        return String.join(", ", out);
    }

    private static void columns(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        for (String any : new String[] {null, "%"}) {
            equal(columns(m, null, any, "orders", any), ORDERS);
            equal(columns(m, "tpch", "shop", "order\\_lines", any), LINES);
            equal(columns(m, null, "sh%", "long\\_lines", any), "id BIGINT, name VARCHAR");
            equal(columns(m, null, "sh\\_p", any, any), "id INTEGER");
            equal(list(m.getColumns(null, any, any, any), "COLUMN_NAME").size(), 13);
        }
        equal(columns(m, null, null, "order\\_lines", "%d"), "id BIGINT, order_id BIGINT");
        equal(columns(m, null, null, "order\\_lines", "_d"), "id BIGINT");
        for (String hidden : new String[] {"cost", "c%", "order%cost", ""}) {
            equal(columns(m, null, null, "order\\_lines", hidden), "");
        }
        equal(columns(m, null, null, "payroll", null) + columns(m, "tpch", "hr", "%", "%") + columns(m, "tpch", "shop", "", null), "");
        equal(list(m.getColumns(null, "shop", "orders", "%"), "DATA_TYPE"), "[-5, 12, 3, -5]");
        equal(list(m.getColumns(null, "shop", "orders", "%"), "IS_NULLABLE"), "[NO, YES, YES, YES]");
        equal(list(m.getColumns(null, "shop", "orders", "%"), "ORDINAL_POSITION"), "[1, 2, 3, 4]");
    }

    private static int count(ResultSet r) throws SQLException {
        return list(r, r.getMetaData().getColumnLabel(1)).size();
    }

    /** What DBeaver asks of a table and of a database besides; the driver answers most of it by itself. */
    private static void rest(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        int rows = 0;
        for (String table : new String[] {"orders", "long_lines", "payroll", "absent"}) {
            for (ResultSet r : new ResultSet[] {m.getPrimaryKeys("tpch", "shop", table), m.getImportedKeys("tpch", "shop", table),
                    m.getExportedKeys("tpch", "shop", table), m.getCrossReference("tpch", "shop", table, "tpch", "hr", "staff")}) {
                equal(r.next(), false);
                r.close();
            }
            rows += count(m.getIndexInfo("tpch", "shop", table, false, true));
            rows += count(m.getBestRowIdentifier("tpch", "shop", table, DatabaseMetaData.bestRowSession, true));
            rows += count(m.getVersionColumns("tpch", "shop", table)) + count(m.getColumnPrivileges("tpch", "shop", table, "%"));
        }
        rows += count(m.getProcedures(null, null, "%")) + count(m.getProcedureColumns(null, null, "%", "%"));
        rows += count(m.getFunctions(null, null, "%")) + count(m.getFunctionColumns(null, null, "%", "%"));
        rows += count(m.getTablePrivileges(null, null, "%")) + count(m.getUDTs(null, null, "%", null));
        rows += count(m.getSuperTables(null, null, "%")) + count(m.getPseudoColumns(null, null, "%", "%"));
        equal(rows, 0);
        count(m.getTypeInfo());
        count(m.getClientInfoProperties());
    }

    /** Opens each level under what the one above listed, and the data of each table. */
    private static void tree(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        List<String> seen = new ArrayList<>();
        for (String catalog : list(m.getCatalogs(), "TABLE_CAT")) {
            for (String schema : list(m.getSchemas(catalog, null), "TABLE_SCHEM")) {
                String within = schema.replace("_", m.getSearchStringEscape() + "_");
                for (String table : list(m.getTables(catalog, within, "%", new String[] {"TABLE", "VIEW"}), "TABLE_NAME")) {
                    String exactly = table.replace("_", m.getSearchStringEscape() + "_");
                    String quote = m.getIdentifierQuoteString();
                    String name = quote + catalog + quote + "." + quote + schema + quote + "." + quote + table + quote;
                    try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT * FROM " + name + " LIMIT 200")) {
                        List<String> read = new ArrayList<>();
                        ResultSetMetaData of = r.getMetaData();
                        while (r.next()) {
                            for (int i = 1; i <= of.getColumnCount(); i++) {
                                r.getObject(i);
                            }
                        }
                        List<String> told = list(m.getColumns(catalog, within, exactly, "%"), "COLUMN_NAME");
                        for (int i = 1; i <= told.size(); i++) { // the driver lists the columns of an empty result twice
                            read.add(of.getColumnName(i));
                        }
                        equal(read, told);
                    }
                    seen.add(schema + "." + table);
                }
            }
        }
        equal(seen, List.of(ALL));
    }

    private static String described(ResultSetMetaData m) throws SQLException {
        List<String> out = new ArrayList<>();
        for (int i = 1; i <= m.getColumnCount(); i++) {
            out.add(m.getColumnLabel(i) + " " + m.getColumnTypeName(i));
        }
        return String.join(", ", out);
    }

    private static void results(Connection c) throws Exception {
        String plain = ORDERS.replace("(12,2)", "");
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT * FROM shop.orders ORDER BY id")) {
            equal(described(r.getMetaData()), plain);
            for (long id = 0; id < 4; id++) {
                equal(r.next(), true);
                equal(r.getLong("id") + r.getString("region") + r.getLong("card"), id + "EU4");
                equal(r.getBigDecimal("amount").doubleValue(), id * 1.5);
            }
            equal(r.next(), false);
        }
        try (PreparedStatement p = c.prepareStatement("SELECT * FROM shop.orders WHERE id >= ? AND region = ?")) {
            equal(described(p.getMetaData()), plain);
            ParameterMetaData m = p.getParameterMetaData();
            equal(m.getParameterCount(), 2);
            for (int i = 1; i <= 2; i++) {
                m.getParameterTypeName(i);
            }
            for (String region : new String[] {"EU", "US"}) {
                p.setLong(1, 2);
                p.setString(2, region);
                try (ResultSet r = p.executeQuery()) {
                    equal(list(r, "id"), region.equals("EU") ? "[2, 3]" : "[]");
                }
            }
        }
        equal(one(c, "SELECT count(*) FROM shop.long_lines"), 4);
    }

    /** All that an error tells, with the name that the statement says taken out. */
    private static String told(Connection c, String statement, String name) {
        StringBuilder out = new StringBuilder();
        for (boolean prepared : new boolean[] {false, true}) {
            String sql = String.format(statement, name);
            try (Statement s = prepared ? c.prepareStatement(sql) : c.createStatement()) {
                boolean rows = s instanceof PreparedStatement p ? p.execute() : s.execute(sql);
                throw new AssertionError(sql + ": no error, rows: " + rows);
            } catch (Exception e) { // the driver lets some of Flight's own through
                for (Throwable t = e; t != null; t = t.getCause()) {
                    out.append(t.getClass().getName()).append(' ').append(t.getMessage()).append('\n');
                }
                if (e instanceof SQLException q) {
                    out.append(q.getSQLState()).append(' ').append(q.getErrorCode()).append('\n');
                }
            }
        }
        return out.toString().replace(name.substring(name.indexOf('.') + 1), "…");
    }

    private static void denied(Connection c) throws Exception {
        String[][] pairs = {
            {"SELECT * FROM %s", "shop.payroll", "shop.absent"}, {"SELECT * FROM %s", "hr.staff", "hr.absent"},
            {"SELECT * FROM %s", "main.nation", "main.absent"}, {"INSERT INTO %s VALUES (1)", "shop.payroll", "shop.absent"},
            {"DELETE FROM %s", "hr.staff", "hr.absent"}, {"DROP TABLE %s", "shop.payroll", "shop.absent"},
            {"DESCRIBE %s", "shop.payroll", "shop.absent"}, {"USE %s", "hr", "absent"},
            {"SELECT %s FROM shop.order_lines", "cost", "absent"}, {"SELECT max(%s) FROM shop.order_lines", "cost", "absent"},
        };
        for (String[] pair : pairs) {
            equal(told(c, pair[0], pair[1]), told(c, pair[0], pair[2]));
        }
        for (String sql : new String[] {"SELECT %s::INTEGER FROM shop.orders", "SELECT error(%s) FROM shop.orders"}) {
            told(c, sql, "region");
        }
        equal(one(c, "SELECT 1"), 1);
    }

    private static void temporary(Connection c) throws Exception {
        try (Statement s = c.createStatement(); Connection other = connect()) {
            s.execute("CREATE TEMPORARY TABLE mine AS SELECT * FROM shop.orders");
            DatabaseMetaData m = c.getMetaData();
            equal(tables(m, null, null, "%", "LOCAL TEMPORARY"), "main.mine");
            equal(columns(m, null, null, "mine", null), ORDERS);
            equal(tables(other.getMetaData(), null, null, "%", "LOCAL TEMPORARY"), "");
        }
    }
}

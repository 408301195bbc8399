import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** What a JDBC user of the Arrow Flight SQL driver relies on, as the owner of a database. */
public final class JdbcSuite extends Jdbc {
    public static void main(String[] args) throws Exception {
        check("connect", c -> equal(one(c, "SELECT 41 + 1"), 42));
        check("types", JdbcSuite::types);
        check("nulls", JdbcSuite::nulls);
        check("prepared twice", JdbcSuite::preparedTwice);
        check("batch", JdbcSuite::batch);
        check("transaction by text", JdbcSuite::transaction);
        check("metadata", JdbcSuite::metadata);
        check("metadata getters", JdbcSuite::getters);
        check("an error is told", JdbcSuite::error);
        check("Q1", JdbcSuite::q1);
        exit();
    }

    private static void types(Connection c) throws Exception {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(
                "SELECT true AS b, 7::INTEGER AS i, 9007199254740993::BIGINT AS l, 2.5::DOUBLE AS d, 123.45::DECIMAL(10,2) AS n, "
                + "'Grüße' AS s, DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:34:56' AS ts, [1, 2] AS list")) {
            r.next();
            equal(r.getBoolean("b"), true);
            equal(r.getInt("i"), 7);
            equal(r.getLong("l"), 9007199254740993L);
            equal(r.getDouble("d"), 2.5);
            equal(r.getBigDecimal("n"), "123.45");
            equal(r.getString("s"), "Grüße");
            equal(r.getDate("day"), "2024-02-29");
            equal(((Object[]) r.getArray("list").getArray()).length, 2);
            equal(r.next(), false);
        }
    }

    private static void nulls(Connection c) throws Exception {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT NULL::INTEGER AS a, NULL::VARCHAR AS b")) {
            r.next();
            equal(r.getInt("a"), 0);
            equal(r.wasNull(), true);
            equal(r.getString("b"), null);
        }
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT 1::BIGINT AS a, 'x' AS b WHERE false")) {
            // The driver 18.3 lists the columns of an empty result twice (arrow-java 44); the first are right.
            equal(r.getMetaData().getColumnLabel(1) + r.getMetaData().getColumnLabel(2), "ab");
            equal(r.next(), false);
        }
    }

    private static void preparedTwice(Connection c) throws Exception {
        try (PreparedStatement p = c.prepareStatement("SELECT range FROM range(10) WHERE range = ?")) {
            for (long want = 3; want < 6; want++) {
                p.setLong(1, want);
                try (ResultSet r = p.executeQuery()) {
                    equal(r.next(), true);
                    equal(r.getLong(1), want);
                    equal(r.next(), false);
                }
            }
        }
    }

    private static void batch(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("DROP TABLE IF EXISTS jdbc_batch");
            s.execute("CREATE TABLE jdbc_batch (id BIGINT, name VARCHAR)");
        }
        try (PreparedStatement p = c.prepareStatement("INSERT INTO jdbc_batch VALUES (?, ?)")) {
            for (int i = 0; i < 100; i++) {
                p.setLong(1, i);
                p.setString(2, "n" + i);
                p.addBatch();
            }
            p.executeBatch();
        }
        equal(one(c, "SELECT count(*) || '/' || sum(id) FROM jdbc_batch"), "100/4950");
        try (Statement s = c.createStatement()) {
            equal(s.executeUpdate("DELETE FROM jdbc_batch WHERE id < 10"), 10);
            s.execute("DROP TABLE jdbc_batch");
        }
    }

    private static void transaction(Connection c) throws Exception {
        try (Connection other = connect(); Statement s = c.createStatement()) {
            s.execute("DROP TABLE IF EXISTS jdbc_tx");
            s.execute("CREATE TABLE jdbc_tx (id BIGINT)");
            s.execute("BEGIN");
            s.execute("INSERT INTO jdbc_tx VALUES (1)");
            equal(one(c, "SELECT count(*) FROM jdbc_tx"), 1);
            equal(one(other, "SELECT count(*) FROM jdbc_tx"), 0);
            s.execute("COMMIT");
            equal(one(other, "SELECT count(*) FROM jdbc_tx"), 1);
            s.execute("DROP TABLE jdbc_tx");
        }
    }

    private static void metadata(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("DROP TABLE IF EXISTS jdbc_meta");
            s.execute("CREATE TABLE jdbc_meta (id BIGINT, name VARCHAR)");
            DatabaseMetaData m = c.getMetaData();
            equal(list(m.getTables(null, "%", "jdbc_%", new String[] {"TABLE"}), "TABLE_NAME"), "[jdbc_meta]");
            equal(list(m.getColumns(null, "%", "jdbc_meta", "%"), "COLUMN_NAME"), "[id, name]");
            equal(list(m.getTables(null, "%", "ducklake_%", null), "TABLE_NAME"), "[]");
            list(m.getCatalogs(), "TABLE_CAT");
            equal(list(m.getSchemas(), "TABLE_SCHEM").contains("main"), true);
            s.execute("DROP TABLE jdbc_meta");
        }
    }

    private static void error(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.executeQuery("SELECT * FROM no_such_table");
            throw new AssertionError("no error");
        } catch (SQLException e) {
            if (!e.getMessage().contains("no_such_table")) {
                throw e;
            }
        }
        equal(one(c, "SELECT 1"), 1);
    }

    private static void q1(Connection c) throws Exception {
        String sql = java.nio.file.Files.readString(java.nio.file.Path.of(System.getenv("QOD_Q1")));
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            int rows = 0;
            while (r.next()) {
                rows++;
            }
            equal(rows, 4);
        }
    }
}

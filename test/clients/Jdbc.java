import java.lang.reflect.InvocationTargetException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * What the suites of the Arrow Flight SQL driver share. The address, user, password and certificate come
 * from the environment: QOD_ADDRESS, QOD_USER, QOD_SECRET, QOD_CA.
 */
class Jdbc {
    private static int failed;

    interface Check {
        void run(Connection c) throws Exception;
    }

    static Connection connect() throws SQLException {
        Properties p = new Properties();
        p.put("user", System.getenv("QOD_USER"));
        p.put("password", System.getenv("QOD_SECRET"));
        p.put("useEncryption", "true");
        p.put("useSystemTrustStore", "false");
        p.put("tlsRootCerts", System.getenv("QOD_CA"));
        return DriverManager.getConnection("jdbc:arrow-flight-sql://" + System.getenv("QOD_ADDRESS"), p);
    }

    static void check(String name, Check check) {
        long start = System.nanoTime();
        try (Connection c = connect()) {
            check.run(c);
            System.out.printf("ok   %s %.2f s%n", name, (System.nanoTime() - start) / 1e9);
        } catch (Throwable t) {
            failed++;
            System.out.println("FAIL " + name);
            t.printStackTrace(System.out);
        }
    }

    static void equal(Object got, Object want) {
        if (!String.valueOf(want).equals(String.valueOf(got))) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static String one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            r.next();
            return r.getString(1);
        }
    }

    /** Ends the process, with 1 if a check failed. */
    static void exit() {
        System.exit(failed == 0 ? 0 : 1);
    }

    static List<String> list(ResultSet r, String column) throws SQLException {
        List<String> out = new ArrayList<>();
        try (r) {
            while (r.next()) {
                out.add(r.getString(column));
            }
        }
        return out;
    }

    /** Tools call every getter; one that throws breaks them. */
    static void getters(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        for (var method : DatabaseMetaData.class.getMethods()) {
            boolean plain = method.getParameterCount() == 0 && !method.getReturnType().equals(ResultSet.class);
            if (!plain || method.getName().equals("getRowIdLifetime")) {
                continue;
            }
            try {
                method.invoke(m);
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof SQLFeatureNotSupportedException)) {
                    throw new AssertionError(method.getName(), e.getCause());
                }
            }
        }
    }
}

# No statement or several.
""
" "
;
-- nothing
/* nothing */;
SELECT 1; SELECT 2
SELECT 1; DELETE FROM events
BEGIN; COMMIT
SELECT 1;; DROP TABLE t;
SELECT ';' ; DROP TABLE t
INSERT INTO t VALUES (1); DETACH lake
SELECT 1; PRAGMA version
SELECT $$;$$; LOAD x
SELECT 'a\'; DROP TABLE t; --'
SELECT 1 /* /* ; */ ; DROP TABLE t; */ ; DROP TABLE u
"SELECT 1--\r; DROP TABLE t"
EXPLAIN SELECT 1; DROP TABLE t

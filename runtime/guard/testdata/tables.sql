# Tables that are never allowed, in spellings that DuckDB takes.
read_csv('/etc/passwd')
"\"read_csv\"('/etc/passwd')"
READ_CSV ('/etc/passwd')
Read_Csv/**/('x')
"read_csv\u00a0('x')"
system.main.read_csv('x')
"\"system\".\"main\".\"READ_CSV\"('x')"
postgres_query('__ducklake_metadata_lake', 'x')
glob('**')
query('SELECT 1')
duckdb_secrets()
'/etc/passwd'
"\"/etc/passwd\""
'x.csv'
x.parquet
"\"s3://b/x\""
E'\x2fetc'
__ducklake_metadata_lake.public.t
"\"__DUCKLAKE_METADATA_LAKE\".t"
__ducklake_metadata_lake/**/./**/t
"__DuckLake_Metadata_lake\u200b.\u3000t"
system.main.t
memory.t
pg_catalog.pg_class
duckdb_tables
other.main.t

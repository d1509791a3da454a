"""Records as tables in DuckDB: `kerf sql` asks them, `kerf export` writes them as Parquet.

Needs the extra `analysis`. Nothing outside this package may import duckdb.
"""

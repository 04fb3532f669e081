"""The history of groups as tables with columns, for Parquet files and for Spark.

`ringleader history --export parquet` writes them, `format("ringleader-history")` reads them, from such files
or from the file of a history itself.
"""

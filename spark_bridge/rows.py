"""The rows of the source: the same columns as Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# timestampType
CREATE_TIME = 0
LOG_APPEND_TIME = 1

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""All that rows can have, in their order."""


def spark_schema(include_headers: bool, columns: Collection[str] = COLUMNS) -> StructType:
    """The schema as Spark sees it, cut to ``columns``. Built by hand: parsing DDL needs a JVM, and planner
    workers have none."""
    from pyspark.sql import types as t

    schema = t.StructType()
    schema.add("key", t.BinaryType()).add("value", t.BinaryType()).add("topic", t.StringType())
    schema.add("partition", t.IntegerType()).add("offset", t.LongType())
    schema.add("timestamp", t.TimestampType()).add("timestampType", t.IntegerType())
    if include_headers:
        entry = t.StructType().add("key", t.StringType()).add("value", t.BinaryType())
        schema.add("headers", t.ArrayType(entry))
    return t.StructType([field for field in schema.fields if field.name in columns])


def arrow_schema(include_headers: bool) -> Any:
    """The pyarrow schema that Spark demands for ``spark_schema``: an exact match, checked per task."""
    import pyarrow as pa

    fields = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
    ]
    if include_headers:
        entry = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        fields.append(pa.field("headers", pa.list_(entry)))
    return pa.schema(fields)

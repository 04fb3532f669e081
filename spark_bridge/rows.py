"""The rows of the source: the same columns as Spark's Kafka connector."""

from __future__ import annotations

from typing import Any

DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
HEADERS_DDL = "headers array<struct<key: string, value: binary>>"

# timestampType
CREATE_TIME = 0
LOG_APPEND_TIME = 1
NO_TIMESTAMP = -1


def ddl(include_headers: bool) -> str:
    """The schema as Spark's DDL."""
    return f"{DDL}, {HEADERS_DDL}" if include_headers else DDL


def arrow_schema(include_headers: bool) -> Any:
    """The pyarrow schema that Spark demands for ``ddl``: an exact match, checked per task."""
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

"""The input of a sink: the columns of a DataFrame, checked once, then Arrow batches as lists."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringleader.clients.produce.arrow import ArrowRows
from ringleader.clients.produce.errors import ProduceError
from ringleader.protocol.records import varint
from ringleader.spark_bridge.options.build import OptionsError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

logger = logging.getLogger("ringleader.spark")

# The types that each column may have, as Spark names them.
_TYPES = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
# Columns of the source that say nothing to a sink: a copy of a topic need not drop them.
_PASSED_OVER = ("offset", "timestamp", "timestampType")
# So alike two names are when one is taken for the other misspelt.
_NEAR = 0.75


def check_schema(schema: StructType, topic: str | None) -> None:
    """Refuse a DataFrame that cannot be written, at planning time. ``topic``: the option.

    Columns without a meaning are passed over with a warning, as Spark's connector does without one, unless
    they look misspelt. Raises OptionsError with one sentence for each reason.
    """
    reasons: list[str] = []
    extra: list[str] = []
    given = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, kind in given.items():
        if name in _PASSED_OVER:
            continue
        if name not in _TYPES:
            if near := difflib.get_close_matches(name.lower(), _TYPES, n=1, cutoff=_NEAR):
                reasons.append(
                    f"The column {name!r} has no meaning for a sink, which takes {', '.join(_TYPES)}. "
                    f"Did you mean {near[0]!r}?"
                )
            else:
                extra.append(name)
        elif kind not in _TYPES[name]:
            reasons.append(f"The column {name!r} is {kind}; it must be {' or '.join(_TYPES[name])}.")
    if "value" not in given:
        reasons.append("A sink needs a column 'value'.")
    if topic is None and "topic" not in given:
        reasons.append("A sink needs the option 'topic' or a column 'topic'.")
    if reasons:
        raise OptionsError(" ".join(reasons))
    if extra:
        logger.warning(
            "columns that are not written: %s; a sink takes %s", ", ".join(extra), ", ".join(_TYPES)
        )


def by_topic(rows: ArrowRows, topic: str | None) -> Iterator[tuple[str, ArrowRows]]:
    """The rows of each topic; all of them go to ``topic`` where the option names one. Raises ProduceError."""
    if topic is not None:
        yield topic, rows
        return
    import pyarrow.compute as pc

    if rows.topics is None or rows.topics.null_count:
        raise ProduceError("a record has no topic: the column 'topic' is null")
    topics = pc.unique(rows.topics).to_pylist()
    for name in topics:
        some = rows if len(topics) == 1 else rows.take(pc.indices_nonzero(pc.equal(rows.topics, name)))
        yield name, some


def sink_rows(batch: Any, with_topics: bool) -> ArrowRows:
    """The columns of a ``pyarrow.RecordBatch``. ``with_topics``: whether the column ``topic`` counts."""
    import pyarrow as pa

    def column(name: str) -> Any:
        index = batch.schema.get_field_index(name)
        found = None if index < 0 else batch.column(index)
        return None if found is None or found.null_count == len(found) else found

    values, keys, headers = column("value"), column("key"), column("headers")
    topics, partitions = column("topic") if with_topics else None, column("partition")
    return ArrowRows(
        pa.nulls(batch.num_rows, pa.binary()) if values is None else values.cast(pa.binary()),
        None if keys is None else keys.cast(pa.binary()),
        None if headers is None else pa.array([_tail(found) for found in headers.to_pylist()], pa.binary()),
        topics,
        partitions,
    )


def _tail(headers: list[dict[str, Any] | None] | None) -> bytes:
    """Headers as a record ends with them. One without a name is none: Kafka's headers always have one."""
    found = [entry for entry in headers or () if entry and entry["key"] is not None]
    parts = [varint(len(found))]
    for entry in found:
        name, value = entry["key"].encode(), entry["value"]
        parts += (varint(len(name)), name, varint(-1 if value is None else len(value)), value or b"")
    return b"".join(parts)

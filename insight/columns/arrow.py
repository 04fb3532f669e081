"""Rows as Arrow's batches, which are no larger for a longer history or for larger groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from ringleader.insight.columns.model import TABLES, Column, Scalar
from ringleader.insight.columns.rows import Row

ROWS_MAX = 10_000
CELLS_MAX = 200_000
"""Of a batch, those of arrays counted one by one."""


def schema_of(table: str) -> pa.Schema:
    """The columns of a table with Arrow's types."""
    return pa.schema([pa.field(one.name, type_of(one)) for one in TABLES[table].columns])


def type_of(column: Column) -> pa.DataType:
    """The type of a column."""
    if isinstance(column.type, tuple):
        plain = pa.struct([pa.field(one.name, type_of(one)) for one in column.type])
    else:
        plain = _TYPES[column.type]
    return pa.list_(plain) if column.many else plain


_TYPES = {
    Scalar.TEXT: pa.string(),
    Scalar.INT: pa.int32(),
    Scalar.LONG: pa.int64(),
    Scalar.TIME: pa.timestamp("us", tz="UTC"),
    Scalar.DAY: pa.date32(),
}


def batches(table: str, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """The rows of a table, in batches. None for no rows."""
    schema = schema_of(table)
    columns = TABLES[table].columns
    gathered: list[Row] = []
    cells = 0
    for row in rows:
        gathered.append(row)
        cells += sum(len(value) if isinstance(value, (list, tuple)) else 1 for value in row.values())
        if len(gathered) >= ROWS_MAX or cells >= CELLS_MAX:
            yield _batch(gathered, columns, schema)
            gathered, cells = [], 0
    if gathered:
        yield _batch(gathered, columns, schema)


def _batch(rows: list[Row], columns: tuple[Column, ...], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        pa.array([_value(row[one.name], one) for row in rows], field.type)
        for one, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _value(value: Any, column: Column) -> Any:
    if value is None:
        return None
    if column.many:
        one = column._replace(many=False)
        return [_value(each, one) for each in value]
    if isinstance(column.type, tuple):
        return {one.name: _value(value[one.name], one) for one in column.type}
    if column.type is Scalar.TIME:
        return value * 1000
    if column.type is Scalar.TEXT:
        # Clients may call themselves what is no text in UTF-8.
        return str(value) if value.isascii() else value.encode("utf-8", "replace").decode()
    return value

"""Records in Arrow columns, and batches out of them: no Python object for a record.

The framing of records is itself columns (varints by look-up), and one kernel joins them row by row: its
result is the records of a batch. ``protocol.records.build_batch`` is the plain form of the same, which the
tests compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import Any

from ringleader.clients.produce.batch_builder import FRAME_BYTES, MAX_BATCH_ROWS, Encoded, RowSizes
from ringleader.clients.produce.partitioner import partitions_of_keys
from ringleader.protocol.records import varint

_INT32 = Struct("=i")
_NULL, _ZERO = b"\x01", b"\x00"
# Attributes and timestamp delta of every record: all of a batch have one timestamp.
_FRONT = b"\x00\x00"


@dataclass(slots=True)
class ArrowRows:
    """Records as columns of one length; None for a column that is not there, or holds nothing but nulls."""

    values: Any
    """``pyarrow`` array of binary."""
    keys: Any = None
    """As ``values``."""
    tails: Any = None
    """``pyarrow`` array of binary, never null: each record's headers, as they stand at its end."""
    topics: Any = None
    """Array of string."""
    partitions: Any = None
    """Array of int32."""

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> ArrowRows:
        """A run of rows."""
        count = stop - start
        return self._each(lambda found: found.slice(start, count))

    def take(self, indices: Any) -> ArrowRows:
        """The rows of these indices."""
        return self._each(lambda found: found.take(indices))

    def _each(self, change: Callable[[Any], Any]) -> ArrowRows:
        columns = (self.values, self.keys, self.tails, self.topics, self.partitions)
        return ArrowRows(*[None if found is None else change(found) for found in columns])

    def sizes(self) -> RowSizes:
        """The bytes of the rows; there is one at least."""
        import pyarrow as pa
        import pyarrow.compute as pc

        total: Any = pa.scalar(FRAME_BYTES, pa.int64())
        for column in (self.values, self.keys, self.tails):
            if column is not None:
                total = pc.add(pc.fill_null(pc.binary_length(column), 0).cast(pa.int64()), total)
        return RowSizes(pc.cumulative_sum(total).to_pylist(), pc.max(total).as_py())

    def by_partition(self, partitions: int) -> Iterator[tuple[int | None, ArrowRows]]:
        """Each partition's rows in their order; None for rows with neither partition nor key."""
        import pyarrow as pa
        import pyarrow.compute as pc

        targets = self.partitions
        if self.keys is not None and (targets is None or targets.null_count):
            by_key = partitions_of_keys(self.keys, partitions)
            targets = by_key if targets is None else pc.coalesce(targets.cast(pa.int32()), by_key)
        if targets is None:
            yield None, self
            return
        # Sorted by partition, stably and nulls last: a partition's rows keep their order.
        rows = self.take(pc.array_sort_indices(targets))
        counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in pc.value_counts(targets)}
        at = 0
        for target in sorted(counts, key=lambda number: (number is None, number)):
            yield target, rows.slice(at, at + counts[target])
            at += counts[target]

    @staticmethod
    def encode(slices: Sequence[ArrowRows], now_ms: int) -> Encoded:
        """The records of all slices, which all get this time."""
        return Encoded(_records(*_joined(slices)), now_ms, now_ms)


def _joined(slices: Sequence[ArrowRows]) -> tuple[Any, Any, Any]:
    """Values, keys and headers of all slices; keys and headers None where no slice has any."""
    import pyarrow as pa

    if len(slices) == 1:
        only = slices[0]
        return only.values, only.keys, only.tails
    values = pa.concat_arrays([found.values for found in slices])
    keys = tails = None
    if any(found.keys is not None for found in slices):
        none = [pa.nulls(len(found), pa.binary()) if found.keys is None else found.keys for found in slices]
        keys = pa.concat_arrays(none)
    if any(found.tails is not None for found in slices):
        empty = pa.scalar(_ZERO, pa.binary())
        tails = pa.concat_arrays(
            [pa.repeat(empty, len(found)) if found.tails is None else found.tails for found in slices]
        )
    return values, keys, tails


def _records(values: Any, keys: Any, tails: Any) -> memoryview:
    """The records of a batch, one after another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(values)
    varints, lengths = _tables()
    inner = pc.add(lengths.slice(0, count), pa.scalar(len(_FRONT), pa.int32()))
    pieces: list[Any] = [pa.scalar(_FRONT, pa.binary()), varints.slice(0, count)]
    for column in (keys, values):
        if column is None:
            pieces.append(pa.scalar(_NULL, pa.binary()))
            inner = pc.add(inner, pa.scalar(1, pa.int32()))
            continue
        size = pc.binary_length(column)
        prefix = pc.fill_null(_varints(size), pa.scalar(_NULL, pa.binary()))
        pieces += [prefix, column]
        inner = pc.add(pc.add(inner, pc.binary_length(prefix)), pc.fill_null(size, 0))
    pieces.append(pa.scalar(_ZERO, pa.binary()) if tails is None else tails)
    inner = pc.add(inner, pa.scalar(1, pa.int32()) if tails is None else pc.binary_length(tails))
    joined = pc.binary_join_element_wise(
        _varints(inner),
        *pieces,
        pa.scalar(b"", pa.binary()),
        null_handling="replace",
        null_replacement=b"",
    )
    _, offsets, data = joined.buffers()
    first, last = (_INT32.unpack_from(offsets, 4 * (joined.offset + at))[0] for at in (0, count))
    return memoryview(data)[first:last]


def _varints(numbers: Any) -> Any:
    """The varint of each number (int32, at least 0); null for null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table, _ = _tables()
    if (pc.max(numbers).as_py() or 0) < len(table):
        return table.take(numbers)
    encoded = [None if number is None else varint(number) for number in numbers.to_pylist()]
    return pa.array(encoded, pa.binary())


@lru_cache(maxsize=1)
def _tables() -> tuple[Any, Any]:
    """Varints of the numbers below MAX_BATCH_ROWS, and their lengths."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.array([varint(number) for number in range(MAX_BATCH_ROWS)], pa.binary())
    return table, pc.binary_length(table)

"""Records one by one: for those who have no columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ringleader.clients.produce.batch_builder import FRAME_BYTES, Encoded, RowSizes
from ringleader.clients.produce.partitioner import partition_of_key
from ringleader.protocol.records import Record, encode_record

_OWN_TIME_BYTES = 9
"""A record with a time of its own has a varint more that may be long."""
PLAIN_BYTES = FRAME_BYTES + _OWN_TIME_BYTES
"""As `size_bytes` of a record with a time, and nothing else."""


@dataclass(slots=True)
class Row(Record):
    """A record to be written. ``timestamp_ms`` -1: the time of writing. The offset has no meaning."""

    partition: int | None = None


class RowList:
    """Records in a list."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def slice(self, start: int, stop: int) -> RowList:
        """A run of records."""
        return RowList(self.rows[start:stop])

    def sizes(self) -> RowSizes:
        """The bytes of the records; there is one at least."""
        sizes = [size_bytes(row) for row in self.rows]
        return RowSizes(list(accumulate(sizes)), max(sizes))

    def by_partition(self, partitions: int) -> Iterator[tuple[int | None, RowList]]:
        """Each partition's records in their order; None for records with neither partition nor key."""
        found: dict[int | None, list[Row]] = {}
        for row in self.rows:
            target = row.partition
            if target is None and row.key is not None:
                target = partition_of_key(row.key, partitions)
            found.setdefault(target, []).append(row)
        for target, rows in found.items():
            yield target, RowList(rows)

    @staticmethod
    def encode(slices: Sequence[RowList], now_ms: int) -> Encoded:
        """The records of all slices. ``now_ms``: the time of those that have none."""
        rows = [row for found in slices for row in found.rows]
        times = [now_ms if row.timestamp_ms < 0 else row.timestamp_ms for row in rows]
        base_ms = times[0]
        body = [
            encode_record(row, at, time - base_ms)
            for at, (row, time) in enumerate(zip(rows, times, strict=True))
        ]
        return Encoded(b"".join(body), base_ms, max(times))


def size_bytes(row: Row) -> int:
    """The bytes of a record in a batch, a little too high."""
    size = FRAME_BYTES + len(row.key or b"") + len(row.value or b"")
    if row.timestamp_ms >= 0:
        size += _OWN_TIME_BYTES
    for name, value in row.headers:
        size += 4 * len(name) + len(value or b"") + 10
    return size

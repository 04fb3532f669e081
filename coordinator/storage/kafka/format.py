"""The content of a partition of the groups' topic: rows, and claims between them.

Each batch is one owner's: its header names the producer and its epoch. So no record needs a header of its own
for that, and a batch of an older epoch than its producer's newest is known, and left out, without being
decoded. Compaction keeps these fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import repeat
from struct import Struct
from typing import NamedTuple, cast

from ringleader.coordinator.storage.base import Failure, Row, StorageError
from ringleader.protocol import json_text
from ringleader.protocol.columns import Columns, append_columns
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import NO_PRODUCER_ID, BatchView, CorruptBatchError, iter_batches
from ringleader.protocol.rows import read_rows

FORMAT_VERSION = 1
"""Of all that a partition holds. Raise it when an older version of this program must not read it any more."""

CLAIM = 0x52FF
"""Key: int16 type, int16 format version, so that the claim of an older version does not take the place of a
newer one's. Value: JSON."""

FENCE_EPOCH = 32_767
"""No producer gets it from the cluster: it ends all epochs of a producer id."""

REPLAY_CHUNK_ROWS = 500
"""Rows that are handed over at a time; between two chunks the event loop does its other work."""

_TYPE = Struct(">h").pack(CLAIM)
CLAIM_KEY = _TYPE + Struct(">h").pack(FORMAT_VERSION)


class Claim(NamedTuple):
    """The owner of a partition from here on. `wall_ms`: Unix time; `version`: of the program."""

    node_id: int
    host: str
    port: int
    version: str
    wall_ms: int = 0

    def encode(self) -> bytes:
        """As a record's value."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, value: bytes) -> Claim:
        """Raises MalformedError. Fields that a newer version added are not looked at."""
        try:
            fields = json_text.loads(value)
            return cls(
                int(fields["node_id"]),
                str(fields["host"]),
                int(fields["port"]),
                str(fields["version"]),
                int(fields["wall_ms"]),
            )
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise MalformedError("Claim", -1, "value", 0, repr(error)) from None


class LogRows:
    """The rows of a partition before an offset, out of the bytes of Fetch answers, in their order."""

    def __init__(self, name: str, until: int) -> None:
        """`name`: of the partition, in sentences."""
        self._name = name
        self._until = until
        self.next_offset = 0
        """The next offset to fetch."""
        self.claim: Claim | None = None
        """The last one that was met."""
        self.stale = 0
        """Rows left out, since a newer owner had written before them, or no owner wrote them."""
        self._epochs: dict[int, int] = {NO_PRODUCER_ID: FENCE_EPOCH}
        """By producer id: its newest epoch."""

    @property
    def ended(self) -> bool:
        """Whether all rows were read."""
        return self.next_offset >= self._until

    def read(self, data: bytes) -> Iterator[list[Row]]:
        """The rows of the next answer, in chunks. Raises MalformedError for what cannot be read, and
        `StorageError` (FORMAT) for what a newer version of this program has written."""
        rows: list[Row] = []
        for batch in iter_batches(data):
            header = batch.header
            if header.next_offset <= self.next_offset:
                continue
            if header.base_offset >= self._until:
                self.next_offset = self._until
                break
            batch.check_crc()
            self.next_offset = header.next_offset
            if header.is_control:
                continue
            producer, epoch = header.producer_id, header.producer_epoch
            if epoch < self._epochs.get(producer, 0):
                self.stale += header.record_count
                continue
            self._epochs[producer] = epoch
            found = _rows(batch, epoch)
            if header.record_count == 1 and self._is_claim(*found[0][2:]):
                continue
            rows += found
            if len(rows) >= REPLAY_CHUNK_ROWS:
                yield rows
                rows = []
        if rows:
            yield rows

    def _is_claim(self, key: bytes, value: bytes | None) -> bool:
        if value is None or not key.startswith(_TYPE):
            return False
        claim = self.claim = Claim.decode(value)
        version = int.from_bytes(key[2:4], "big")
        if version > FORMAT_VERSION:
            raise StorageError(
                Failure.FORMAT,
                f"node {claim.node_id} with version {claim.version} wrote {self._name} in format {version}; "
                f"this version knows up to {FORMAT_VERSION}: run that version on all nodes, or a newer one",
            )
        return True


def _rows(batch: BatchView, epoch: int) -> list[Row]:
    """Those of one batch, straight: after compaction many have but one record. Raises CorruptBatchError."""
    header = batch.header
    data, pos, end = batch.payload()
    base = header.base_offset
    offsets: Sequence[int] = range(base, base + header.record_count)
    try:
        found = read_rows(data, pos, 0, header.record_count, with_headers=False, dense=header.is_dense)
        keys, values = found.keys, found.values
    except CorruptBatchError:
        found = None  # or its offsets are not written in the shortest way
    if found is None or found.end != end:
        columns = Columns()
        append_columns(batch, columns, with_headers=False)
        offsets, keys, values = columns.offsets, columns.keys, columns.values
    elif not header.is_dense:
        offsets = [base + delta for delta in found.offset_deltas]
    if None in keys:
        raise CorruptBatchError("a record without a key")
    return list(zip(offsets, repeat(epoch, len(keys)), cast("list[bytes]", keys), values, strict=True))

"""Offsets that were committed in transactions count from the marker that commits them. Sans-I/O.

A reader of committed records would stop at the first open transaction, with all groups of the partition, and
one that hangs would hide them for good. So everything is read, and what belongs to a transaction waits here
for its end.

Kafka's control records: key is version and type, two int16, 0 aborts and 1 commits (KIP-98).
"""

from __future__ import annotations

from struct import Struct

MAX_KEYS = 100_000
"""The most offsets that are kept of one transaction: none commits more."""

_MARKER = Struct(">hh")
_COMMIT = 1

Pair = tuple[bytes | None, bytes | None]


class Transactions:
    """The open ones of one partition."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[int, dict[bytes | None, bytes | None]]] = {}
        """Producer id -> first offset, and its records by key: the last of each counts."""

    @property
    def first_offset(self) -> int | None:
        """Where the oldest open one begins: to know what is open one has to read from there. None: none."""
        return min((first for first, _ in self._open.values()), default=None)

    def add(self, producer_id: int, offset: int, key: bytes | None, value: bytes | None) -> None:
        """A record of an open transaction."""
        pairs = self._open.setdefault(producer_id, (offset, {}))[1]
        if key in pairs or len(pairs) < MAX_KEYS:
            pairs[key] = value

    def end(self, producer_id: int, marker_key: bytes | None) -> list[Pair]:
        """A marker: what counts from now on."""
        _, pairs = self._open.pop(producer_id, (0, {}))
        committed = (
            marker_key is not None
            and len(marker_key) >= _MARKER.size
            and _MARKER.unpack_from(marker_key)[1] == _COMMIT
        )
        return list(pairs.items()) if committed else []

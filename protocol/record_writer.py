"""The records of a batch, written one by one as they stand in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.protocol import native
from ringleader.protocol.records import HEADER_BYTES, Headers, Record, encode_record


class _InPython:
    """As RecordWriter of `_native.c`."""

    def __init__(self) -> None:
        self.times_ms: list[int] = []
        """Of the records."""
        self.base_ms = self.max_ms = 0
        """The time of the first record, and the latest."""
        self.batch: list[Any] = []
        self.count = self.size_bytes = self.limit = 0
        self.full = False
        self._written: list[bytes] = []

    def write(self, key: bytes | None, value: bytes | None, headers: Headers, time_ms: int) -> None:
        """One more record. Nothing is changed by a call that raises."""
        first = not self.times_ms
        record = Record(key=key, value=value, headers=headers)
        self._written.append(encode_record(record, self.count, 0 if first else time_ms - self.base_ms))
        self.times_ms.append(time_ms)
        if first:
            self.base_ms = self.max_ms = time_ms
        self.max_ms = max(self.max_ms, time_ms)
        self.count += 1

    def taken(self) -> bytearray:
        """All records, at offsets from 0 on and with times after that of the first one, behind room for a
        batch's header; it is empty then."""
        found = bytearray(HEADER_BYTES)
        found += b"".join(self._written)
        self.times_ms, self._written = [], []
        self.count, self.size_bytes, self.full = 0, 0, False
        return found


if TYPE_CHECKING:
    RecordWriter = _InPython
else:
    RecordWriter = _InPython if native.compiled is None else native.compiled.RecordWriter

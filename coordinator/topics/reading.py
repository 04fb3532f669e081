"""Reading a partition's files: ranges of batches, the record of a time, and recovery. For worker threads.

Nothing here touches what the loop's thread keeps; what a function needs is given to it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from ringleader.coordinator.topics.catalog import TopicInfo
from ringleader.coordinator.topics.producers import Producers
from ringleader.coordinator.topics.segment import IndexUnusableError, Segment
from ringleader.coordinator.topics.transactional import Transactions, is_commit
from ringleader.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    BatchHeader,
    BatchView,
    CorruptBatchError,
    parse_header,
)

CHUNK_BYTES = 1024 * 1024
SCAN_CHUNK_BYTES = 64 * 1024
START_FILE = "log-start"
DROPPED_SUFFIX = ".dropped"

_PREFIX = Struct(">qi11xi")


class ReadResult(NamedTuple):
    """Whole batches (the first may begin before the asked offset), and the partition's bounds."""

    records: bytes
    high_watermark: int
    log_start_offset: int


def read_range(path: Path, position: int, boundary: int, limit: int, offset: int) -> bytes:
    """Whole batches from the one with `offset`, or the first after it, up to `boundary`; at least one.

    `position` and `boundary` are where batches begin, `limit` is where what may be read ends. Empty when
    there is no such batch. Raises OSError (a file that is gone: FileNotFoundError).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(
            descriptor, max(boundary - position, min(SCAN_CHUNK_BYTES, limit - position)), position
        )
        start = 0
        while position + start < limit:
            if len(data) - start < HEADER_BYTES:
                position += start
                start = 0
                data = os.pread(descriptor, min(CHUNK_BYTES, limit - position), position)
                if len(data) < HEADER_BYTES:
                    return b""
            base, length, delta = _PREFIX.unpack_from(data, start)
            if base + delta >= offset:
                break
            start += length + 12
        else:
            return b""
        stop = max(boundary - position, start + length + 12)
        if stop > len(data):
            data += os.pread(descriptor, stop - len(data), position + len(data))
        return data[start:stop]
    finally:
        os.close(descriptor)


def find_time(
    path: Path, position: int, limit: int, timestamp_ms: int, from_offset: int
) -> tuple[int, int] | None:
    """Offset and timestamp of the first record at or after `position` that is not before either bound.

    Raises OSError. A batch whose records cannot be read stands for itself: its first offset, largest time.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for start, header, _ in scan(descriptor, position, limit):
            if header.max_timestamp < timestamp_ms or header.last_offset < from_offset:
                continue
            data = os.pread(descriptor, header.size_bytes, start)
            view = BatchView(data, 0, header)
            try:
                for record in view.records():
                    if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                        return record.offset, record.timestamp_ms
            except CorruptBatchError:
                return max(header.base_offset, from_offset), header.max_timestamp
    except CorruptBatchError:
        return None
    finally:
        os.close(descriptor)
    return None


def find_first_time(plans: list[tuple[Path, int, int, int, int]]) -> tuple[int, int]:
    """The first that `find_time` finds with one of these arguments; (-1, -1) for none. Raises OSError."""
    for plan in plans:
        found = find_time(*plan)
        if found is not None:
            return found
    return -1, -1


def scan(
    descriptor: int, position: int, limit: int, *, check: bool = False
) -> Iterator[tuple[int, BatchHeader, int]]:
    """The headers of the batches in a file: position, header, position after it.

    With `check`, the checksums too. Raises CorruptBatchError at the first batch that is cut off or broken.
    """
    chunk = CHUNK_BYTES if check else SCAN_CHUNK_BYTES
    data, start = b"", position
    while position < limit:
        at = position - start
        if len(data) - at < HEADER_BYTES:
            data, start, at = os.pread(descriptor, min(chunk, limit - position), position), position, 0
        header = parse_header(data, at)
        end = position + header.size_bytes
        if end > limit:
            raise CorruptBatchError("a batch is cut off", position)
        if check:
            if end - start > len(data):
                size = max(header.size_bytes, min(chunk, limit - position))
                data, start, at = os.pread(descriptor, size, position), position, 0
            if crc32c(memoryview(data)[at + CRC_START : end - start]) != header.crc:
                raise CorruptBatchError("a checksum is wrong", position)
        yield position, header, end
        position = end


@dataclass(slots=True)
class Recovered:
    """What a partition's directory holds."""

    segments: list[Segment] = field(default_factory=list)
    producers: Producers = field(default_factory=Producers)
    transactions: Transactions = field(default_factory=Transactions)
    start_offset: int = 0
    scanned_bytes: int = 0
    """Records that were looked at, since no index vouched for them."""
    cut_bytes: int = 0
    """Taken off the end: the last batch was not whole, or broken."""
    dropped: list[str] = field(default_factory=list)
    """Files after a broken one: renamed, not read."""

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self.segments[-1].next_offset if self.segments else self.start_offset


def recover_all(
    data: Path, topics: Collection[TopicInfo], now_ms: int
) -> tuple[dict[tuple[str, int], Recovered], list[Path]]:
    """The partitions of these topics that have a directory below `data`, by topic and number; and the
    directories of topics that are no more. Raises OSError."""
    known = {info.id.hex() for info in topics}
    orphans = [path for path in data.iterdir() if path.name not in known]
    found: dict[tuple[str, int], Recovered] = {}
    for info in topics:
        below = data / info.id.hex()
        for path in below.iterdir() if below.exists() else ():
            if path.name.isdigit() and int(path.name) < info.partitions:
                found[info.name, int(path.name)] = recover(path, now_ms)
    return found, orphans


def recover(directory: Path, now_ms: int) -> Recovered:
    """Read a partition's directory after whatever happened to it. Raises OSError.

    Indexes are used as far as they go; batches behind them are checked. The first broken batch ends the log.
    """
    found = Recovered()
    names = set(os.listdir(directory))
    bases = sorted(int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isdigit())
    for number, base in enumerate(bases):
        if found.segments and base != found.next_offset:
            _drop(directory, bases[number:], found)
            break
        found.segments.append(_recover_segment(directory, base, found, now_ms))
    for name in names:
        if name.endswith(".new") or (name.endswith(".index") and f"{name[:-6]}.log" not in names):
            os.unlink(directory / name)
    start = _read_start(directory) if START_FILE in names else 0
    if found.segments:
        start = min(max(found.segments[0].base_offset, start), found.next_offset)
    # Without files (a crash of the machine took them) offsets at least do not start anew.
    found.start_offset = start
    found.transactions.forget_before(start)
    return found


def _recover_segment(directory: Path, base: int, found: Recovered, now_ms: int) -> Segment:
    segment = Segment(directory, base)
    size = segment.path.stat().st_size
    try:
        indexed, known = Segment.load_index(directory, base, segment.index_path.read_bytes())
        if indexed.size_bytes <= size:
            segment, found.producers, found.transactions.open = indexed, known.producers, known.open
            for aborted in known.aborted:
                found.transactions.put(aborted)
    except (IndexUnusableError, FileNotFoundError):
        pass
    if segment.size_bytes == size:
        return segment
    descriptor = os.open(segment.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        found.scanned_bytes += size - segment.size_bytes
        try:
            for position, header, _ in scan(descriptor, segment.size_bytes, size, check=True):
                if header.base_offset < segment.next_offset:
                    break
                segment.add(header.base_offset, header.next_offset, header.size_bytes, header.max_timestamp)
                if header.producer_id >= 0:
                    _replay(descriptor, position, header, found, now_ms)
        except CorruptBatchError:
            pass
        if segment.size_bytes < size:
            found.cut_bytes += size - segment.size_bytes
            os.ftruncate(descriptor, segment.size_bytes)
    finally:
        os.close(descriptor)
    return segment


def _replay(descriptor: int, position: int, header: BatchHeader, found: Recovered, now_ms: int) -> None:
    """What a batch of a producer changes."""
    if not header.is_control:
        found.producers.add(header, header.base_offset, now_ms)
        if header.is_transactional:
            found.transactions.add(header.producer_id, header.base_offset)
        return
    committed = is_commit(BatchView(os.pread(descriptor, header.size_bytes, position), 0, header))
    if committed is not None:
        found.producers.fence(header.producer_id, header.producer_epoch, now_ms)
        found.transactions.end(header.producer_id, header.base_offset, committed=committed)


def _drop(directory: Path, bases: list[int], found: Recovered) -> None:
    for base in bases:
        path = Segment(directory, base).path
        found.cut_bytes += path.stat().st_size
        found.dropped.append(path.name)
        # Kept for whoever wants to look; never read again.
        path.rename(path.with_name(path.name + DROPPED_SUFFIX))


def _read_start(directory: Path) -> int:
    """The first offset that DeleteRecords left."""
    try:
        return int((directory / START_FILE).read_text())
    except (FileNotFoundError, ValueError):
        return 0

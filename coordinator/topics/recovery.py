"""Reading what is there after whatever happened to it. For worker threads, at the start."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ringleader.coordinator.logs import Log
from ringleader.coordinator.topics.catalog import TopicInfo, load, save
from ringleader.coordinator.topics.disk import DamagedError, read_number, sync_path, write_number, write_whole
from ringleader.coordinator.topics.ends import Ends
from ringleader.coordinator.topics.ends import load as load_ends
from ringleader.coordinator.topics.producers import Producers
from ringleader.coordinator.topics.segment import IndexUnusableError, Segment, Snapshot, scan
from ringleader.coordinator.topics.transactional import TransactionIndex, is_commit
from ringleader.protocol.records import BatchHeader, BatchView, CorruptBatchError

START_FILE = "log-start"
DROPPED_SUFFIX = ".dropped"
LARGEST_OFFSET = 2**63 - 1


@dataclass(slots=True)
class Recovered:
    """The content of a partition's directory."""

    segments: list[Segment] = field(default_factory=list)
    producers: Producers = field(default_factory=Producers)
    transactions: TransactionIndex = field(default_factory=TransactionIndex)
    start_offset: int = 0
    scanned_bytes: int = 0
    """Records that were looked at, since no index vouched for them."""
    cut_bytes: int = 0
    """Taken off the end: the last batch was not whole, or broken."""
    dropped: list[str] = field(default_factory=list)
    """Files after a broken one: renamed, not read."""
    missing: int = 0
    """Number of offsets that were not deleted, but whose files are gone."""
    missing_at_end: int = 0
    """The same, behind the files that are there: these offsets are given a second time."""

    @property
    def next_offset(self) -> int:
        """The offset of the next record."""
        return self.segments[-1].next_offset if self.segments else self.start_offset

    def miss_up_to(self, end: int, directory: Path) -> None:
        """It is known that there were records up to this offset."""
        lost = end - self.next_offset
        if lost <= 0:
            return
        if any(segment.size_bytes for segment in self.segments):
            self.missing_at_end = lost
        else:
            # Offsets at least do not start again at 0.
            self.missing = lost
            self.begin_at(end, directory)

    def begin_at(self, offset: int, directory: Path) -> None:
        """No records are left: from here on this is the start, if the disk takes it. An index keeps what is
        known of producers when the files go that it is from."""
        behind, self.segments, self.start_offset = self.segments, [], offset
        with contextlib.suppress(OSError):
            directory.mkdir(0o700, parents=True, exist_ok=True)
            write_number(directory / START_FILE, offset)
            if self.producers.dump() or self.transactions.open:
                segment = Segment(directory, offset)
                _write_index(segment, self)
                segment.path.touch(0o600)
                self.segments.append(segment)
        for segment in behind:
            segment.remove()


def recover_all(
    catalog: Path, ends: Path, data: Path, now_ms: int, log: Log
) -> tuple[dict[str, TopicInfo], dict[tuple[str, int], Recovered]]:
    """The topics, and their partitions that have a directory below `data`, by name and number. Raises OSError
    (DamagedError among them). Nothing is removed because the list does not know it."""
    for made in (data.parent, data):
        made.mkdir(0o700, parents=True, exist_ok=True)
        sync_path(made.parent)
    topics, directories = load(catalog), {path.name for path in data.iterdir()}
    if topics is None and directories:
        raise DamagedError(
            f"{catalog} is missing beside the records of {len(directories)} topics: put its last copy back, "
            f"or move {data} away"
        )
    if topics is None:
        topics = {}
        save(catalog, topics)  # so that from now on it can be missed
    unknown = directories - {info.id.hex() for info in topics.values()}
    if unknown:
        log.warning("records of unknown topics are left alone", directories=sorted(unknown)[:10])
    found = {
        (info.name, int(path.name)): recover(path, now_ms)
        for info in topics.values()
        if info.id.hex() in directories and not info.deleting
        for path in (data / info.id.hex()).iterdir()
        if path.name.isdigit() and int(path.name) < info.partitions
    }
    _miss(found, topics, load_ends(ends), data)
    return topics, found


def _miss(
    found: dict[tuple[str, int], Recovered], topics: Mapping[str, TopicInfo], known: Ends, data: Path
) -> None:
    for info in topics.values():
        for number, end in known.get(info.id.hex(), {}).items():
            if int(number) < info.partitions and not info.deleting:
                one = found.setdefault((info.name, int(number)), Recovered())
                one.miss_up_to(end, data / info.id.hex() / number)


def recover(directory: Path, now_ms: int) -> Recovered:
    """A partition's directory. Raises OSError (DamagedError among them).

    Indexes are used as far as they go; batches behind them are checked. The first broken batch ends the log.
    Records before the stored start are gone, also when a crash of the machine took those up to it.
    """
    found = Recovered()
    names = set(os.listdir(directory))
    bases = sorted(int(name[:-4]) for name in names if name.endswith(".log") and name[:-4].isdigit())
    start = read_number(directory / START_FILE) or 0
    if start > LARGEST_OFFSET:
        raise DamagedError(f"{directory / START_FILE} is damaged: no log is as long; put its last copy back")
    while len(bases) > 1 and bases[1] <= start:
        Segment(directory, bases.pop(0)).remove()
    for number, base in enumerate(bases):
        if found.segments and base != found.next_offset:
            _drop(directory, bases[number:], found)
            break
        found.segments.append(_recover_segment(directory, base, found, now_ms))
    # The files of these are still there: a second start, without them, has to find what this one does.
    files, end = names.difference(found.dropped), 0
    for name in names:
        alone = name.endswith(".index") and f"{name[:-6]}.log" not in files
        if alone:
            end = max(end, _end_of_indexed(directory / name))
        if alone or name.endswith(".new"):
            (directory / name).unlink(missing_ok=True)
    if found.segments:
        if found.next_offset < start:
            found.begin_at(start, directory)
        else:
            found.missing = max(0, found.segments[0].base_offset - start)
            start += found.missing
    # Without files (a crash of the machine took them) offsets at least do not start again at 0.
    found.start_offset = start
    found.miss_up_to(end, directory)
    found.transactions.forget_before(start)
    # The next sync covers the directory too: files that were taken away do not come back.
    return found


def _end_of_indexed(index: Path) -> int:
    """The end offset of a missing segment file, by its index."""
    try:
        segment, _, _ = Segment.load_index(index.parent, int(index.stem), index.read_bytes())
    except (IndexUnusableError, ValueError, FileNotFoundError):
        return 0
    return segment.next_offset


def _write_index(segment: Segment, found: Recovered) -> None:
    """As at the beginning of every file, for when those before it go. Raises OSError."""
    snapshot = Snapshot(found.producers.dump(), [*found.transactions.open.items()], [])
    write_whole(segment.index_path, segment.dump_index(snapshot), sync=False)


def _recover_segment(directory: Path, base: int, found: Recovered, now_ms: int) -> Segment:
    segment = Segment(directory, base)
    size = segment.path.stat().st_size
    try:
        indexed, producers, known = Segment.load_index(directory, base, segment.index_path.read_bytes())
        if indexed.size_bytes > size:
            raise IndexUnusableError("the file is shorter")
        segment, found.producers = indexed, producers
        found.transactions.follow(known)
    except (IndexUnusableError, FileNotFoundError):
        segment.index_path.unlink(missing_ok=True)
        # A full disk does not stop a start.
        with contextlib.suppress(OSError):
            _write_index(segment, found)
    if segment.size_bytes == size:
        return segment
    descriptor = os.open(segment.path, os.O_RDWR | os.O_CLOEXEC)
    try:
        found.scanned_bytes += size - segment.size_bytes
        try:
            for position, header, _ in scan(descriptor, segment.size_bytes, size, check=True):
                if header.base_offset < segment.next_offset:
                    break
                segment.add(header)
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
    """Apply a batch of a producer."""
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
        # Kept for an operator who wants to look; never read again.
        path.rename(path.with_name(path.name + DROPPED_SUFFIX))

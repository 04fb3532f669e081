"""A topic log in a directory of the test's, with a clock that the test moves."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ringleader.coordinator.topics import Topics, TopicSettings
from ringleader.coordinator.topics.chores import nothing
from ringleader.protocol.columns import Columns, decode_columns
from ringleader.protocol.records import Record, build_batch

START_MS = 1_700_000_000_000


class WallClock:
    """Unix time as a test wants it."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms


@contextlib.asynccontextmanager
async def topic_log(
    directory: Path, clock: WallClock | None = None, **settings: Any
) -> AsyncIterator[Topics]:
    """An open log; closed as at a clean stop."""
    topics = Topics(directory, TopicSettings(**settings), clock or WallClock())
    await topics.open()
    try:
        yield topics
    finally:
        await topics.close()


def batch(count: int = 1, *, at_ms: int = START_MS, size: int = 10, **options: Any) -> bytes:
    """A producer's batch: records of ascending time, whose values tell their number."""
    records = [Record(i, at_ms + i, b"k", b"%0*d" % (size, i)) for i in range(count)]
    return build_batch(records, **options)


def produced(producer_id: int, sequence: int, count: int = 1, epoch: int = 0, **options: Any) -> bytes:
    """An idempotent producer's batch."""
    return batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **options)


async def everything(topics: Topics, topic: str, partition: int = 0, max_bytes: int = 1000) -> Columns:
    """All records of a partition, read piece by piece; offsets must go on from piece to piece."""
    found = Columns()
    offset, end = topics.start_offset(topic, partition), topics.end_offset(topic, partition)
    while offset < end:
        result = await topics.read(topic, partition, offset, max_bytes)
        part = decode_columns(result.records, offset)
        assert part.offsets, f"nothing at {offset}, before the end {end}"
        assert part.offsets[0] == offset
        for name in ("keys", "values", "offsets", "timestamps_ms"):
            getattr(found, name).extend(getattr(part, name))
        offset = part.next_offset
    return found


async def settled(topics: Topics) -> None:
    """Wait until nothing is on its way to the disk."""
    await topics._writer.call(nothing)
    await topics._chores.settle()


async def killed(topics: Topics, copy: Path) -> Path:
    """What a process that is killed now leaves behind, as a copy."""
    # Copying takes its time, other than a kill: no file may come or go meanwhile.
    await settled(topics)
    shutil.copytree(topics.directory, copy, dirs_exist_ok=True)
    return copy


def segment_files(topics: Topics, topic: str, partition: int = 0) -> list[Path]:
    """The files with records of a partition, in order."""
    return sorted(topics.partition(topic, partition).directory.glob("*.log"))

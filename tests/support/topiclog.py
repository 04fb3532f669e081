"""A topic log in a directory of the test's, with a clock that the test moves."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ringleader.coordinator.topics import Topics, TopicSettings
from ringleader.coordinator.topics.disk import write_number
from ringleader.coordinator.topics.log import CATALOG_FILE, PRODUCER_IDS_FILE
from ringleader.protocol.columns import Columns, decode_columns
from ringleader.protocol.records import Record, build_batch

START_MS = 1_700_000_000_000


class WallClock:
    """Unix time as a test wants it: time goes by with `now_ms`."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.wrong_by_ms = 0
        """The ms by which a clock that has jumped is ahead."""

    def __call__(self) -> int:
        return self.now_ms + self.wrong_by_ms

    def monotonic_ms(self) -> int:
        """A clock that never jumps."""
        return self.now_ms


def topic_settings(**changed: Any) -> TopicSettings:
    """The defaults but for these, which may be such as no operator can choose."""
    return TopicSettings.model_construct(**changed)


def give_out_ids(directory: Path, count: int = 1_000) -> None:
    """As if `count` producer ids had been given out by the log in this directory."""
    directory.mkdir(parents=True, exist_ok=True)
    write_number(directory / PRODUCER_IDS_FILE, count)


@contextlib.asynccontextmanager
async def topic_log(
    directory: Path, clock: WallClock | None = None, *, given_ids: int = 1_000, **settings: Any
) -> AsyncIterator[Topics]:
    """An open log; closed as at a clean stop. In a new one `given_ids` producer ids were given out before."""
    if not (directory / CATALOG_FILE).exists():
        give_out_ids(directory, given_ids)
    clock = clock or WallClock()
    topics = Topics(directory, topic_settings(**settings), clock, now_ms=clock.monotonic_ms)
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


async def forget(topic: str, topic_id: bytes) -> None:
    """No group committed anything for this topic."""


def bounds(topics: Topics, topic: str = "orders", partition: int = 0) -> tuple[int, int]:
    """The first offset of a partition, and the next one."""
    found = topics.partition(topic, partition)
    return found.start_offset, found.high_watermark


async def everything(topics: Topics, topic: str, partition: int = 0, max_bytes: int = 1000) -> Columns:
    """All records of a partition, read piece by piece; offsets must go on from piece to piece."""
    found = Columns()
    offset, end = bounds(topics, topic, partition)
    while offset < end:
        part = decode_columns(
            await topics.read(topics.partition(topic, partition), offset, max_bytes), offset
        )
        assert part.offsets, f"nothing at {offset}, before the end {end}"
        assert part.offsets[0] == offset
        for name in ("keys", "values", "offsets", "timestamps_ms"):
            getattr(found, name).extend(getattr(part, name))
        offset = part.next_offset
    return found


async def settled(topics: Topics) -> None:
    """Wait until nothing is on its way to the disk."""
    await topics._appender.call(lambda files: None)
    # A write may have begun a job.
    await asyncio.sleep(0)
    await topics._background.settle()


async def killed(topics: Topics, copy: Path) -> Path:
    """A copy of the files that a process leaves behind which is killed now."""
    # Copying takes its time, other than a kill: no file may come or go meanwhile.
    await settled(topics)
    shutil.copytree(topics.directory, copy, dirs_exist_ok=True)
    return copy


def segment_files(topics: Topics, topic: str, partition: int = 0) -> list[Path]:
    """The files with records of a partition, in order."""
    return sorted(topics.partition(topic, partition).directory.glob("*.log"))

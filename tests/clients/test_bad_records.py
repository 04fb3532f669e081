"""A record that cannot be read is reported until it is skipped: nothing behind it is passed or committed."""

from __future__ import annotations

import asyncio
import gc
import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from ringleader import (
    CorruptRecordError,
    GroupConsumer,
    OffsetAndMetadata,
    PartitionConsumer,
    RecordDeserializationError,
    SyncGroupConsumer,
    SyncPartitionConsumer,
)
from ringleader.clients.fetch.model import Batch
from ringleader.protocol.compression import Compression
from ringleader.protocol.records import Record, build_batch, parse_header
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, QUICK, Source, consumer, fetched_offsets, until
from tests.support.reader_world import World, reader, take

COUNT = 500
BAD = 5


def good(first: int, count: int, **options: Any) -> bytes:
    return build_batch([Record(first + i, 1, b"k", b"%d" % (first + i)) for i in range(count)], **options)


def wrong_checksum(first: int, count: int) -> bytes:
    data = bytearray(good(first, count))
    data[-1] ^= 1
    return bytes(data)


def wrong_compression(first: int, count: int) -> bytes:
    from crc32c import crc32c

    data = bytearray(good(first, count, compression=Compression.GZIP))
    data[61:71] = b"x" * 10
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def wrong_lengths(first: int, count: int) -> bytes:
    """The checksum is right: a producer's fault, met when the records are looked at."""
    from crc32c import crc32c

    data = bytearray(good(first, count))
    data[61] += 2
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def one_refused(coordinator: Coordinator) -> None:
    """500 records in one batch; the deserializer refuses one."""
    records = [Record(i, 1, b"k", b"x" if i == BAD else b"%d" % i) for i in range(COUNT)]
    Source(coordinator).append(("t", 0), build_batch(records))


class Reads:
    """The calls of all kinds of consumers, awaited or not."""

    def __init__(self, kind: str, coordinator: Coordinator, **options: Any) -> None:
        where, options = coordinator.bootstrap, {"max_poll_records": COUNT} | options
        if kind in ("PartitionConsumer", "SyncPartitionConsumer"):
            made = PartitionConsumer if kind == "PartitionConsumer" else SyncPartitionConsumer
            self.consumer: Any = made(where, [("t", 0)], auto_offset_reset="earliest", **options)
        else:
            group = GroupConsumer if kind == "GroupConsumer" else SyncGroupConsumer
            self.consumer = group(where, "g", ["t"], **(QUICK | {"auto_commit_interval_ms": 20} | options))
        self.thread = ThreadPoolExecutor(1)
        self.blocks = kind.startswith("Sync")
        self.in_group = "Group" in kind

    async def call(self, name: str, *args: Any, **named: Any) -> Any:
        method = getattr(self.consumer, name)
        if self.blocks:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.thread, partial(method, *args, **named))
        found = method(*args, **named)
        return await found if asyncio.iscoroutine(found) else found

    async def ask(self) -> list[int]:
        batches: list[Batch] = await self.call("getmany", timeout_s=PATIENCE_S)
        return [record.offset for batch in batches for record in batch]

    async def committed(self) -> int | None:
        found = await self.call("committed")
        value: OffsetAndMetadata | None = found.get(("t", 0))
        return None if value is None else value.offset


KINDS = ["GroupConsumer", "SyncGroupConsumer", "PartitionConsumer", "SyncPartitionConsumer"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [{0}, {0, 1}, {0, 3}, {3, 4, 5}, {19}], ids=str)
async def test_each_record_that_is_refused_is_skipped_alone(
    coordinator: Coordinator, kind: str, bad: set[int]
) -> None:
    count = 20
    records = [Record(i, 1, b"k", b"x" if i in bad else b"%d" % i) for i in range(count)]
    Source(coordinator).append(("t", 0), build_batch(records))
    reads = Reads(kind, coordinator, value_deserializer=int)
    await reads.call("start")
    try:
        got: list[int] = []
        refused: set[int | None] = set()
        async with asyncio.timeout(PATIENCE_S):
            while len(got) + len(refused) < count:
                try:
                    got += await reads.ask()
                except RecordDeserializationError as error:
                    refused.add(error.offset)
                    await reads.call("skip", error)
        assert (got, refused) == ([i for i in range(count) if i not in bad], bad)
        if reads.in_group:
            await reads.call("commit")
            assert await reads.committed() == count
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("kind", KINDS)
async def test_records_that_are_refused_are_not_fetched_again(coordinator: Coordinator, kind: str) -> None:
    """Thirty in a row, in several batches, of which the last is compressed."""
    bad, last = 30, 35
    source = Source(coordinator)
    for first, end, codec in ((0, 10, 0), (10, 20, 0), (20, last, Compression.GZIP)):
        records = [Record(i - first, 1, b"k", b"x" if i < bad else b"%d" % i) for i in range(first, end)]
        source.append(("t", 0), build_batch(records, compression=Compression(codec)))
    reads = Reads(kind, coordinator, value_deserializer=int)
    await reads.call("start")
    try:
        for number in range(bad):
            with pytest.raises(RecordDeserializationError) as found:
                await reads.ask()
            assert found.value.offset == number
            await reads.call("skip", found.value)
        assert await reads.ask() == list(range(bad, last))
        assert set(fetched_offsets(coordinator, ("t", 0))) <= {0, last}
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_deserializer_that_fails_for_the_moment_is_asked_again(
    coordinator: Coordinator, kind: str
) -> None:
    """Or one in the middle of which a signal handler raised."""
    one_refused(coordinator)
    failures = [TimeoutError("of a registry"), TimeoutError("of a handler")]

    def read(data: bytes) -> bytes:
        if data == b"x" and failures:
            raise failures.pop()
        return data

    reads = Reads(kind, coordinator, value_deserializer=read)
    await reads.call("start")
    try:
        assert await reads.ask() == list(range(BAD))
        reports = 0
        while failures:
            with pytest.raises(RecordDeserializationError, match="at offset 5"):
                await reads.ask()
            reports += 1
        assert reports == 2
        assert await reads.ask() == list(range(BAD, COUNT))
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("kind", ["SyncGroupConsumer", "SyncPartitionConsumer"])
async def test_what_was_handed_out_and_put_down_is_not_kept(coordinator: Coordinator, kind: str) -> None:
    source = Source(coordinator)
    source.put(("t", 0), 100)
    reads = Reads(kind, coordinator)
    await reads.call("start")
    try:
        for _ in range(20):
            assert len(await reads.call("getmany", 5, PATIENCE_S)) == 1
        gc.collect()
        assert sum(isinstance(one, Batch) for one in gc.get_objects()) <= 2
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["skip", "seek"])
async def test_a_record_that_is_refused_holds_its_partition_and_costs_no_other(
    coordinator: Coordinator, kind: str, way: str
) -> None:
    one_refused(coordinator)
    reads = Reads(kind, coordinator, value_deserializer=int)
    await reads.call("start")
    try:
        assert await reads.ask() == list(range(BAD))
        for _ in range(3):
            with pytest.raises(RecordDeserializationError, match="t-0 at offset 5: the value") as found:
                await reads.ask()
        error = found.value
        assert (error.value, error.next_offset, await reads.call("position", ("t", 0))) == (b"x", 6, BAD)
        if reads.in_group:
            await reads.call("commit")
            assert await reads.committed() == BAD
        if way == "skip":
            await reads.call("skip", error)
            await reads.call("skip", error)  # it does not stand there any more
        else:
            await reads.call("seek", ("t", 0), error.next_offset)
        assert await reads.ask() == list(range(BAD + 1, COUNT))
        if reads.in_group:
            await reads.call("commit")
            assert await reads.committed() == COUNT
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("kind", ["GroupConsumer", "SyncGroupConsumer"])
async def test_records_before_a_refused_one_come_again_after_a_restart(
    coordinator: Coordinator, kind: str
) -> None:
    """Auto-commit, and the commit at the end, go no further than what was asked past."""
    one_refused(coordinator)
    for begin in (0, BAD):
        reads = Reads(kind, coordinator, value_deserializer=int)
        await reads.call("start")
        if begin == 0:
            assert await reads.ask() == list(range(BAD))
        with pytest.raises(RecordDeserializationError):
            await reads.ask()
        await reads.call("stop")
        async with consumer(coordinator, auto_commit=False) as other:
            assert (await other.committed([("t", 0)]))[("t", 0)].offset == BAD


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [wrong_checksum, wrong_compression, wrong_lengths])
async def test_a_batch_that_cannot_be_read_is_told_until_it_is_skipped(
    coordinator: Coordinator, kind: str, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(coordinator)
    # A disk or a broker that breaks what was right when it came.
    monkeypatch.setattr("ringleader.coordinator.topics.partition.check_batch", parse_header)
    for data in (good(0, 3), make(3, 4), good(7, 2)):
        source.append(("t", 0), data)
    reads = Reads(kind, coordinator)
    await reads.call("start")
    try:
        assert await reads.ask() == [0, 1, 2]
        for _ in range(3):
            with pytest.raises(CorruptRecordError, match="t-0 at offset 3") as found:
                await reads.ask()
        assert found.value.next_offset == 7
        assert await reads.call("position", ("t", 0)) == 3
        if reads.in_group:
            await reads.call("commit")
            assert await reads.committed() == 3
        await reads.call("skip", found.value)
        assert await reads.ask() == [7, 8]
    finally:
        await reads.call("stop")


async def test_the_batches_next_to_one_that_cannot_be_read_come_again(coordinator: Coordinator) -> None:
    """A look at the first batch of several raises: the application did not come to the others."""
    source = Source(coordinator)
    source.append(("t", 0), wrong_lengths(0, 4))
    source.append(("t", 1), good(0, 3))
    async with consumer(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        await until(lambda: {("t", 0), ("t", 1)} <= one.metrics().lags.keys())
        batches = await one.getmany(timeout_s=PATIENCE_S)
        assert sorted(batch.partition for batch in batches) == [0, 1]
        with pytest.raises(CorruptRecordError):
            len(next(batch for batch in batches if batch.partition == 0).values)
        found: list[tuple[int, int]] = []
        reported: set[tuple[str, int, int | None]] = set()
        while len(found) < 3:
            try:
                for batch in await one.getmany(timeout_s=PATIENCE_S):
                    found += [(record.partition, record.offset) for record in batch]
            except CorruptRecordError as error:
                reported.add((error.topic, error.partition, error.offset))
        assert reported <= {("t", 0, 0)}
        assert found == [(1, 0), (1, 1), (1, 2)]
        await one.commit()
        assert {tp: at.offset for tp, at in (await one.committed()).items() if at.offset} == {("t", 1): 3}


@pytest.mark.parametrize("exit_", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("kind", ["GroupConsumer", "SyncGroupConsumer"])
async def test_a_deserializer_that_ends_the_call_takes_no_record_with_it(
    coordinator: Coordinator, kind: str, exit_: type[BaseException]
) -> None:
    """It comes out of the call as it is, in the thread that asks, and the records come again."""
    one_refused(coordinator)
    raised: list[bytes] = []

    def end(data: bytes) -> bytes:
        if data == b"x" and not raised:
            raised.append(data)
            raise exit_("of the deserializer")
        return data

    reads = Reads(kind, coordinator, value_deserializer=end)
    await reads.call("start")
    try:
        outcome: list[Any] = []

        def ask() -> None:
            try:
                reads.consumer.getmany(timeout_s=PATIENCE_S)
            except BaseException as error:
                outcome.append(error)

        if reads.blocks:
            await asyncio.to_thread(ask)
        else:
            try:
                await reads.consumer.getmany(timeout_s=PATIENCE_S)
            except BaseException as error:
                outcome.append(error)
        assert [type(error) for error in outcome] == [exit_]
        assert await reads.ask() == list(range(COUNT))
    finally:
        await reads.call("stop")


async def test_other_partitions_are_read_on(coordinator: Coordinator) -> None:
    one_refused(coordinator)
    source = Source(coordinator)
    source.append(("t", 1), build_batch([Record(i, 1, b"k", b"%d" % i) for i in range(10)]))
    async with consumer(coordinator, value_deserializer=json.loads, max_poll_records=3) as one:
        offsets: dict[int, list[int]] = {0: [], 1: []}
        refused = 0
        while not (refused > 3 and len(offsets[1]) == 10):
            try:
                for batch in await one.getmany(timeout_s=PATIENCE_S):
                    offsets[batch.partition] += batch.offsets
            except RecordDeserializationError:
                refused += 1
        assert offsets == {0: list(range(BAD)), 1: list(range(10))}
        assert fetched_offsets(coordinator, ("t", 0))[0] == 0


async def test_a_batch_that_was_refused_in_part_is_taken_back_as_a_whole_though_the_next_is_corrupt() -> None:
    world = World()
    world.append(3)
    world.log[2] = wrong_checksum(2, 1)
    async with reader(world) as one:
        async with asyncio.timeout(PATIENCE_S):
            while (batch := await one.pick(10)) is None:
                one.something.clear()
                await one.something.wait()
        assert list(batch.offsets) == [0, 1]
        one.put_off(batch, 1)
        one.take_back()
        assert await take(one, 2) == [0, 1]

"""Records promised to be on the disk are there when the machine loses its power at once after the answer."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.topics import Topics, background, disk
from ringleader.coordinator.topics.transactional import next_offset
from ringleader.protocol.errors import KafkaError
from ringleader.protocol.records import Record, build_batch, iter_batches
from tests.support.durable import SyncWatch
from tests.support.topiclog import (
    WallClock,
    batch,
    bounds,
    forget,
    produced,
    segment_files,
    settled,
    topic_log,
)

TINY: dict[str, Any] = {"log_segment_bytes": 600, "tail_cache_bytes": 0}
HOUR_MS = 3_600_000


def allowed(producer_id: int, producer_epoch: int) -> None:
    """Any transactional batch may be appended."""


async def write(topics: Topics, producer_id: int, sequence: int, partition: int = 0) -> None:
    data = produced(producer_id, sequence, 2, transactional=True)
    await topics.append("orders", partition, data, allowed)


async def records(topics: Topics, topic: str = "orders", partition: int = 0) -> dict[int, bytes | None]:
    """Values by offset; None for markers."""
    start, end = bounds(topics, topic, partition)
    found: dict[int, bytes | None] = {}
    offset = start
    while offset < end:
        data = await topics.read(topics.partition(topic, partition), offset, 1_000)
        for view in iter_batches(data):
            view.check_crc()
            for record in view.records():
                if record.offset >= start:
                    found[record.offset] = None if view.header.is_control else record.value
        assert next_offset(data) > offset
        offset = next_offset(data)
    assert list(found) == list(range(start, end))
    return found


async def test_topics_are_there_from_the_first_start_on(tmp_path: Path, watch: SyncWatch) -> None:
    async with topic_log(tmp_path / "live" / "topics") as topics:
        first = await topics.create("orders", 2, {"retention.ms": "7"})
        cut = watch.after_power_cut(tmp_path / "created")
        async with topic_log(cut / "topics") as left:
            assert left.all() == [first]
        await topics.grow("orders", 3)
        await topics.configure("orders", lambda present: {})
        last = await topics.create("more", 1)
        cut = watch.after_power_cut(tmp_path / "changed")
        async with topic_log(cut / "topics") as left:
            assert left.all() == [last, topics.describe("orders")]


async def test_a_deleted_topic_does_not_come_back(tmp_path: Path, watch: SyncWatch) -> None:
    async def lose_power(topic: str, topic_id: bytes) -> None:
        watch.after_power_cut(tmp_path / "between")

    async with topic_log(tmp_path / "live" / "topics") as topics:
        await topics.create("orders", 1)
        await write(topics, 7, 0)
        await topics.end_transaction("orders", 0, 7, 0, committed=True)
        await topics.delete("orders", lose_power)
        watch.after_power_cut(tmp_path / "after")
    for left, due in ((tmp_path / "between", ["orders"]), (tmp_path / "after", [])):
        forgotten: list[str] = []

        async def note(topic: str, topic_id: bytes, forgotten: list[str] = forgotten) -> None:
            forgotten.append(topic)

        async with topic_log(left / "topics") as topics:
            assert topics.all() == []
            await topics.finish_deletions(note)
            assert forgotten == due
            assert list((left / "topics" / "data").iterdir()) == []
            await topics.create("orders", 1)
            assert bounds(topics) == (0, 0)


async def test_producer_ids_are_given_once(tmp_path: Path, watch: SyncWatch) -> None:
    given: list[int] = []
    async with topic_log(tmp_path / "live" / "topics") as topics:
        for number in range(3):
            given += [await topics.new_producer_id() for _ in range(700)]
            async with topic_log(watch.after_power_cut(tmp_path / str(number)) / "topics") as left:
                assert await left.new_producer_id() > max(given)


@pytest.mark.parametrize("segment_bytes", [100_000, 300])
async def test_an_ended_transaction_is_there_with_all_before_it(
    tmp_path: Path, watch: SyncWatch, segment_bytes: int
) -> None:
    settings: dict[str, Any] = {"log_segment_bytes": segment_bytes}
    async with topic_log(tmp_path / "live" / "topics", **settings) as topics:
        await topics.create("orders", 2)
        for number in range(4):
            for partition in range(2):
                await topics.append("orders", partition, batch(2))
                await write(topics, 7, number * 2, partition)
                await topics.end_transaction("orders", partition, 7, 0, committed=number % 2 == 0)
                left = watch.after_power_cut(tmp_path / f"{number}-{partition}") / "topics"
                async with topic_log(left, **settings) as found:
                    there, end = found.partition("orders", partition), (number + 1) * 5
                    assert (there.start_offset, there.last_stable_offset) == (0, end)
                    assert list(await records(found, "orders", partition)) == list(range(end))
                    aborted = [(7, 2 + 5 * at) for at in range(number + 1) if at % 2]
                    assert there.transactions.aborted(0, end) == aborted


async def write_unsynced(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction over several files: the background thread, which syncs those, has other things to do."""
    await topics.create("orders", 1)
    monkeypatch.setattr(topics._background, "seal", lambda sealed: None)
    for number in range(12):
        await write(topics, 7, number * 2)
    assert len(segment_files(topics, "orders")) > 1


async def test_an_end_waits_for_complete_files_that_were_not_synced_yet(
    tmp_path: Path, watch: SyncWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with topic_log(tmp_path / "live" / "topics", **TINY) as topics:
        await write_unsynced(topics, monkeypatch)
        await topics.end_transaction("orders", 0, 7, 0, committed=True)
        async with topic_log(watch.after_power_cut(tmp_path / "left") / "topics", **TINY) as left:
            assert list(await records(left)) == list(range(25))


async def test_an_end_that_could_not_be_synced_leaves_its_files_to_the_next(
    tmp_path: Path, watch: SyncWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no more files can be opened: no sync has failed, and the topic log goes on."""
    async with topic_log(tmp_path / "live" / "topics", **TINY) as topics:
        await write_unsynced(topics, monkeypatch)

        def full(path: Path) -> None:
            raise OSError(errno.EMFILE, "too many open files")

        with monkeypatch.context() as once:
            once.setattr(disk, "sync_path", full)
            with pytest.raises(KafkaError, match="too many open files"):
                await topics.end_transaction("orders", 0, 7, 0, committed=True)
        await topics.end_transaction("orders", 0, 7, 0, committed=True)
        async with topic_log(watch.after_power_cut(tmp_path / "left") / "topics", **TINY) as left:
            assert list(await records(left)) == list(range(26))


async def test_a_start_that_was_answered_is_never_taken_back(tmp_path: Path, watch: SyncWatch) -> None:
    async with topic_log(tmp_path / "live" / "topics", **TINY) as topics:
        await topics.create("orders", 1)
        for number in range(8):
            for _ in range(3):
                await topics.append("orders", 0, batch(10))
            start = await topics.truncate("orders", 0, 25 * (number + 1))
            assert start == 25 * (number + 1)
            async with topic_log(watch.after_power_cut(tmp_path / str(number)) / "topics", **TINY) as left:
                assert bounds(left)[0] == start
                assert (await left.append("orders", 0, batch())).base_offset >= start
                assert all(offset >= start for offset in await records(left))


async def test_files_go_when_it_is_durable_who_produced_into_them(tmp_path: Path, watch: SyncWatch) -> None:
    async with topic_log(tmp_path / "live" / "topics", **TINY) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(7, 0, 3))
        for _ in range(30):
            await topics.append("orders", 0, batch(10))
        await settled(topics)
        await topics.truncate("orders", 0, 300)
        await settled(topics)
        # Makes durable that the files are gone.
        await topics.truncate("orders", 0, 301)
        async with topic_log(watch.after_power_cut(tmp_path / "left") / "topics", **TINY) as left:
            assert (await left.append("orders", 0, produced(7, 0, 3))).base_offset == 0


async def test_retention_leaves_offsets_producers_and_open_transactions(
    tmp_path: Path, watch: SyncWatch
) -> None:
    clock = WallClock()
    async with topic_log(tmp_path / "live" / "topics", clock, log_retention_ms=HOUR_MS) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(7, 0, 3))
        await write(topics, 8, 0)
        clock.now_ms += 2 * HOUR_MS
        assert await topics.enforce_retention() == 1
        assert bounds(topics) == (5, 5)
        async with topic_log(watch.after_power_cut(tmp_path / "left") / "topics", clock) as left:
            assert bounds(left) == (5, 5)
            assert [found[2] for found in left.open_transactions()] == [8]
            assert (await left.append("orders", 0, produced(7, 0, 3))).base_offset == 0


async def test_a_complete_file_is_on_the_disk_before_its_index_says_so(
    tmp_path: Path, watch: SyncWatch
) -> None:
    async with topic_log(tmp_path / "live" / "topics", **TINY) as topics:
        await topics.create("orders", 1)
        for _ in range(20):
            await topics.append("orders", 0, batch(10))
        await settled(topics)
        complete = segment_files(topics, "orders")[:-1]
        assert len(complete) > 3
        last = int(segment_files(topics, "orders")[-1].stem)
        async with topic_log(watch.after_power_cut(tmp_path / "left") / "topics", **TINY) as left:
            assert list(await records(left)) == list(range(last))


@pytest.mark.parametrize("count", [3, background.SYNC_ALL_ABOVE + 1])
async def test_after_a_clean_stop_nothing_can_be_lost(tmp_path: Path, watch: SyncWatch, count: int) -> None:
    async with topic_log(tmp_path / "live" / "topics") as topics:
        await topics.create("orders", count)
        for partition in range(count):
            await topics.append("orders", partition, batch(2))
    async with topic_log(watch.after_power_cut(tmp_path / "left") / "topics") as left:
        assert [bounds(left, "orders", partition) for partition in range(count)] == [(0, 2)] * count


async def test_what_was_put_aside_at_a_start_does_not_come_back(tmp_path: Path, watch: SyncWatch) -> None:
    live = tmp_path / "live" / "topics"
    async with topic_log(live, **TINY) as topics:
        await topics.create("orders", 1)
        for number in range(6):
            await topics.append("orders", 0, produced(7, number, 1, size=200))
    files = sorted(live.glob("data/*/0/*.log"))
    for index in live.glob("data/*/0/*.index"):
        index.unlink()
    files[1].write_bytes(files[1].read_bytes()[:-1])
    base = int(files[2].stem)
    async with topic_log(live, **TINY) as topics:
        (end,) = {bounds(topics)[1]}
        for number in range(end, base + 1):
            await topics.append(
                "orders", 0, produced(9, number - end, 1, size=10, transactional=True), allowed
            )
        await topics.end_transaction("orders", 0, 9, 0, committed=True)
        whole = await records(topics)
        async with topic_log(watch.after_power_cut(tmp_path / "left") / "topics", **TINY) as left:
            assert await records(left) == whole


@dataclass
class Promised:
    """The answers for one partition."""

    start: int = 0
    values: dict[int, bytes | None] = field(default_factory=dict)
    """By offset, as far as written; markers too."""
    durable: int = 0
    """All before this offset was synced."""


async def test_whatever_was_promised_is_kept(tmp_path: Path, watch: SyncWatch, seed: int) -> None:
    """Anything in any order, and the power fails now and then."""
    await play(random.Random(seed), tmp_path, watch)


async def play(rng: random.Random, tmp_path: Path, watch: SyncWatch) -> None:
    clock = WallClock()
    settings: dict[str, Any] = {"log_segment_bytes": 900, "log_retention_ms": 20_000, "tail_cache_bytes": 500}
    topics: dict[str, dict[int, Promised]] = {}
    ids: set[int] = set()
    transaction = 0
    async with topic_log(tmp_path / "live" / "topics", clock, **settings) as log:
        for number in range(160):
            clock.now_ms += rng.randint(0, 500)
            name = rng.choice("abc")
            step = rng.choices(range(6), [1, 10, 4, 2, 0.3, 1])[0]
            if step == 0 or name not in topics:
                if name in topics:
                    await log.delete(name, forget)
                    del topics[name]
                else:
                    await log.create(name, 2)
                    topics[name] = {index: Promised() for index in range(2)}
                continue
            index = rng.randrange(2)
            promised = topics[name][index]
            if step == 1:
                made = [
                    Record(at, clock.now_ms, None, b"%d-%d" % (number, at)) for at in range(rng.randint(1, 5))
                ]
                base = (await log.append(name, index, build_batch(made))).base_offset
                promised.values |= {base + record.offset: record.value for record in made}
            elif step == 2:
                transaction += 1
                data = produced(transaction, 0, 1, transactional=True)
                base = (await log.append(name, index, data, allowed)).base_offset
                await log.end_transaction(name, index, transaction, 0, committed=rng.random() < 0.5)
                promised.values |= {base: b"%010d" % 0, base + 1: None}
                promised.durable = base + 2
            elif step == 3:
                end = log.partition(name, index).high_watermark
                promised.start = await log.truncate(name, index, rng.randint(0, end))
            elif step == 4:
                await log.enforce_retention()
                for one, parts in topics.items():
                    for at, part in parts.items():
                        part.start = bounds(log, one, at)[0]
            else:
                ids.add(await log.new_producer_id())
            if rng.random() < 0.2:
                left = watch.after_power_cut(tmp_path / str(number)) / "topics"
                async with topic_log(left, clock, **settings) as found:
                    assert {info.name: info.id for info in found.all()} == {
                        one: info.id for one in topics if (info := log.describe(one))
                    }
                    assert await found.new_producer_id() not in ids
                    for one, parts in topics.items():
                        for at, part in parts.items():
                            await check(found, one, at, part)


async def check(found: Topics, topic: str, index: int, promised: Promised) -> None:
    start, end = bounds(found, topic, index)
    assert start == promised.start
    assert end >= promised.durable
    for offset, value in (await records(found, topic, index)).items():
        assert promised.values[offset] == value

"""The small parts: the newest records in memory, the appending thread's order, files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.topics.appender import Appender, Chain, FileWrite, OpenFiles, pwrite_all
from ringleader.coordinator.topics.catalog import check_name
from ringleader.coordinator.topics.disk import write_whole
from ringleader.coordinator.topics.tails import BATCH_OVERHEAD_BYTES, Tail, TailCache
from ringleader.protocol.errors import KafkaError
from tests.support.topiclog import START_MS, batch, topic_log


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 30)), max_size=60),
    st.integers(0, 4_000),
    st.integers(0, 200),
    st.integers(0, 100),
)
def test_the_tail_has_the_newest_batches_without_gaps(
    batches: list[tuple[int, int]], limit: int, offset: int, max_bytes: int
) -> None:
    cache, tail, end, kept = TailCache(limit), Tail(), 0, list[tuple[int, int, bytes]]()
    for number, (count, size) in enumerate(batches):
        data = bytes([number]) * size
        cache.add(tail, end, end + count, data)
        kept.append((end, end + count, data))
        end += count
        while sum(len(batch) + BATCH_OVERHEAD_BYTES for _, _, batch in kept) > limit:
            kept.pop(0)
    assert len(tail) == len(kept)
    assert cache.size_bytes == sum(len(batch) + BATCH_OVERHEAD_BYTES for _, _, batch in kept)
    due: bytes | None = None
    for base, following, data in kept:
        if due is None and base <= offset < following:
            due = data
        elif due is not None:
            if len(due) + len(data) > max_bytes:
                break
            due += data
    assert tail.read(offset, max_bytes) == due


def test_a_long_tail_is_compacted() -> None:
    cache, tail = TailCache(5 * (10 + BATCH_OVERHEAD_BYTES)), Tail()
    for offset in range(5_000):
        cache.add(tail, offset, offset + 1, b"0123456789")
    assert len(tail) == 5
    assert len(tail._bases) < 2_000
    assert tail.read(4_995, 1_000) == b"0123456789" * 5
    assert tail.read(4_994, 1_000) is None


def test_what_is_evicted_takes_no_memory_before_the_tail_is_compacted() -> None:
    cache, tail = TailCache(5 * (1_000 + BATCH_OVERHEAD_BYTES)), Tail()
    for offset in range(100):
        cache.add(tail, offset, offset + 1, bytes(1_000))
    assert sum(map(len, tail._batches)) == 5_000


async def test_writes_are_done_in_order_and_reported_in_order(tmp_path: Path) -> None:
    reported: list[FileWrite] = []
    reported_bugs: list[Exception] = []
    everything = asyncio.Event()

    def done(writes: list[FileWrite]) -> None:
        reported.extend(writes)
        if len(reported) == 60:
            everything.set()

    writer, chain = Appender(done, reported_bugs.append), Chain()
    writer.start()
    paths = [tmp_path / "deep" / name for name in ("a", "b")]
    positions = dict.fromkeys(paths, 0)
    for number in range(60):
        path = paths[number % 2]
        data = bytes([number]) * 100
        writer.write([FileWrite(path, positions[path], data, chain)])
        positions[path] += 100
    sizes = await writer.call(lambda files: [path.stat().st_size for path in paths])
    async with asyncio.timeout(10):
        await everything.wait()
    assert sizes == [3_000, 3_000]
    assert [write.data[0] for write in reported] == list(range(60))
    assert paths[1].read_bytes() == b"".join(bytes([number]) * 100 for number in range(1, 60, 2))
    with pytest.raises(ZeroDivisionError):
        await writer.call(lambda files: 1 / 0)
    await writer.stop()


def test_many_parts_are_written_with_few_calls(tmp_path: Path) -> None:
    files = OpenFiles(1)
    descriptor = files.get(tmp_path / "a")
    pwrite_all(descriptor, [b"%04d" % number for number in range(3_000)], 8)
    data = (tmp_path / "a").read_bytes()
    assert data == bytes(8) + b"".join(b"%04d" % number for number in range(3_000))
    files.get(tmp_path / "b")
    assert files.get(tmp_path / "b") == files.get(tmp_path / "b")
    files.close()


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for data in (b"one", b"", b"three"):
        write_whole(path, data)
        assert path.read_bytes() == data
    assert [found.name for found in tmp_path.iterdir()] == ["f"]


@given(st.text(max_size=300))
def test_names_of_topics(name: str) -> None:
    letters = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    good = 1 <= len(name) <= 249 and set(name) <= letters and name not in (".", "..")
    try:
        check_name(name)
    except KafkaError:
        assert not good
    else:
        assert good


async def test_a_file_is_read_up_to_what_may_be_and_searched_from_the_first_of_a_time(tmp_path: Path) -> None:
    batches = [batch(150) for _ in range(8)]
    size = len(batches[0])
    assert 2_048 < size < 4_096, "every second one is in the index"
    async with topic_log(tmp_path, tail_cache_bytes=0) as topics:
        await topics.create("orders", 1)
        for one in batches:
            await topics.append("orders", 0, one)
        assert await topics.offset_for_time("orders", 0, START_MS + 149) == (149, START_MS + 149)
        partition = topics.partition("orders", 0)
        for most in (2 * size, 3 * size, 4 * size - 1, 5 * size):
            assert size <= len(await topics.read(partition, 0, most)) <= most

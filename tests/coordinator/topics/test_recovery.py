"""The remains of a crash: torn tails, broken batches, indexes that are missing, half written, another
file's."""

from __future__ import annotations

import asyncio
import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.topics import AppendResult, appender
from ringleader.coordinator.topics import log as log_room
from ringleader.coordinator.topics.log import ENDS_FILE
from ringleader.coordinator.topics.recovery import recover
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.support.topiclog import (
    START_MS,
    batch,
    bounds,
    everything,
    forget,
    killed,
    produced,
    segment_files,
    topic_log,
)

MISSING = "files of a partition are missing: their records are gone"
MISSING_AT_END = "files of a partition are missing: its last records are gone"
"""Events of log lines."""
TINY: dict[str, Any] = {"log_segment_bytes": 2_000, "tail_cache_bytes": 0}


async def filled(directory: Path, batches: int = 30) -> None:
    """30 batches of 10 records, producer 7's."""
    async with topic_log(directory, **TINY) as topics:
        await topics.create("orders", 1)
        for number in range(batches):
            await topics.append("orders", 0, produced(7, number * 10, 10, at_ms=START_MS + number * 10))


def files(directory: Path, suffix: str = ".log") -> list[Path]:
    return sorted(directory.glob(f"data/*/0/*{suffix}"))


def first_alone(directory: Path) -> Path:
    """The first file; the others go, with their indexes."""
    first, *others = files(directory)
    for path in others:
        path.unlink()
        path.with_suffix(".index").unlink()
    return first


async def test_a_killed_process_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    async with topic_log(tmp_path / "live", **TINY) as topics:
        await topics.create("orders", 1)
        for number in range(25):
            await topics.append("orders", 0, produced(7, number * 10, 10))
        left = await killed(topics, tmp_path / "left")
    async with topic_log(left, **TINY) as topics:
        assert (await everything(topics, "orders")).offsets == list(range(250))
        assert (await topics.append("orders", 0, produced(7, 240, 10))).base_offset == 240
        assert (await topics.append("orders", 0, produced(7, 250, 10))).base_offset == 250


async def test_every_torn_tail_is_cut_to_whole_batches(tmp_path: Path) -> None:
    await filled(tmp_path / "whole", batches=3)
    size = len(produced(7, 0, 10))
    for cut in [*range(1, size, 37), size - 1]:
        torn = tmp_path / str(cut)
        shutil.copytree(tmp_path / "whole", torn)
        (last,) = files(torn)
        last.write_bytes(last.read_bytes()[:-cut])
        async with topic_log(torn, **TINY) as topics:
            assert topics.partition("orders", 0).high_watermark == 20
            assert last.stat().st_size == 2 * size
            assert (await topics.append("orders", 0, produced(7, 20, 10))).base_offset == 20
            assert (await everything(topics, "orders")).offsets == list(range(30))


async def test_garbage_behind_the_last_batch_is_cut_off(tmp_path: Path) -> None:
    for number, garbage in enumerate([b"x", bytes(300), b"\xff" * 100, batch(3), batch(3)[:-5]]):
        directory = tmp_path / str(number)
        await filled(directory, batches=2)
        (last,) = files(directory)
        whole = last.read_bytes()
        last.write_bytes(whole + garbage)
        async with topic_log(directory, **TINY) as topics:
            assert topics.partition("orders", 0).high_watermark == 20
        assert last.read_bytes() == whole


async def test_a_broken_batch_ends_the_log_and_later_files_are_put_aside(tmp_path: Path) -> None:
    await filled(tmp_path)
    for index in files(tmp_path, ".index"):
        index.unlink()
    second = files(tmp_path)[1]
    base, count = int(second.stem), len(files(tmp_path))
    data = bytearray(second.read_bytes())
    data[len(produced(7, 0, 10)) + 70] ^= 1
    second.write_bytes(data)
    async with topic_log(tmp_path, **TINY) as topics:
        assert topics.partition("orders", 0).high_watermark == base + 10
        assert (await everything(topics, "orders")).offsets == list(range(base + 10))
        assert len(segment_files(topics, "orders")) == 2
        assert (await topics.append("orders", 0, produced(7, base + 10, 10))).base_offset == base + 10
    assert len(files(tmp_path, ".dropped")) == count - 2


def lines_of(caplog: pytest.LogCaptureFixture, event: str) -> list[Any]:
    """Lines of an event since the last look; their fields are attributes."""
    found = [record for record in caplog.records if record.getMessage().startswith(event)]
    caplog.clear()
    return found


async def test_files_that_are_missing_at_the_beginning_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(tmp_path)
    first, second, *_ = files(tmp_path)
    first.unlink()
    async with topic_log(tmp_path, **TINY) as topics:
        assert bounds(topics) == (int(second.stem), 300)
        assert await topics.truncate("orders", 0, 155) == 155
    [line] = lines_of(caplog, MISSING)
    assert line.levelname == "ERROR"
    assert (line.topic, line.partition) == ("orders", 0)
    assert line.offsets == line.start_offset == int(second.stem)
    # Deleted records are not missed, with or without their files.
    async with topic_log(tmp_path, **TINY) as topics:
        assert bounds(topics) == (155, 300)
    assert not lines_of(caplog, MISSING)


async def test_a_partition_without_any_of_its_files_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The indexes still know its former end; offsets do not begin again."""
    await filled(tmp_path)
    (tmp_path / ENDS_FILE).unlink()
    for path in files(tmp_path):
        path.unlink()
    async with topic_log(tmp_path, **TINY) as topics:
        assert bounds(topics) == (300, 300)
    [line] = lines_of(caplog, MISSING)
    assert (line.offsets, line.start_offset) == (300, 300)


@pytest.mark.parametrize("missing", ["partition", "topic", "everything"])
async def test_a_partition_whose_directory_is_missing_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, missing: str
) -> None:
    await filled(tmp_path)
    partition = files(tmp_path)[0].parent
    shutil.rmtree(
        {"partition": partition, "topic": partition.parent, "everything": tmp_path / "data"}[missing]
    )
    for _ in range(2):
        async with topic_log(tmp_path, **TINY) as topics:
            assert bounds(topics) == (300, 300)
    [line] = lines_of(caplog, MISSING)
    assert line.levelname == "ERROR"
    assert (line.topic, line.partition, line.offsets, line.start_offset) == ("orders", 0, 300, 300)
    async with topic_log(tmp_path, **TINY) as topics:
        assert (await topics.append("orders", 0, produced(7, 300, 10))).base_offset == 300
        assert (await everything(topics, "orders")).offsets == list(range(300, 310))


@pytest.mark.parametrize("known_by", ["index", "ends"])
async def test_a_last_file_that_is_missing_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, known_by: str
) -> None:
    await filled(tmp_path)
    last = files(tmp_path)[-1]
    last.unlink()
    (tmp_path / ENDS_FILE if known_by == "index" else last.with_suffix(".index")).unlink()
    base = int(last.stem)
    for _ in range(2):
        async with topic_log(tmp_path, **TINY) as topics:
            assert bounds(topics) == (0, base)
    [line] = lines_of(caplog, MISSING_AT_END)
    assert line.levelname == "ERROR"
    assert (line.topic, line.partition, line.offsets, line.end_offset) == ("orders", 0, 300 - base, base)


async def test_ends_that_cannot_be_read_stop_no_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(tmp_path)
    for damaged in (b"", b"{", b"[1]", b'{"a": 1}', b'{"a": {"b": null}}', b'{"a": {"0": "x"}}', b"\xff"):
        (tmp_path / ENDS_FILE).write_bytes(damaged)
        async with topic_log(tmp_path, **TINY) as topics:
            assert bounds(topics) == (0, 300)
    (tmp_path / ENDS_FILE).unlink()
    (tmp_path / ENDS_FILE).mkdir()
    async with topic_log(tmp_path, **TINY) as topics:
        assert bounds(topics) == (0, 300)
    assert not lines_of(caplog, MISSING_AT_END)


async def test_records_that_retention_deletes_are_not_missed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await filled(tmp_path)
    for retention in (5_000, 1, -1):
        async with topic_log(tmp_path, **TINY, log_retention_bytes=retention) as topics:
            await topics.enforce_retention()
    assert MISSING not in caplog.text
    assert len(lines_of(caplog, "records deleted by retention")) == 2


@pytest.mark.parametrize(
    "damage", ["missing", "empty", "half", "another end", "flipped", "another file's", "grown file"]
)
async def test_indexes_are_believed_only_if_whole(tmp_path: Path, damage: str) -> None:
    await filled(tmp_path)
    indexes = files(tmp_path, ".index")
    assert len(indexes) == len(files(tmp_path)) > 2
    for index in indexes:
        data = index.read_bytes()
        if damage == "missing":
            index.unlink()
        elif damage == "empty":
            index.write_bytes(b"")
        elif damage == "half":
            index.write_bytes(data[: len(data) // 2])
        elif damage == "another end":
            index.write_bytes(data[:16] + bytes([data[16] ^ 1]) + data[17:])
        elif damage == "flipped":
            index.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
        elif damage == "another file's":
            index.write_bytes(indexes[0].read_bytes())
    if damage == "grown file":
        last = files(tmp_path)[-1]
        last.write_bytes(last.read_bytes() + b"torn")
    async with topic_log(tmp_path, **TINY) as topics:
        assert (await everything(topics, "orders")).offsets == list(range(300))
        assert await topics.offset_for_time("orders", 0, START_MS + 155) == (155, START_MS + 155)
        assert (await topics.append("orders", 0, produced(7, 290, 10))).base_offset == 290


async def test_after_a_clean_stop_no_records_are_read(tmp_path: Path) -> None:
    await filled(tmp_path)
    directory = files(tmp_path)[0].parent
    found = recover(directory, START_MS)
    assert (found.scanned_bytes, found.cut_bytes, found.next_offset) == (0, 0, 300)
    files(tmp_path, ".index")[-1].unlink()
    found = recover(directory, START_MS)
    assert found.scanned_bytes == files(tmp_path)[-1].stat().st_size


@pytest.mark.parametrize("damage", [None, b"", b"RLIX"])
async def test_producers_are_known_when_an_index_was_lost_and_then_its_files(
    tmp_path: Path, damage: bytes | None
) -> None:
    async with topic_log(tmp_path, **TINY) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(7, 0, 10))
        for _ in range(20):
            await topics.append("orders", 0, batch(10))
    for index in files(tmp_path, ".index"):
        if damage is None:
            index.unlink()
        else:
            index.write_bytes(damage)
    async with topic_log(tmp_path, **TINY) as topics:
        await topics.truncate("orders", 0, -1)
        left = await killed(topics, tmp_path.with_name(tmp_path.name + "-left"))
    for directory in (left, tmp_path):
        async with topic_log(directory, **TINY) as topics:
            assert (await topics.append("orders", 0, produced(7, 0, 10))).base_offset == 0


async def test_a_lost_last_file_takes_only_its_own_batches_along(tmp_path: Path) -> None:
    async with topic_log(tmp_path / "live", **TINY) as topics:
        await topics.create("orders", 1)
        number = 0
        while len(segment_files(topics, "orders")) < 2:
            await topics.append("orders", 0, produced(7, number * 10, 10))
            number += 1
        left = await killed(topics, tmp_path / "left")
    last = files(left)[-1]
    assert int(last.stem) == number * 10 - 10
    last.unlink()
    async with topic_log(left, **TINY) as topics:
        # Its producer was answered, and tries again all the same; nothing is known of that batch.
        await topics.append("orders", 0, produced(7, number * 10 - 10, 10))
        assert (await everything(topics, "orders")).offsets == list(range(number * 10))


async def test_an_index_that_knows_more_than_there_is_never_counts_again(tmp_path: Path) -> None:
    async with topic_log(tmp_path, tail_cache_bytes=0) as topics:
        await topics.create("orders", 1)
        for number in range(3):
            await topics.append("orders", 0, produced(7, number))
    (only,) = files(tmp_path)
    size = only.stat().st_size // 3
    only.write_bytes(only.read_bytes()[:size])
    async with topic_log(tmp_path, tail_cache_bytes=0) as topics:
        for number in range(2):
            await topics.append("orders", 0, produced(8, number))
        left = await killed(topics, tmp_path.with_name(tmp_path.name + "-left"))
    async with topic_log(left, tail_cache_bytes=0) as topics:
        assert bounds(topics) == (0, 3)
        assert (await topics.append("orders", 0, produced(8, 1))).base_offset == 2
        assert (await topics.append("orders", 0, produced(7, 1))).base_offset == 3


async def test_an_index_left_alone_goes(tmp_path: Path) -> None:
    await filled(tmp_path)
    directory = files(tmp_path)[0].parent
    stray = directory / "00000000000000009999.index"
    stray.write_bytes(b"x")
    (directory / "log-start.new").write_bytes(b"1")
    recover(directory, START_MS)
    assert not stray.exists()
    assert not (directory / "log-start.new").exists()


async def test_a_second_start_finds_what_the_first_one_left_of_damaged_files(tmp_path: Path) -> None:
    """The first file is broken before the start of the log, and the others are put aside with it: their
    indexes once moved the second start, not the first one."""
    await filled(tmp_path)
    async with topic_log(tmp_path, **TINY) as topics:
        assert await topics.truncate("orders", 0, 5) == 5
    first = files(tmp_path)[0]
    first.write_bytes(b"no batch")
    starts = [recover(first.parent, START_MS) for _ in range(2)]
    # These offsets were given to records, so they are not given again.
    bounds_found = [(found.start_offset, found.next_offset, len(found.segments)) for found in starts]
    assert bounds_found == [(300, 300, 0)] * 2
    assert starts[0].dropped
    assert not starts[1].dropped


async def test_each_start_knows_whose_files_before_the_start_of_the_log_went(tmp_path: Path) -> None:
    await filled(tmp_path)
    first = first_alone(tmp_path)
    (first.parent / "log-start").write_text("300\n")
    for _ in range(3):
        found = recover(first.parent, START_MS)
        assert (found.start_offset, found.next_offset, found.missing) == (300, 300, 0)
        assert [row[0] for row in found.producers.dump()] == [7]
        assert not first.exists()


async def test_offsets_behind_a_file_without_records_are_given_once(tmp_path: Path) -> None:
    """The end is known from the file of ends alone."""
    await filled(tmp_path)
    first = first_alone(tmp_path)
    first.write_bytes(b"")
    first.with_suffix(".index").unlink()
    async with topic_log(tmp_path, **TINY) as topics:
        assert bounds(topics) == (300, 300)
        assert (await topics.append("orders", 0, batch())).base_offset == 300


async def test_what_delete_records_left_outlives_a_kill(tmp_path: Path) -> None:
    async with topic_log(tmp_path / "live", **TINY) as topics:
        await topics.create("orders", 1)
        for number in range(30):
            await topics.append("orders", 0, produced(7, number * 10, 10))
        assert await topics.truncate("orders", 0, 155) == 155
        left = await killed(topics, tmp_path / "left")
    async with topic_log(left, **TINY) as topics:
        assert bounds(topics) == (155, 300)
        assert (await everything(topics, "orders")).offsets == list(range(155, 300))
        with pytest.raises(KafkaError):
            await topics.read(topics.partition("orders", 0), 154, 1000)


async def test_a_failed_write_takes_back_what_built_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = vars(appender)["pwrite_all"]
    broken = False

    def write(descriptor: int, parts: list[bytes], position: int) -> None:
        if not broken:
            real(descriptor, parts, position)
            return
        # The disk takes some bytes of it and is full then.
        real(descriptor, [parts[0][:20]], position)
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(appender, "pwrite_all", write)
    async with topic_log(tmp_path / "live", **TINY) as topics:
        await topics.create("orders", 2)
        for number in range(5):
            await topics.append("orders", 0, produced(7, number * 10, 10))
        broken = True
        attempts = [topics.append("orders", 0, produced(7, 50 + number * 10, 10)) for number in range(12)]
        attempts.append(topics.append("orders", 0, produced(7, 160, 10)))
        results = await asyncio.gather(*attempts, return_exceptions=True)
        assert {getattr(result, "code", 0) for result in results} == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert topics.partition("orders", 0).high_watermark == 50
        assert (await everything(topics, "orders")).offsets == list(range(50))
        broken = False
        # The producer tries again, from the first that failed: no gap, no duplicate.
        for number in range(12):
            result = await topics.append("orders", 0, produced(7, 50 + number * 10, 10))
            assert result.base_offset == 50 + number * 10
        assert (await everything(topics, "orders")).offsets == list(range(170))
        left = await killed(topics, tmp_path / "left")
    async with topic_log(left, **TINY) as topics:
        assert (await everything(topics, "orders")).offsets == list(range(170))


async def test_what_builds_on_a_failed_write_fails_though_the_disk_has_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Any = vars(appender)["pwrite_all"]
    failures = [OSError(errno.ENOSPC, "no space left")]

    def write(descriptor: int, parts: list[bytes], position: int) -> None:
        if failures:
            raise failures.pop()
        real(descriptor, parts, position)

    async with topic_log(tmp_path, **TINY) as topics:
        await topics.create("orders", 1)
        monkeypatch.setattr(appender, "pwrite_all", write)
        # Into several files, each of which is a write of its own.
        attempts = [topics.append("orders", 0, produced(7, number * 10, 10)) for number in range(12)]
        results = await asyncio.gather(*attempts, return_exceptions=True)
        assert {getattr(result, "code", 0) for result in results} == {ErrorCode.KAFKA_STORAGE_ERROR}
        assert (await topics.append("orders", 0, produced(7, 0, 10))).base_offset == 0
        assert (await everything(topics, "orders")).offsets == list(range(10))


async def test_a_full_disk_is_not_told_of_for_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_ms, code = 0, errno.ENOSPC

    def write(descriptor: int, parts: list[bytes], position: int) -> None:
        raise OSError(code, "no more")

    monkeypatch.setattr(appender, "pwrite_all", write)
    monkeypatch.setattr(log_room, "monotonic_ms", lambda: now_ms)
    async with topic_log(tmp_path, **TINY) as topics:
        await topics.create("orders", 2)
        for step in ((0, errno.ENOSPC), (4_999, errno.EIO), (5_000, errno.ENOSPC)):
            now_ms, code = step
            for number in range(20):
                with pytest.raises(KafkaError):
                    await topics.append("orders", number % 2, batch())
    lines = [
        (line.reason[:10], line.left_out_before) for line in lines_of(caplog, "records cannot be written")
    ]
    assert lines == [("[Errno 28]", 0), ("[Errno 5] ", 0), ("[Errno 28]", 19)]


async def test_a_partition_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        info = await topics.create("orders", 2)
        (tmp_path / "data" / info.id.hex()).mkdir()
        # A file where the partition's directory belongs.
        (tmp_path / "data" / info.id.hex() / "0").write_text("in the way")
        results = await asyncio.gather(
            *(topics.append("orders", partition, batch()) for partition in (0, 1)), return_exceptions=True
        )
        assert isinstance(results[0], KafkaError)
        assert results[0].code == ErrorCode.KAFKA_STORAGE_ERROR
        assert isinstance(results[1], AppendResult)
        assert results[1].base_offset == 0


async def test_topics_that_cannot_be_stored_are_not_there(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        (tmp_path / "topics.json.new").mkdir()
        for attempt in (topics.create("more", 1), topics.delete("orders", forget), topics.grow("orders", 2)):
            with pytest.raises(KafkaError) as error:
                await attempt
            assert error.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert [(info.name, info.partitions) for info in topics.all()] == [("orders", 1)]
        (tmp_path / "topics.json.new").rmdir()
        await topics.create("more", 1)


async def test_a_kill_does_not_forget_producers_whose_files_are_gone(tmp_path: Path) -> None:
    async with topic_log(tmp_path / "live", **TINY) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(7, 0, 10))
        for _ in range(20):
            await topics.append("orders", 0, batch(10))
        await topics.truncate("orders", 0, -1)
        left = await killed(topics, tmp_path / "left")
    async with topic_log(left, **TINY) as topics:
        assert (await topics.append("orders", 0, produced(7, 0, 10))).base_offset == 0
        assert topics.partition("orders", 0).high_watermark == 210

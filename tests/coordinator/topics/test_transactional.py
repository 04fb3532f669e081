"""Transactions in a partition: what readers of committed records see, now and after whatever happened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ringleader.coordinator.topics import Topics
from ringleader.coordinator.topics.transactional import Aborted, TransactionIndex, before, marker, next_offset
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import iter_batches
from tests.support.topiclog import START_MS, WallClock, batch, killed, produced, topic_log


def allowed(producer_id: int, producer_epoch: int) -> None:
    """Any transactional batch may be appended."""


async def write(topics: Topics, producer_id: int, sequence: int, count: int = 1, epoch: int = 0) -> int:
    """A batch of a transaction; its offset."""
    data = produced(producer_id, sequence, count, epoch, transactional=True)
    return (await topics.append("orders", 0, data, allowed)).base_offset


async def end(topics: Topics, producer_id: int, committed: bool, epoch: int = 0) -> None:
    await topics.end_transaction("orders", 0, producer_id, epoch, committed=committed)


def seen(topics: Topics) -> tuple[int, int, list[tuple[int, int]]]:
    """Last stable offset, end, and the aborted transactions (producer id, first offset)."""
    partition = topics.partition("orders", 0)
    return partition.last_stable_offset, partition.high_watermark, partition.transactions.aborted(0, 2**40)


async def test_the_first_open_transaction_holds_back_the_last_stable_offset(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch())
        assert await write(topics, 7, 0, 2) == 1
        assert await write(topics, 8, 0) == 3
        assert await write(topics, 7, 2) == 4
        assert seen(topics) == (1, 5, [])
        await end(topics, 8, False)
        assert seen(topics) == (1, 6, [(8, 3)])
        await end(topics, 7, True)
        assert seen(topics) == (7, 7, [(8, 3)])
        await end(topics, 7, False)
        assert seen(topics) == (8, 8, [(8, 3)]), "a marker after no records aborts nothing"


async def test_a_marker_is_a_control_batch_as_kafka_writes_it(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await write(topics, 7, 0, epoch=3)
        await end(topics, 7, True, epoch=3)
        records = await topics.read(topics.partition("orders", 0), 1, 1000)
        (view,) = iter_batches(records)
        view.check_crc()
        assert (view.header.is_control, view.header.is_transactional) == (True, True)
        assert view.header[9:] == (7, 3, -1, 1)
        (record,) = view.records()
        assert (record.offset, record.timestamp_ms) == (1, START_MS)
        assert record.key == b"\0\0\0\1"
        assert record.value == b"\0\0\0\0\0\0"


async def test_the_epoch_of_a_marker_fences_earlier_ones(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await write(topics, 7, 0, 3)
        await end(topics, 7, False, epoch=1)
        with pytest.raises(KafkaError) as error:
            await write(topics, 7, 3)
        assert error.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
        with pytest.raises(KafkaError) as error:
            await write(topics, 7, 3, epoch=1)
        assert error.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        await write(topics, 7, 0, epoch=1)
        await end(topics, 7, False, epoch=2)
        copy = await killed(topics, tmp_path / "copy")
    async with topic_log(copy) as topics:
        with pytest.raises(KafkaError) as error:
            await write(topics, 7, 1, epoch=1)
        assert error.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


async def test_batches_outside_of_the_transaction_are_refused(tmp_path: Path) -> None:
    def refuse(producer_id: int, producer_epoch: int) -> None:
        assert (producer_id, producer_epoch) == (7, 0)
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)

    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        data = produced(7, 0, transactional=True)
        for verify, code in ((refuse, ErrorCode.INVALID_TXN_STATE), (None, 53)):
            with pytest.raises(KafkaError) as error:
                await topics.append("orders", 0, data, *([verify] if verify else []))
            assert error.value.code == code
        await write(topics, 7, 0)
        with pytest.raises(KafkaError) as error:
            await topics.append("orders", 0, produced(7, 1))
        assert error.value.code == ErrorCode.INVALID_TXN_STATE
        with pytest.raises(KafkaError) as error:
            await topics.append("orders", 0, marker(7, 0, START_MS, committed=True), allowed)
        assert error.value.code == ErrorCode.INVALID_RECORD
        assert seen(topics) == (0, 1, [])


@pytest.mark.parametrize("segment_bytes", [16_384, 300])
@pytest.mark.parametrize("how", ["stopped", "killed", "without indexes"])
async def test_transactions_are_found_again(tmp_path: Path, how: str, segment_bytes: int) -> None:
    directory = tmp_path / "first"
    async with topic_log(directory, log_segment_bytes=segment_bytes) as topics:
        await topics.create("orders", 1)
        for number in range(6):
            await write(topics, 10 + number, 0, 2)
            await write(topics, 20, number)
            if number:
                await end(topics, 10 + number, number % 2 == 0)
        expected = seen(topics)
        assert expected[0] == 0
        assert len(expected[2]) == 3
        if how != "stopped":
            directory = await killed(topics, tmp_path / "copy")
    if how == "without indexes":
        for path in directory.rglob("*.index"):
            path.unlink()
    async with topic_log(directory) as topics:
        assert seen(topics) == expected
        assert sorted(found[2:] for found in topics.open_transactions()) == [(10, 0), (20, 0)]
        await end(topics, 10, False)
        assert seen(topics)[0] == 2
        await end(topics, 20, True)
        assert seen(topics) == (expected[1] + 2, expected[1] + 2, [*expected[2], (10, 0)])
        with pytest.raises(KafkaError):
            await write(topics, 10, 1)


@pytest.mark.parametrize("left", [70, 1])
async def test_a_marker_that_is_not_whole_ends_nothing(tmp_path: Path, left: int) -> None:
    directory = tmp_path / "first"
    async with topic_log(directory) as topics:
        await topics.create("orders", 1)
        await write(topics, 7, 0, 2)
        partition = topics.partition("orders", 0)
        size = partition.segments[-1].size_bytes
        path = partition.segments[0].path.relative_to(directory)
        await end(topics, 7, False)
        directory = await killed(topics, tmp_path / "copy")
    os.truncate(directory / path, size + left)
    async with topic_log(directory) as topics:
        assert seen(topics) == (0, 2, [])
        await end(topics, 7, False)
        assert seen(topics) == (3, 3, [(7, 0)])


async def test_deleted_records_take_the_list_of_aborted_transactions_along(tmp_path: Path) -> None:
    async with topic_log(tmp_path, log_segment_bytes=300) as topics:
        await topics.create("orders", 1)
        for producer_id in range(5):
            await write(topics, producer_id, 0)
            await end(topics, producer_id, False)
        await write(topics, 9, 0)
        await topics.truncate("orders", 0, 4)
        assert seen(topics) == (10, 11, [(2, 4), (3, 6), (4, 8)])
        await topics.truncate("orders", 0, -1)
        assert seen(topics) == (11, 11, []), "the open transaction has no records left to hide"
        await write(topics, 9, 1)
        await end(topics, 9, True)
        assert seen(topics) == (13, 13, [])


async def test_an_open_transaction_outlives_its_records_and_their_files(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock, log_retention_ms=1000) as topics:
        await topics.create("orders", 1)
        await write(topics, 9, 0)
        clock.now_ms += 10_000
        assert await topics.enforce_retention() == 1
        assert seen(topics) == (1, 1, [])
        await write(topics, 9, 1)
    async with topic_log(tmp_path) as topics:
        assert [found[2] for found in topics.open_transactions()] == [9]
        assert seen(topics) == (1, 2, [])


def test_only_transactions_within_the_range_are_reported() -> None:
    transactions = TransactionIndex()
    for row in (Aborted(10, 2, 1, 5), Aborted(20, 5, 2, 6), Aborted(30, 25, 3, 6), Aborted(40, 6, 4, 41)):
        transactions.put(row)
    assert transactions.aborted(0, 3) == [(1, 2)]
    assert transactions.aborted(11, 50) == [(2, 5), (3, 25), (4, 6)]
    assert transactions.aborted(11, 25) == [(2, 5), (4, 6)]
    assert transactions.aborted(31, 35) == [(4, 6)]
    assert transactions.aborted(41, 50) == []
    assert transactions.dump_aborted(20, 40) == [[20, 5, 2, 6], [30, 25, 3, 6]]


def test_batches_are_cut_where_one_begins() -> None:
    first, second = produced(1, 0, 2), produced(1, 2, 3)
    second = (2).to_bytes(8, "big") + second[8:]
    assert before(first + second, 2) == first
    assert before(first + second, 5) == first + second
    assert before(first + second, 0) == b""
    assert next_offset(first + second) == 5
    assert next_offset(b"") == 0

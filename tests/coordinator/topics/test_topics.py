"""The topic log: topics and their life, appending, reading, times, waiting."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.topics import MAX_TIMESTAMP, DamagedError
from ringleader.coordinator.topics import catalog as catalog_room
from ringleader.coordinator.topics.partition import Partition, Waiter
from ringleader.protocol.columns import decode_columns
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import Compression, check_batch
from tests.support.topiclog import (
    START_MS,
    WallClock,
    batch,
    everything,
    forget,
    produced,
    segment_files,
    settled,
    topic_log,
)

TINY: dict[str, Any] = {"log_segment_bytes": 2_000}


async def test_a_topic_and_its_records_outlive_a_restart(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        info = await topics.create("orders", 3, {"retention.ms": "1000"})
        await topics.append("orders", 1, batch(5))
        assert (info.partitions, len(info.id), info.configs) == (3, 16, {"retention.ms": "1000"})
    async with topic_log(tmp_path) as topics:
        assert topics.describe("orders") == info
        assert topics.describe_id(info.id) == info
        assert topics.all() == [info]
        assert [topics.partition("orders", p).high_watermark for p in range(3)] == [0, 5, 0]
        assert (await everything(topics, "orders", 1)).offsets == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "a/b", "x" * 250])
async def test_names_that_no_topic_has(tmp_path: Path, name: str) -> None:
    async with topic_log(tmp_path) as topics:
        with pytest.raises(KafkaError) as error:
            await topics.create(name, 1)
        assert error.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("partitions", "configs", "code"),
    [
        (0, {}, ErrorCode.INVALID_PARTITIONS),
        (10_001, {}, ErrorCode.INVALID_PARTITIONS),
        (1, {"no.such": "1"}, ErrorCode.INVALID_CONFIG),
        (1, {"retention.ms": "soon"}, ErrorCode.INVALID_CONFIG),
        (1, {"retention.ms": None}, ErrorCode.INVALID_CONFIG),
        (1, {"cleanup.policy": "burn"}, ErrorCode.INVALID_CONFIG),
        (1, {"message.timestamp.type": "Never"}, ErrorCode.INVALID_CONFIG),
    ],
)
async def test_names_that_no_topic_may_have(
    tmp_path: Path, partitions: int, configs: dict[str, str | None], code: ErrorCode
) -> None:
    async with topic_log(tmp_path) as topics:
        with pytest.raises(KafkaError) as error:
            await topics.create("orders", partitions, configs)
        assert error.value.code == code
        assert topics.all() == []


async def test_a_name_is_given_once_even_at_the_same_time(tmp_path: Path) -> None:
    async with topic_log(tmp_path, num_partitions=4) as topics:
        results = await asyncio.gather(*(topics.create("orders") for _ in range(5)), return_exceptions=True)
        made = [result for result in results if not isinstance(result, BaseException)]
        refused = [result.code for result in results if isinstance(result, KafkaError)]
        assert [info.partitions for info in made] == [4]
        assert refused == [ErrorCode.TOPIC_ALREADY_EXISTS] * 4


async def test_all_partitions_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_room, "MAX_ALL_PARTITIONS", 10)
    async with topic_log(tmp_path) as topics:
        results = await asyncio.gather(*(topics.create(f"t{i}", 4) for i in range(3)), return_exceptions=True)
        assert [getattr(result, "code", 0) for result in results] == [0, 0, ErrorCode.POLICY_VIOLATION]
        await topics.delete("t0", forget)
        await topics.create("t4", 4)


async def test_all_configurations_together_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_room, "MAX_CONFIG_BYTES", 100)
    key = "leader.replication.throttled.replicas"
    async with topic_log(tmp_path) as topics:
        await topics.create("t0", 1, {key: "x" * 50})
        for attempt in (
            topics.create("t1", 1, {key: "x" * 50}),
            topics.configure("t0", lambda present: {key: "ä" * 50}),
        ):
            with pytest.raises(KafkaError) as error:
                await attempt
            assert error.value.code == ErrorCode.POLICY_VIOLATION
        await topics.configure("t0", lambda present: {key: "x" * 20})
        with pytest.raises(KafkaError):
            await topics.create("t1", 1, {key: "x" * 50})
        await topics.delete("t0", forget)
        await topics.create("t1", 1, {key: "x" * 50})


async def test_a_creation_whose_caller_is_gone_is_whole_all_the_same(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        task = asyncio.ensure_future(topics.create("orders", 2))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    async with topic_log(tmp_path) as topics:
        assert [info.name for info in topics.all()] == ["orders"]


async def test_changes_that_come_while_others_are_written_are_kept_with_them(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        for number in range(20):
            first = asyncio.ensure_future(topics.create(f"first{number}", 1))
            for _ in range(3):
                await asyncio.sleep(0)
            await asyncio.gather(first, topics.create(f"second{number}", 1))
            assert len(json.loads((tmp_path / "topics.json").read_bytes())["topics"]) == 2 * number + 2


async def test_a_deleted_topic_leaves_nothing_to_the_next_of_its_name(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        before = await topics.create("orders", 2)
        await topics.append("orders", 0, produced(7, 0, 3))
        await topics.delete("orders", forget)
        assert topics.describe("orders") is None
        with pytest.raises(KafkaError):
            await topics.append("orders", 0, batch())
        after = await topics.create("orders", 1)
        assert after.id != before.id
        assert topics.partition("orders", 0).high_watermark == 0
        assert (await topics.append("orders", 0, produced(7, 3))).base_offset == 0
        await settled(topics)
    assert [path.name for path in (tmp_path / "data").iterdir()] == [after.id.hex()]


async def test_records_of_a_topic_that_is_not_in_the_list_are_left_alone(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        info = await topics.create("orders", 1)
        await topics.append("orders", 0, batch(3))
    path = tmp_path / "topics.json"
    whole = path.read_bytes()
    path.write_text('{"format": 1, "topics": {}}')
    async with topic_log(tmp_path) as topics:
        assert topics.all() == []
        assert (tmp_path / "data" / info.id.hex()).exists()
    path.write_bytes(whole)
    async with topic_log(tmp_path) as topics:
        assert (await everything(topics, "orders")).offsets == [0, 1, 2]


async def test_a_missing_list_of_topics_beside_records_is_refused(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch())
    (tmp_path / "topics.json").unlink()
    with pytest.raises(DamagedError, match="put its last copy back"):
        async with topic_log(tmp_path):
            pass
    assert list((tmp_path / "data").iterdir())


@pytest.mark.parametrize(
    "text", ['{"format": 2, "topics": {}}', "{", "[]", '{"format": 1, "topics": {"a": {}}}']
)
async def test_a_list_of_topics_that_is_not_understood_is_never_overwritten(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "topics.json").write_text(text)
    with pytest.raises(DamagedError):
        async with topic_log(tmp_path):
            pass
    assert (tmp_path / "topics.json").read_text() == text


async def test_a_half_written_list_of_topics_changes_nothing(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
    text = (tmp_path / "topics.json").read_bytes()
    (tmp_path / "topics.json.new").write_bytes(text[: len(text) // 2])
    async with topic_log(tmp_path) as topics:
        assert [info.name for info in topics.all()] == ["orders"]
        await topics.create("more", 1)
    assert sorted(json.loads((tmp_path / "topics.json").read_text())["topics"]) == ["more", "orders"]


async def test_a_topic_grows_and_never_shrinks(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        info = await topics.create("orders", 2)
        with pytest.raises(KafkaError):
            topics.partition("orders", 3)
        assert (await topics.grow("orders", 4)).id == info.id
        await topics.append("orders", 3, batch())
        for total in (4, 3, 10_001):
            with pytest.raises(KafkaError) as error:
                await topics.grow("orders", total)
            assert error.value.code == ErrorCode.INVALID_PARTITIONS
        with pytest.raises(KafkaError) as error:
            await topics.grow("none", 4)
        assert error.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_batches_get_the_next_offsets_and_keep_everything_else(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        sent = [batch(3), batch(2, compression=Compression.ZSTD), batch(1)]
        results = await asyncio.gather(*(topics.append("orders", 0, found) for found in sent))
        assert [result.base_offset for result in results] == [0, 3, 5]
        assert {result.log_append_time_ms for result in results} == {-1}
        records = await topics.read(topics.partition("orders", 0), 0, 10_000)
        assert [records[:8], records[16 : len(sent[0])]] == [bytes(8), sent[0][16:]]
        assert decode_columns(records).values == [b"%010d" % i for i in (0, 1, 2, 0, 1, 0)]


async def test_what_is_no_good_batch_is_refused_and_leaves_no_trace(tmp_path: Path) -> None:
    good = batch(2)
    cases = [
        (b"", ErrorCode.INVALID_RECORD),
        (good + good, ErrorCode.INVALID_RECORD),
        (good[:-1], ErrorCode.CORRUPT_MESSAGE),
        (good[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        (batch(1, control=True), ErrorCode.INVALID_RECORD),
        (produced(1, 0, transactional=True), ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (batch(1, size=5_000), ErrorCode.MESSAGE_TOO_LARGE),
        (batch(1, size=900), ErrorCode.RECORD_LIST_TOO_LARGE),
    ]
    async with topic_log(tmp_path, message_max_bytes=4_000, log_segment_bytes=500) as topics:
        await topics.create("orders", 1)
        for data, code in cases:
            with pytest.raises(KafkaError) as error:
                await topics.append("orders", 0, data)
            assert error.value.code == code
        assert topics.partition("orders", 0).high_watermark == 0
        assert (await topics.append("orders", 0, good)).base_offset == 0


async def test_append_time_replaces_timestamps(tmp_path: Path) -> None:
    clock = WallClock()
    async with topic_log(tmp_path, clock) as topics:
        await topics.create("orders", 1, {"message.timestamp.type": "LogAppendTime"})
        clock.now_ms += 777
        result = await topics.append("orders", 0, batch(2))
        assert result.log_append_time_ms == START_MS + 777
        read = await topics.read(topics.partition("orders", 0), 0, 1000)
        assert decode_columns(read).timestamps_ms == [START_MS + 777] * 2
        assert await topics.offset_for_time("orders", 0, START_MS + 777) == (0, START_MS + 777)
        check_batch(read)


async def test_reads_give_whole_batches_and_at_least_one(tmp_path: Path) -> None:
    for cache in (0, 1_000_000):
        async with topic_log(tmp_path / str(cache), tail_cache_bytes=cache) as topics:
            await topics.create("orders", 1)
            for _ in range(10):
                await topics.append("orders", 0, batch(10))
            size = len(batch(10))
            for max_bytes, count in ((0, 1), (1, 1), (size - 1, 1), (2 * size, 2), (3 * size - 1, 2)):
                read = await topics.read(topics.partition("orders", 0), 35, max_bytes)
                assert len(read) >= size
                assert decode_columns(read).offsets[:10] == list(range(30, 40))
                # From a file a little more may come: up to the next place that the index knows.
                assert len(read) in (size, count * size)
            for max_bytes, count in ((0, 0), (size - 1, 0), (size, 1)):
                read = await topics.read(topics.partition("orders", 0), 90, max_bytes, at_least_one=False)
                assert len(read) == count * size, "not even one that is larger"
            assert (await topics.read(topics.partition("orders", 0), 100, 1000)) == b""
            for offset in (-1, 101):
                with pytest.raises(KafkaError) as error:
                    await topics.read(topics.partition("orders", 0), offset, 1000)
                assert error.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_reading_goes_over_the_ends_of_files(tmp_path: Path) -> None:
    async with topic_log(tmp_path, tail_cache_bytes=0, **TINY) as topics:
        await topics.create("orders", 1)
        for _ in range(30):
            await topics.append("orders", 0, batch(10))
        assert len(segment_files(topics, "orders")) > 3
        assert (await everything(topics, "orders", max_bytes=700)).offsets == list(range(300))


async def test_times_are_looked_up_record_by_record(tmp_path: Path) -> None:
    async with topic_log(tmp_path, **TINY) as topics:
        await topics.create("orders", 1)
        for number in range(40):
            codec = list(Compression)[number % 5]
            await topics.append("orders", 0, batch(10, at_ms=START_MS + number * 100, compression=codec))
        look = topics.offset_for_time
        assert await look("orders", 0, 0) == (0, START_MS)
        assert await look("orders", 0, START_MS + 1704) == (174, START_MS + 1704)
        assert await look("orders", 0, START_MS + 1710) == (180, START_MS + 1800)
        assert await look("orders", 0, START_MS + 3909) == (399, START_MS + 3909)
        assert await look("orders", 0, START_MS + 3910) == (-1, -1)
        await topics.append("orders", 0, batch(1, at_ms=START_MS))
        assert await look("orders", 0, MAX_TIMESTAMP) == (399, START_MS + 3909)
        await topics.truncate("orders", 0, 175)
        assert await look("orders", 0, START_MS + 1704) == (175, START_MS + 1705)


async def test_times_of_an_empty_partition(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        for timestamp in (0, START_MS, MAX_TIMESTAMP):
            assert await topics.offset_for_time("orders", 0, timestamp) == (-1, -1)


async def test_waiting_ends_when_enough_was_written(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 2)
        woken: list[str] = []
        both = [topics.partition("orders", index) for index in range(2)]
        Waiter(2 * len(batch()), lambda: woken.append("both"), both)
        left = Waiter(1, lambda: woken.append("nobody"), both)
        left.cancel()
        await topics.append("orders", 0, batch())
        assert woken == []
        await topics.append("orders", 1, batch())
        assert woken == ["both"]
        assert not both[0].waiters
        assert not both[1].waiters


async def test_waiting_ends_when_the_topic_goes(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        woken = asyncio.Event()
        Waiter(1, woken.set, [topics.partition("orders", 0)])
        await topics.delete("orders", forget)
        assert woken.is_set()


async def test_a_repeated_batch_gets_the_first_ones_answer(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(4))
        both = await asyncio.gather(*(topics.append("orders", 0, produced(7, 0, 3)) for _ in range(2)))
        assert [result.base_offset for result in both] == [4, 4]
        await topics.append("orders", 0, produced(7, 3))
        assert (await topics.append("orders", 0, produced(7, 0, 3))).base_offset == 4
        assert topics.partition("orders", 0).high_watermark == 8


async def test_configurations_change_what_is_done(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(1, size=500))
        await topics.configure("orders", lambda present: {**present, "max.message.bytes": "200"})
        with pytest.raises(KafkaError) as error:
            await topics.append("orders", 0, batch(1, size=500))
        assert error.value.code == ErrorCode.MESSAGE_TOO_LARGE
    async with topic_log(tmp_path) as topics:
        info = topics.describe("orders")
        assert info is not None
        assert info.configs == {"max.message.bytes": "200"}
        with pytest.raises(KafkaError):
            await topics.append("orders", 0, batch(1, size=500))


async def test_producer_ids_are_never_given_twice(tmp_path: Path) -> None:
    given: list[int] = []
    for _ in range(3):
        async with topic_log(tmp_path) as topics:
            given += await asyncio.gather(*(topics.new_producer_id() for _ in range(700)))
    assert len(set(given)) == 2100


async def test_after_closing_nothing_is_appended(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch())
    with pytest.raises(KafkaError) as error:
        await topics.append("orders", 0, batch())
    assert error.value.retriable
    await topics.close()


async def test_while_it_closes_nothing_is_appended_and_no_transaction_ends(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(7, 0, transactional=True), lambda *_: None)
        closing = asyncio.ensure_future(topics.close())
        refused: list[Any] = []
        while not closing.done():
            late = (
                topics.append("orders", 0, batch()),
                topics.end_transaction("orders", 0, 7, 0, committed=True),
            )
            async with asyncio.timeout(20):
                refused += await asyncio.gather(*late, return_exceptions=True)
            await asyncio.sleep(0)
        assert refused
        assert [one for one in refused if not (isinstance(one, KafkaError) and one.retriable)] == []
    async with topic_log(tmp_path) as topics:
        assert topics.partition("orders", 0).high_watermark == 1


@pytest.mark.leaves("a bug")
async def test_an_append_that_fails_over_and_over_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A client may send it as often as it likes."""

    def fail(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(Partition, "append", fail)
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        for _ in range(100):
            with pytest.raises(KafkaError) as error:
                await topics.append("orders", 0, batch())
            assert error.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert caplog.text.count("append failed") == 1

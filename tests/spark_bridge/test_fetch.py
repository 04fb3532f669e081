"""The executor's fetch against a scripted broker: exact ranges, and everything that can go wrong."""

from __future__ import annotations

import datetime
import pickle
import random
from collections.abc import Generator, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import FetchRequest, FetchResponsePartitionData, MetadataRequest
from ringleader.protocol.records import Compression, Record, build_batch
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.errors import DataLossError, FetchError
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.fetching.columns import next_offset
from ringleader.spark_bridge.fetching.fetch import read_slice
from ringleader.spark_bridge.rows import arrow_schema
from ringleader.spark_bridge.tasks import TaskSettings
from ringleader.spark_bridge.values import SliceRange
from tests.spark_bridge.broker import Broker, Partition


@pytest.fixture(autouse=True)
def no_cache() -> Iterator[None]:
    yield
    fetch.close_clusters()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "RETRY_PAUSE_S", 0.001)


def batch(*offsets: int, size: int = 10, **how: Any) -> bytes:
    records = [Record(offset, 1_000 + offset, b"k%d" % offset, b"v" * size) for offset in offsets]
    return build_batch(records, **how)


def settings(*brokers: Broker, **more: Any) -> TaskSettings:
    servers = tuple((broker.host, broker.port) for broker in brokers)
    return TaskSettings(Endpoint(servers), **{"poll_timeout_ms": 10_000} | more)


def offsets(found: TaskSettings, *ranges: tuple[str, int, int, int]) -> dict[tuple[str, int], list[int]]:
    """Offsets read, by partition, in the order in which they came."""
    rows: dict[tuple[str, int], list[int]] = {}
    for arrow in read_slice(found, [SliceRange(*one) for one in ranges]):
        key = (arrow["topic"][0].as_py(), arrow["partition"][0].as_py())
        rows.setdefault(key, []).extend(arrow["offset"].to_pylist())
    return rows


def one_partition(*batches: bytes, **more: int) -> dict[str, dict[int, Partition]]:
    return {"t": {0: Partition(*batches, **more)}}


def test_rows_have_every_column() -> None:
    records = [
        Record(5, 1_700_000_000_123, b"key", b"value", [("h", b"1"), ("h", None)]),
        Record(6, -1, None, None),
        Record(7, 1_700_000_000_124, b"", b""),
    ]
    with Broker(one_partition(build_batch(records), start=5)) as broker:
        (found,) = read_slice(settings(broker, include_headers=True), [SliceRange("t", 0, 5, 8)])
    assert found.schema == arrow_schema(True)
    rows = found.to_pylist()
    utc = datetime.UTC
    assert rows[0] == {
        "key": b"key",
        "value": b"value",
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "timestamp": datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, utc),
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"1"}, {"key": "h", "value": None}],
    }
    assert (rows[1]["key"], rows[1]["value"], rows[1]["headers"]) == (None, None, None)
    assert (rows[2]["key"], rows[2]["value"]) == (b"", b"")


def test_columns_that_are_not_wanted_are_not_sent() -> None:
    with Broker(one_partition(batch(0, 1, 2))) as broker:
        wanted = settings(broker, columns=("offset", "timestampType"))
        (found,) = read_slice(wanted, [SliceRange("t", 0, 0, 3)])
    assert found.schema.names == ["offset", "timestampType"]
    assert found.to_pydict() == {"offset": [0, 1, 2], "timestampType": [0, 0, 0]}


def test_a_range_is_read_exactly_though_batches_reach_beyond_it() -> None:
    with Broker(one_partition(batch(0, 1, 2, 3), batch(4, 5, 6, 7), batch(8, 9))) as broker:
        assert offsets(settings(broker), ("t", 0, 2, 6)) == {("t", 0): [2, 3, 4, 5]}
        assert offsets(settings(broker), ("t", 0, 0, 10)) == {("t", 0): list(range(10))}
        assert offsets(settings(broker), ("t", 0, 4, 4)) == {}
        assert broker.connections == 2, "one for metadata, one for the leader, kept from slice to slice"


@pytest.mark.parametrize("codec", list(Compression))
def test_every_compression(codec: Compression) -> None:
    with Broker(one_partition(batch(*range(50), size=300, compression=codec))) as broker:
        assert offsets(settings(broker), ("t", 0, 10, 50)) == {("t", 0): list(range(10, 50))}


def test_gaps_of_compaction_inside_and_at_the_ends_of_a_range() -> None:
    with Broker(one_partition(batch(3, 6), batch(9, 12), batch(30))) as broker:
        assert offsets(settings(broker), ("t", 0, 0, 31)) == {("t", 0): [3, 6, 9, 12, 30]}
        assert offsets(settings(broker), ("t", 0, 4, 9)) == {("t", 0): [6]}
        assert offsets(settings(broker), ("t", 0, 13, 20)) == {}
        assert offsets(settings(broker), ("t", 0, 10, 20)) == {("t", 0): [12]}


def test_control_batches_take_offsets_but_give_no_rows() -> None:
    marker = build_batch(
        [Record(2, 0, b"\0\0\0\1", b"\0" * 6)], control=True, transactional=True, producer_id=7
    )
    data = one_partition(batch(0, 1, transactional=True, producer_id=7), marker)
    with Broker(data) as broker:
        assert offsets(settings(broker), ("t", 0, 0, 3)) == {("t", 0): [0, 1]}
        assert offsets(settings(broker), ("t", 0, 2, 3)) == {}


def test_read_committed_leaves_out_aborted_transactions() -> None:
    marker = build_batch(
        [Record(3, 0, b"\0\0\0\0", b"\0" * 6)], control=True, transactional=True, producer_id=7
    )
    data = one_partition(
        batch(0),
        batch(1, 2, transactional=True, producer_id=7),
        marker,
        batch(4, transactional=True, producer_id=7),
    )
    data["t"][0].aborted = [(7, 1)]
    with Broker(data) as broker:
        assert offsets(settings(broker, read_committed=True), ("t", 0, 0, 5)) == {("t", 0): [0, 4]}
        assert broker.fetches[-1].isolation_level == 1
        assert offsets(settings(broker), ("t", 0, 0, 5)) == {("t", 0): [0, 1, 2, 4]}


def test_a_record_larger_than_every_limit_still_comes() -> None:
    limits = {"partition_max_bytes": 1_000, "fetch_max_bytes": 1_000, "fetch_max_wait_ms": 7}
    partitions = {
        0: Partition(batch(0), batch(1, size=500_000), batch(2)),
        1: Partition(batch(0, size=400_000)),
    }
    with Broker({"t": partitions}) as broker:
        found = offsets(settings(broker, **limits), ("t", 0, 0, 3), ("t", 1, 0, 1))
        request = broker.fetches[0]
        assert (request.max_bytes, request.max_wait_ms) == (1_000, 7)
        assert request.topics[0].partitions[0].partition_max_bytes == 1_000
    assert found == {("t", 0): [0, 1, 2], ("t", 1): [0]}


def test_an_answer_without_one_whole_batch_is_asked_again_with_more_room() -> None:
    whole = batch(0, size=1_000_000)

    class Cutting(Partition):
        pass

    with Broker({"t": {0: Cutting(whole)}}) as broker:
        original = broker._partition

        def cut(found: Partition, offset: int, limit: int) -> FetchResponsePartitionData:
            data = original(found, offset, limit)
            data.records = (data.records or b"")[:limit]
            return data

        broker._partition = cut  # type: ignore[method-assign]  # on purpose
        assert offsets(settings(broker), ("t", 0, 0, 1)) == {("t", 0): [0]}
        limits = [request.topics[0].partitions[0].partition_max_bytes for request in broker.fetches]
    assert limits == sorted(limits)
    assert limits[-1] >= len(whole)


def test_two_pieces_of_one_partition_in_a_task() -> None:
    with Broker(one_partition(batch(*range(10)), batch(*range(10, 20)))) as broker:
        found = offsets(settings(broker), ("t", 0, 2, 5), ("t", 0, 14, 17))
    assert found == {("t", 0): [2, 3, 4, 14, 15, 16]}


def test_partitions_with_several_leaders() -> None:
    topics = {"t": {number: Partition(batch(*range(5))) for number in range(4)}}
    with Broker(topics, 0) as first, Broker(topics, 1) as second:
        first.peers = second.peers = [first, second]
        topics["t"][1].leader = topics["t"][3].leader = 1
        found = offsets(settings(first), *[("t", number, 0, 5) for number in range(4)])
    assert found == {("t", number): list(range(5)) for number in range(4)}


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ],
)
def test_a_retriable_error_is_tried_again(code: ErrorCode) -> None:
    topics = one_partition(batch(0, 1))
    topics["t"][0].errors = [code, code]
    with Broker(topics) as broker:
        assert offsets(settings(broker), ("t", 0, 0, 2)) == {("t", 0): [0, 1]}


def test_a_leader_that_moves_while_the_range_is_read() -> None:
    topics = one_partition(*[batch(number) for number in range(6)])
    with Broker(topics, 0) as first, Broker(topics, 1) as second:
        first.peers = second.peers = [first, second]

        def move(request: Message) -> bool:
            if isinstance(request, FetchRequest) and request.topics[0].partitions[0].fetch_offset == 3:
                topics["t"][0].leader = 1
            return True

        first.script = move
        assert offsets(settings(first, partition_max_bytes=1), ("t", 0, 0, 6)) == {("t", 0): list(range(6))}
        assert second.fetches


def test_a_connection_that_breaks_is_made_again() -> None:
    with Broker(one_partition(batch(0, 1), batch(2, 3))) as broker:
        broken: list[FetchRequest] = []

        def breaks(request: Message) -> bool:
            if isinstance(request, FetchRequest) and len(broken) < 2:
                broken.append(request)
                return False
            return True

        broker.script = breaks
        assert offsets(settings(broker), ("t", 0, 0, 4)) == {("t", 0): [0, 1, 2, 3]}
        assert len(broken) == 2


def test_a_fatal_error_is_a_sentence() -> None:
    topics = one_partition(batch(0))
    topics["t"][0].errors = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with (
        Broker(topics) as broker,
        pytest.raises(FetchError, match=r"t-0 .* offset 0: TOPIC_AUTHORIZATION_FAILED"),
    ):
        offsets(settings(broker), ("t", 0, 0, 1))


def test_time_runs_out_with_the_place_and_the_reason() -> None:
    with Broker(one_partition(batch(0, 1))) as broker:
        with pytest.raises(FetchError, match=r"t-0 offset 2, range up to 9: .*the log at 2"):
            # Long enough for a busy machine to get the first answer.
            offsets(settings(broker, poll_timeout_ms=1_000), ("t", 0, 0, 9))
        broker.versions[1] = (0, 3)
        broker.cut()
        with pytest.raises(FetchError, match="serves Fetch v0 to v3, this client speaks v4 to"):
            offsets(settings(broker, poll_timeout_ms=1_000), ("t", 0, 0, 2))
    with pytest.raises(FetchError, match="cannot connect"):
        offsets(settings(broker, poll_timeout_ms=50), ("t", 0, 0, 2))


def test_the_time_that_spark_takes_for_rows_is_no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, found = [0.0], list[int]()
    monkeypatch.setattr(fetch, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda _: None))
    with Broker(one_partition(batch(0), batch(1), batch(2))) as broker:
        small = settings(broker, partition_max_bytes=1, fetch_max_bytes=1)
        for arrow in read_slice(small, [SliceRange("t", 0, 0, 3)]):
            found += arrow["offset"].to_pylist()
            clock[0] += 100.0
    assert (found, len(broker.fetches)) == ([0, 1, 2], 3)


def test_a_bad_checksum_is_not_read_over() -> None:
    broken = bytearray(batch(0, 1))
    broken[-1] ^= 1
    with (
        Broker(one_partition(bytes(broken))) as broker,
        pytest.raises(FetchError, match=r"cannot be read.*checksum"),
    ):
        offsets(settings(broker), ("t", 0, 0, 2))


def test_offsets_below_the_log_fail_or_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(one_partition(batch(5, 6, 7), start=5)) as broker:
        with pytest.raises(DataLossError, match="offsets 2 to 5 of t-0 are gone: the log holds 5 to 8"):
            offsets(settings(broker), ("t", 0, 2, 8))
        lenient = settings(broker, fail_on_data_loss=False)
        assert offsets(lenient, ("t", 0, 2, 8)) == {("t", 0): [5, 6, 7]}
        assert offsets(lenient, ("t", 0, 2, 4)) == {}
        assert offsets(lenient, ("t", 0, 20, 30)) == {}
    assert "offsets 20 to 30 of t-0 are gone" in caplog.text
    assert "offsets 2 to 4 of t-0 are gone" in caplog.text, "those from 4 on are another task's"


def test_a_topic_that_was_deleted_fails_or_is_skipped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fetch, "MISSING_S", 0.05)
    with Broker(one_partition(batch(0, 1))) as broker:
        with pytest.raises(DataLossError, match="gone-1 does not exist any more: offsets 3 to 5"):
            offsets(settings(broker), ("t", 0, 0, 2), ("gone", 1, 3, 5))
        lenient = settings(broker, fail_on_data_loss=False)
        assert offsets(lenient, ("t", 0, 0, 2), ("gone", 1, 3, 5)) == {("t", 0): [0, 1]}
        assert offsets(lenient, ("t", 7, 0, 2)) == {}
    assert "t-7 does not exist any more" in caplog.text


def test_a_topic_that_a_broker_is_late_to_know_is_waited_for() -> None:
    with Broker({}) as broker:
        requests: list[Message] = []

        def late(request: Message) -> bool:
            if isinstance(request, MetadataRequest):
                requests.append(request)
            if len(requests) == 3:
                broker.topics.update(one_partition(batch(0, 1)))
            return True

        broker.script = late
        assert offsets(settings(broker), ("t", 0, 0, 2)) == {("t", 0): [0, 1]}


@pytest.mark.parametrize("is_deleted", [False, True])
def test_moments_in_which_a_broker_does_not_know_a_topic_do_not_add_up(
    seed: int, monkeypatch: pytest.MonkeyPatch, is_deleted: bool
) -> None:
    """It counts as deleted after one time that is long enough, never after several that are not."""
    drawn, clock = random.Random(seed), [0.0]

    def sleep(_: float) -> None:
        clock[0] += 1.0

    monkeypatch.setattr(fetch, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    spells = [
        int(fetch.MISSING_S),
        *(drawn.randint(1, int(fetch.MISSING_S)) for _ in range(drawn.randint(1, 7))),
    ]
    if is_deleted:
        spells.append(int(fetch.MISSING_S) + 1)
    topics = one_partition(batch(0, 1))
    # Between two of them it is known, and whom it names does not lead it.
    topics["t"][0].errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * (len(spells) - 1)
    with Broker(topics) as broker:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        broker.topic_errors["t"] = [code for spell in spells for code in (*[unknown] * spell, 0)]
        patient = settings(broker, poll_timeout_ms=1_000_000)
        if is_deleted:
            with pytest.raises(DataLossError, match="t-0 does not exist any more"):
                offsets(patient, ("t", 0, 0, 2))
        else:
            assert offsets(patient, ("t", 0, 0, 2)) == {("t", 0): [0, 1]}


def test_a_task_has_all_its_rows_in_order_whatever_the_one_before_it_left(seed: int) -> None:
    """Several pieces of a partition, a batch with each answer; and tasks that end early, as Spark's limits
    make them."""
    drawn = random.Random(seed)
    logs = {number: Partition(*[batch(2 * n, 2 * n + 1) for n in range(20)]) for number in range(2)}
    with Broker({"t": logs}) as broker:
        found = settings(broker, partition_max_bytes=1)
        for _ in range(40):
            pieces = []
            for number in logs:
                cuts = sorted(drawn.sample(range(41), 2 * drawn.randrange(4)))
                pieces += [("t", number, *cut) for cut in zip(cuts[::2], cuts[1::2], strict=True)]
            if drawn.randrange(2):
                started = read_slice(found, [SliceRange(*one) for one in pieces])
                for _ in zip(range(drawn.randrange(1, 5)), started, strict=False):
                    pass
                assert isinstance(started, Generator)
                started.close()
                continue
            rows: dict[tuple[str, int], list[int]] = {}
            for topic, number, start, end in pieces:
                rows.setdefault((topic, number), []).extend(range(start, end))
            assert offsets(found, *pieces) == rows


def test_an_unfinished_task_leaves_no_answer_behind_for_the_next_one() -> None:
    with Broker(one_partition(*[batch(number) for number in range(4)])) as broker:
        found = settings(broker, partition_max_bytes=1)
        started = read_slice(found, [SliceRange("t", 0, 0, 4)])
        next(started)
        assert isinstance(started, Generator)
        started.close()
        assert offsets(found, ("t", 0, 2, 4)) == {("t", 0): [2, 3]}


def test_a_small_range_does_not_ask_for_megabytes() -> None:
    with Broker(one_partition(batch(0, 1))) as broker:
        offsets(settings(broker), ("t", 0, 0, 2))
        assert broker.fetches[0].topics[0].partitions[0].partition_max_bytes == fetch.PARTITION_MIN_BYTES


def test_settings_are_small_and_pickle() -> None:
    found = TaskSettings(Endpoint((("h", 1),)))
    assert pickle.loads(pickle.dumps(found)) == found


@given(st.lists(st.integers(1, 4), max_size=6), st.integers(0, 70))
def test_the_next_offset_comes_from_the_last_whole_batch(sizes: Sequence[int], cut: int) -> None:
    start, data, ends = 3, b"", []
    for size in sizes:
        data += batch(*range(start, start + size))
        start += size
        ends.append((len(data), start))
    data = data[: max(0, len(data) - cut)]
    whole = [after for length, after in ends if length <= len(data)]
    assert next_offset(data) == (whole[-1] if whole else None)

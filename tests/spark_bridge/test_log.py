"""Log starts and ends as the driver-side worker asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.model import EARLIEST, LATEST
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import ListOffsetsRequest
from ringleader.protocol.records import Record, build_batch
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network import log as log_module
from ringleader.spark_bridge.network.log import KafkaLog
from ringleader.testing.coordinator import Coordinator
from tests.spark_bridge.broker import Broker, Partition


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "RETRY_PAUSE_S", 0.001)


def partition(start: int, end: int) -> Partition:
    return Partition(build_batch([Record(offset) for offset in range(start, end)]), start=start)


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"t": {0: partition(3, 9), 1: partition(0, 4)}, "u": {0: partition(1, 2)}}) as found:
        yield found


def log_of(broker: Broker, read_committed: bool = False, timeout_s: float = 10.0) -> KafkaLog:
    return KafkaLog(Endpoint(((broker.host, broker.port),)), read_committed, timeout_s)


def test_partitions_starts_and_ends(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    fresh = log_of(broker)
    assert fresh.ends([("t", 0)]) == {("t", 0): 9}, "leaders that are not known yet are asked for"
    fresh.close()
    log = log_of(broker)
    assert log.partitions(("t", "u", "nowhere")) == [("t", 0), ("t", 1), ("u", 0)]
    assert log.offsets({("t", 0): EARLIEST, ("t", 1): LATEST}) == {("t", 0): 3, ("t", 1): 4}
    assert log.ends([("t", 0), ("u", 0)]) == {("t", 0): 9, ("u", 0): 2}
    log.close()
    assert caplog.messages == []


def test_topics_that_are_not_for_this_client_are_told_from_those_that_do_not_exist(broker: Broker) -> None:
    broker.topic_errors["u"] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
    log = log_of(broker)
    with pytest.raises(SourceError, match="not allowed to see u: TOPIC_AUTHORIZATION_FAILED"):
        log.partitions(("t", "u"))
    with pytest.raises(SourceError, match="not allowed to see u"):
        log.ends([("u", 0)])
    log.close()


def test_a_topic_that_is_being_made_is_waited_for(broker: Broker) -> None:
    broker.topic_errors["u"] = [ErrorCode.LEADER_NOT_AVAILABLE]
    log = log_of(broker)
    assert log.partitions(("u",)) == [("u", 0)]
    log.close()


def test_read_committed_ends_at_the_last_stable_offset(broker: Broker) -> None:
    broker.topics["t"][0].stable = 5
    log = log_of(broker, read_committed=True)
    assert log.ends([("t", 0)]) == {("t", 0): 5}
    assert log.offsets({("t", 0): LATEST}) == {("t", 0): 9}
    log.close()


def test_retriable_errors_and_broken_connections_are_tried_again(broker: Broker) -> None:
    broker.topics["t"][0].errors = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OFFSET_NOT_AVAILABLE]
    broken: list[Message] = []

    def breaks(request: Message) -> bool:
        if isinstance(request, ListOffsetsRequest) and not broken:
            broken.append(request)
            return False
        return True

    broker.script = breaks
    log = log_of(broker)
    assert log.ends([("t", 0), ("t", 1)]) == {("t", 0): 9, ("t", 1): 4}
    log.close()


def test_partitions_that_do_not_exist_are_left_out(broker: Broker) -> None:
    log = log_of(broker)
    assert log.ends([("nowhere", 0), ("u", 0)]) == {("u", 0): 2}
    log.close()


def test_what_does_not_pass_is_a_sentence(broker: Broker) -> None:
    log = log_of(broker, timeout_s=0.05)
    broker.topics["t"][0].errors = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(SourceError, match="t-0 cannot be listed: TOPIC_AUTHORIZATION_FAILED"):
        log.ends([("t", 0)])
    broker.topics["t"][0].leader = 9
    with pytest.raises(SourceError, match="no leader"):
        log.ends([("t", 0)])
    broker.close()
    with pytest.raises(SourceError, match="cannot connect"):
        log.partitions(("t",))
    log.close()


def test_topics_match_in_whole_and_internal_ones_never(broker: Broker) -> None:
    broker.topics |= {"tt": {0: partition(0, 1)}, "__t": {0: partition(0, 1)}}
    log = log_of(broker)
    assert log.topics("t") == ("t",)
    assert log.topics("t+|u") == ("t", "tt", "u")
    assert log.topics(".*") == ("t", "tt", "u")
    log.close()


def test_offsets_by_time_and_none_where_no_record_is_that_late(broker: Broker) -> None:
    records = [Record(offset, timestamp_ms=1_000 + 10 * offset) for offset in range(5)]
    broker.topics["w"] = {0: Partition(build_batch(records)), 1: Partition(build_batch(records[:2]))}
    broker.topics["w"][0].stable = 4
    log = log_of(broker)
    wanted = {("w", 0): 1_011, ("w", 1): 1_011, ("nowhere", 0): 5}
    assert log.offsets_for_times(wanted) == {("w", 0): 2, ("w", 1): None}
    assert log.offsets_for_times({("w", 0): 1_040}) == {("w", 0): 4}
    log.close()
    committed = log_of(broker, read_committed=True)
    assert committed.offsets_for_times({("w", 0): 1_040}) == {("w", 0): None}
    committed.close()


def test_a_look_up_is_tried_again_as_often_as_said(broker: Broker) -> None:
    requests: list[Message] = []

    def silent(request: Message) -> bool:
        requests.append(request)
        return False

    broker.script = silent
    once = KafkaLog(Endpoint(((broker.host, broker.port),)), False, timeout_s=0.0)
    with pytest.raises(SourceError, match="could not be had"):
        once.partitions(("t",))
    first = len(requests)
    again = KafkaLog(Endpoint(((broker.host, broker.port),)), False, 0.0, retries=3, retry_pause_s=0.001)
    with pytest.raises(SourceError, match="could not be had"):
        again.partitions(("t",))
    assert len(requests) - first == 4 * first


def test_the_pause_before_another_look_up_is_no_part_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tries_s = [0.0], list[float]()

    def sleep(pause_s: float) -> None:
        clock[0] += pause_s

    monkeypatch.setattr(log_module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    monkeypatch.setattr(log_module, "RETRY_PAUSE_S", 1.0)
    patience = log_module._Patience(2.0, 1, 60.0)

    def look_up() -> None:
        while True:
            tries_s.append(clock[0])
            patience.pause("away")

    with pytest.raises(SourceError, match="within 64 s"):
        look_up()
    assert tries_s == [0.0, 1.0, 2.0, 62.0, 63.0, 64.0]


def test_brokers_that_cannot_be_reached_are_reported_after_the_first_try(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    log, reported = log_of(broker), []

    def refuses(request: Message) -> bool:
        reported.append([record.getMessage() for record in caplog.records])
        return len(reported) > 3

    broker.script = refuses
    assert log.partitions(("t",)) == [("t", 0), ("t", 1)]
    log.close()
    first, *later = reported
    assert first == []
    why = f"{broker.host}:{broker.port} closed the connection"
    for warnings in later:
        assert warnings[:2] == [
            f"ringleader: {why}",
            f"topics and offsets cannot be had now, trying on: {why}",
        ]
        assert len([line for line in warnings if "cannot be had" in line]) == 1, "one line for one look-up"


async def test_a_topic_that_is_made_again_has_another_id() -> None:
    with Coordinator(topics={"t": 1}, offsets_topic_num_partitions=5) as coordinator:
        host, port = coordinator.bootstrap.split(":")
        log = KafkaLog(Endpoint(((host, int(port)),)), False)
        ids = []
        async with Admin(coordinator.bootstrap) as admin:
            for _ in range(2):
                assert log.partitions(("t",)) == [("t", 0)]
                ids.append(log.topic_id("t"))
                await admin.delete_topics(["t"])
                assert log.partitions(("t",)) == []
                await admin.create_topic("t", 1)
        log.close()
    assert {len(one) for one in ids} == {16}
    assert len({*ids, bytes(16)}) == 3

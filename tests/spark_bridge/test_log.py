"""Log starts and ends as the driver-side worker asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import ListOffsetsRequest
from ringleader.protocol.records import Record, build_batch
from ringleader.protocol.schema import Message
from ringleader.spark_bridge import log as log_module
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.log import KafkaLog
from ringleader.spark_bridge.offsets import EARLIEST, LATEST
from ringleader.spark_bridge.wire import Endpoint
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


def test_partitions_starts_and_ends(broker: Broker) -> None:
    log = log_of(broker)
    assert log.partitions(("t", "u", "nowhere")) == [("t", 0), ("t", 1), ("u", 0)]
    assert log.offsets({("t", 0): EARLIEST, ("t", 1): LATEST}) == {("t", 0): 3, ("t", 1): 4}
    assert log.ends([("t", 0), ("u", 0)]) == {("t", 0): 9, ("u", 0): 2}
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

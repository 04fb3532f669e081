"""A broker that is away or silent is logged after the first try, by name and reason, then seldom."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from ringleader.clients.blocking import connection
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.produce.arrow import ArrowRows
from ringleader.clients.produce.errors import ProduceError
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from ringleader.protocol.records import Record, build_batch
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.errors import FetchError
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.fetching.fetch import read_slice
from ringleader.spark_bridge.network import coordinator as coordinator_module
from ringleader.spark_bridge.network.coordinator import GroupCoordinator, NoCoordinatorError
from ringleader.spark_bridge.network.log import KafkaLog
from ringleader.spark_bridge.sink.produce import SinkProducer, SinkSettings, close_clusters
from ringleader.spark_bridge.tasks import TaskSettings
from ringleader.spark_bridge.values import SliceRange
from tests.spark_bridge.broker import Broker, Partition
from tests.spark_bridge.sink_broker import SinkBroker
from tests.support.certificates import Certificates
from tests.support.ports import free_ports

ROWS = 4


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fetch, "RETRY_PAUSE_S", 0.001)
    monkeypatch.setattr(coordinator_module, "RETRY_PAUSE_S", 0.001)
    yield
    fetch.close_clusters()
    close_clusters()


def topics() -> dict[str, dict[int, Partition]]:
    batches = [build_batch([Record(offset, 1, None, b"v")]) for offset in range(ROWS)]
    return {"t": {0: Partition(*batches)}}


def read(endpoint: Endpoint, poll_timeout_ms: int = 60_000) -> list[int]:
    settings = TaskSettings(endpoint, poll_timeout_ms=poll_timeout_ms)
    batches = read_slice(settings, [SliceRange("t", 0, 0, ROWS)])
    return [offset for batch in batches for offset in batch["offset"].to_pylist()]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def few(lines: list[str], name: str) -> bool:
    """Said of this address at once, and again only after a second and after ten."""
    return bool(lines) and name in lines[0] and len([line for line in lines if "cannot connect" in line]) <= 6


def test_a_task_tells_of_a_broker_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(topics()) as broker:
        endpoint = Endpoint(((broker.host, broker.port),))
    with pytest.raises(FetchError):
        read(endpoint, poll_timeout_ms=200)
    assert few(warnings(caplog), f"cannot connect to {broker.host}:{broker.port}")
    assert "refused" in warnings(caplog)[0]


class Released(logging.Handler):
    """Lets a silent broker go on as soon as a log line has reported it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.reported = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "has not answered for" in record.getMessage():
            self.reported.set()


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> Iterator[Released]:
    monkeypatch.setattr(connection, "SLOW_S", 0.01)
    handler = Released()
    logger = logging.getLogger("ringleader.clients.blocking")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def silent_at(kind: type[Message], released: Released) -> Callable[[Message], bool]:
    return lambda request: not isinstance(request, kind) or released.reported.wait(60)


@pytest.mark.parametrize("secured", [False, True])
def test_a_silent_broker_is_told_of_and_still_waited_for(
    released: Released, secured: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(tmp_path)
    tls = certificates.server_tls() if secured else None
    security = (("security.protocol", "SSL"), ("ssl.ca.location", str(certificates.authority)))
    with Broker(topics(), tls=tls) as broker:
        broker.script = silent_at(FetchRequest, released)
        endpoint = Endpoint(((broker.host, broker.port),), security=security if secured else ())
        assert read(endpoint) == list(range(ROWS))
        connections = broker.connections
    assert connections == 2, "one for metadata and one for the leader: nobody gave up"
    assert f"{broker.host}:{broker.port} has not answered for" in warnings(caplog)[0]
    assert "of 30 s that a request may take" in warnings(caplog)[0]


@pytest.mark.parametrize("secured", [False, True])
def test_a_broker_that_is_slow_to_take_a_request_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, secured: bool, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection, "SLOW_S", 0.01)
    certificates = Certificates(tmp_path)
    tls = certificates.server_tls() if secured else None
    security = (("security.protocol", "SSL"), ("ssl.ca.location", str(certificates.authority)))
    never = threading.Event()
    with Broker(topics(), tls=tls) as broker:
        # Far longer than a part of the patience; it reads nothing meanwhile.
        broker.script = lambda request: not isinstance(request, MetadataRequest) or not never.wait(0.5)
        found = connection.BlockingConnection(
            broker.host, broker.port, Endpoint((), security=security if secured else ())
        )
        large = MetadataRequest(topics=[MetadataRequestTopic(name="n" * 30_000)] * 1_000)
        for request in (MetadataRequest(topics=[]), large):
            found.send(request, 4)
        assert [len(found.receive(MetadataResponse).topics) for _ in range(2)] == [0, 1_000]
        found.close()


def test_a_look_up_tells_of_a_silent_broker(released: Released) -> None:
    with Broker(topics()) as broker:
        broker.script = silent_at(ListOffsetsRequest, released)
        log = KafkaLog(Endpoint(((broker.host, broker.port),)), False)
        assert log.ends([("t", 0)]) == {("t", 0): ROWS}
        log.close()


def test_a_broker_that_stays_silent_is_given_up_in_the_time_of_a_request(released: Released) -> None:
    with Broker(topics()) as broker:
        ended = threading.Event()
        broker.script = lambda request: not isinstance(request, FetchRequest) or ended.wait(60)
        endpoint = Endpoint(((broker.host, broker.port),), request_timeout_ms=50)
        with pytest.raises(FetchError, match="did not answer in time"):
            read(endpoint, poll_timeout_ms=100)
        ended.set()
    assert released.reported.is_set()


def test_a_task_without_progress_tells_why(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second_try(request: Message) -> bool:
        if isinstance(request, FetchRequest) and broker.fetches:
            monkeypatch.setattr(fetch, "SLOW_S", 0.0)
        return True

    with Broker(topics()) as broker:
        broker.script = second_try
        broker.topics["t"][0].errors = [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        assert read(Endpoint(((broker.host, broker.port),))) == list(range(ROWS))
    (warning,) = warnings(caplog)
    assert "no progress for 0 s" in warning
    assert "t-0: KAFKA_STORAGE_ERROR" in warning


def test_the_time_that_spark_takes_for_rows_is_no_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    late_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late_s, sleep=time.sleep)
    monkeypatch.setattr(fetch, "time", clock)
    with Broker(topics()) as broker:
        settings = TaskSettings(Endpoint(((broker.host, broker.port),)), fetch_max_bytes=1)
        batches = read_slice(settings, [SliceRange("t", 0, 0, ROWS)])
        for expected in range(ROWS):
            assert next(batches)["offset"].to_pylist() == [expected]
            late_s += 1_000.0


def sink(broker: SinkBroker, delivery_timeout_s: float) -> SinkProducer:
    return SinkProducer(
        SinkSettings(
            endpoint=Endpoint(((broker.host, broker.port),), request_timeout_ms=5_000),
            topic="t",
            delivery_timeout_s=delivery_timeout_s,
            max_block_s=60.0,
            retry_backoff_s=0.001,
        )
    )


def one_row() -> ArrowRows:
    return ArrowRows(pa.array([b"v"], pa.binary()), None, None, None, None)


def test_the_sink_tells_of_a_broker_that_goes_away(caplog: pytest.LogCaptureFixture) -> None:
    with SinkBroker({"t": {0: Partition()}}) as broker:
        producer = sink(broker, delivery_timeout_s=3.0)
        producer.write_rows(one_row())
        producer.flush()
    producer.write_rows(one_row())
    with pytest.raises(ProduceError):
        producer.flush()
    lines = warnings(caplog)
    assert any("node 0 did not take batches, they are sent again" in line for line in lines)
    assert len([line for line in lines if f"cannot connect to {broker.host}:{broker.port}" in line]) <= 8
    producer.close()


def test_the_sink_tells_of_a_batch_that_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with SinkBroker({"t": {0: Partition()}}) as broker:
        refused = iter([ErrorCode.NOT_ENOUGH_REPLICAS] * 3)
        broker.refuse = lambda topic, partition, header: next(refused, 0)
        producer = sink(broker, delivery_timeout_s=60.0)
        producer.write_rows(one_row())
        producer.flush()
        producer.close()
    beginning = "t-0 did not take a batch, it is sent again: NOT_ENOUGH_REPLICAS"
    assert warnings(caplog)[0] == beginning
    assert all(line.startswith(beginning) for line in warnings(caplog))


def test_a_read_of_committed_offsets_tells_of_brokers_that_are_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    [port] = free_ports(1)
    with (
        GroupCoordinator(Endpoint((("127.0.0.1", port),)), "g", 0.2) as group,
        pytest.raises(NoCoordinatorError),
    ):
        group.fetch([("t", 0)])
    lines = warnings(caplog)
    assert few(lines, f"cannot connect to 127.0.0.1:{port}")
    assert any("the coordinator of group g cannot be had now" in line for line in lines)

"""TLS and SASL on the blocking connections: accepted clients, failures in words, sessions that end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader.clients.blocking import security
from ringleader.clients.blocking.cluster import BlockingCluster
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.protocol.records import Record, build_batch
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.fetching.fetch import read_slice
from ringleader.spark_bridge.tasks import TaskSettings
from ringleader.spark_bridge.values import SliceRange
from tests.spark_bridge.broker import Broker, Partition
from tests.support.certificates import Certificates

USER, PASSWORD = "alice", "open sesame"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fetch, "RETRY_PAUSE_S", 0.001)
    yield
    fetch.close_clusters()


def topics() -> dict[str, dict[int, Partition]]:
    batches = [build_batch([Record(base + i, 1, None, b"v" * 2_000) for i in range(50)]) for base in (0, 50)]
    return {"t": {0: Partition(*batches)}}


def settings(broker: Broker, protocol: str, trusted: Path | None = None, **more: str) -> TaskSettings:
    given = {"security.protocol": protocol} | {name.replace("_", "."): value for name, value in more.items()}
    if trusted is not None:
        given["ssl.ca.location"] = str(trusted)
    endpoint = Endpoint(((broker.host, broker.port),), security=tuple(sorted(given.items())))
    return TaskSettings(endpoint, poll_timeout_ms=5_000)


def plain(
    broker: Broker, protocol: str, trusted: Path | None = None, password: str = PASSWORD
) -> TaskSettings:
    return settings(
        broker, protocol, trusted, sasl_mechanism="PLAIN", sasl_username=USER, sasl_password=password
    )


def offsets(found: TaskSettings) -> list[int]:
    batches = read_slice(found, [SliceRange("t", 0, 0, 100)])
    return [offset for batch in batches for offset in batch["offset"].to_pylist()]


def test_records_come_through_tls(certificates: Certificates) -> None:
    with Broker(topics(), tls=certificates.server_tls()) as broker:
        assert offsets(settings(broker, "SSL", certificates.authority)) == list(range(100))


def test_records_come_to_who_has_the_password(certificates: Certificates) -> None:
    with Broker(topics(), tls=certificates.server_tls(), users={USER: PASSWORD}) as broker:
        assert offsets(plain(broker, "SASL_SSL", certificates.authority)) == list(range(100))
    with Broker(topics(), users={USER: PASSWORD}) as broker:
        assert offsets(plain(broker, "SASL_PLAINTEXT")) == list(range(100))


def test_a_wrong_password_ends_the_task_at_once(certificates: Certificates) -> None:
    with Broker(topics(), users={USER: PASSWORD}) as broker:
        with pytest.raises(SourceError, match="refused user 'alice'") as caught:
            offsets(plain(broker, "SASL_PLAINTEXT", password="not this one"))
        assert "not this one" not in str(caught.value)
        assert broker.connections == 1


def test_a_certificate_of_nobody_known(certificates: Certificates) -> None:
    with Broker(topics(), tls=certificates.server_tls()) as broker:
        with pytest.raises(SourceError, match="is not trusted"):
            offsets(settings(broker, "SSL"))
        assert broker.connections == 1


def test_a_connection_is_made_again_before_its_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker(topics(), users={USER: PASSWORD}, lifetime_ms=3_600_000) as broker:
        cluster = BlockingCluster(plain(broker, "SASL_PLAINTEXT").endpoint)
        cluster.refresh(["t"])
        first = cluster.connection(0)
        assert cluster.connection(0) is first
        assert not first.stale
        monkeypatch.setattr(security, "RENEW_AFTER", -1.0)
        cluster.drop(0)
        old = cluster.connection(0)
        assert old.stale
        assert cluster.connection(0) is not old
        cluster.close()


def test_secrets_are_not_shown() -> None:
    with Broker(topics()) as broker:
        assert PASSWORD not in repr(plain(broker, "SASL_PLAINTEXT"))

"""Connections that outlive tasks, and the sink's through TLS and SASL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.clusters import MAX_CLUSTERS, Clusters
from ringleader.spark_bridge.sink import produce
from ringleader.spark_bridge.writer import RingleaderWriter
from tests.spark_bridge.broker import Partition
from tests.spark_bridge.sink_broker import SinkBroker
from tests.spark_bridge.test_writer import ROW
from tests.support.certificates import Certificates

USER, PASSWORD = "alice", "open sesame"


def test_a_cluster_keeps_its_connections_until_too_many_others_came() -> None:
    clusters = Clusters()
    ends = [Endpoint((("x", number),)) for number in range(1, MAX_CLUSTERS + 2)]
    first, second = clusters.get(ends[0]), clusters.get(ends[1])
    for end in ends[2:-1]:
        clusters.get(end)
    assert clusters.get(ends[0]) is first
    clusters.get(ends[-1])
    assert clusters.get(ends[0]) is first
    assert clusters.get(ends[1]) is not second
    clusters.close()


def test_what_another_process_opened_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters()
    end = Endpoint((("x", 1),))
    before = clusters.get(end)
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert clusters.get(end) is not before


def test_a_sink_writes_through_tls_as_a_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    topics = {"t": {0: Partition()}}
    with SinkBroker(topics, tls=certificates.server_tls(), users={USER: PASSWORD}) as broker:
        given = {
            "kafka.bootstrap.servers": f"{broker.host}:{broker.port}",
            "topic": "t",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.ca.location": str(certificates.authority),
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": USER,
            "kafka.sasl.password": PASSWORD,
        }
        values = [b"%05d" % number + b"." * 1_000 for number in range(2_500)]
        rows = pa.RecordBatch.from_pydict({"value": pa.array(values)})
        assert RingleaderWriter(given, ROW, False).write(iter([rows])).rows == 2_500
        assert broker.values("t", 0) == values
        produce.close_clusters()
        wrong = RingleaderWriter(given | {"kafka.sasl.password": "wrong one"}, ROW, False)
        with pytest.raises(SourceError, match="refused user 'alice'") as caught:
            wrong.write(iter([rows]))
        assert "wrong one" not in str(caught.value)
    produce.close_clusters()

"""Several nodes on Apache Kafka. These tests need a JDK and Maven, and run when this directory, or a file in
it, is named; a run over all tests passes them by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.kafka_cluster import KafkaCluster

INTEROP = Path(__file__).resolve().parents[1]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave what needs Java to those who name their directory."""
    if not collection_path.name.startswith("test_"):
        return None
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(path.resolve().is_relative_to(INTEROP) for path in named) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one cluster stay on one process: there is one of each. The two may be on two processes."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "three_brokers" in names or "one_broker" in names:
            cluster = "three-brokers" if "three_brokers" in names else "one-broker"
            item.add_marker(pytest.mark.xdist_group(cluster))


@pytest.fixture(scope="session")
def _three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("three")) as cluster:
        yield cluster


@pytest.fixture
def three_brokers(_three_brokers: KafkaCluster) -> Iterator[KafkaCluster]:
    """Three brokers that all tests share; what a test stopped or killed is started again after it."""
    yield _three_brokers
    for node_id, broker in _three_brokers.brokers.items():
        if not broker.running:
            _three_brokers.restart(node_id)


@pytest.fixture(scope="session")
def _one_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(tmp_path_factory.mktemp("one"), brokers=1) as cluster:
        yield cluster


@pytest.fixture
def one_broker(_one_broker: KafkaCluster) -> Iterator[KafkaCluster]:
    """A cluster of one that all tests share, and that stands again after each."""
    yield _one_broker
    if not _one_broker.brokers[1].running:
        _one_broker.restart(1)

"""Real clients against the daemon, and our own against Apache Kafka. Tests that need a JDK and Maven are in
files ``test_java_*.py`` and ``test_*_on_kafka.py``.

Those run when this directory, or a file in it, is named: a run over all tests passes them by, and so needs
neither. Without a JDK or Maven they fail and say what to install.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.clients.java_clients import JavaClients
from tests.interop.clients.team import PARTITIONS, TOPIC, MakeMember
from tests.interop.secured import Door, Secured, make_topics, secured_broker
from tests.support.certificates import Certificates
from tests.support.daemon import Daemon

INTEROP = Path(__file__).resolve().parents[1]


def needs_java(path: Path) -> bool:
    """Whether the file's name says so."""
    return path.name.startswith("test_java_") or path.match("test_*_on_kafka.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave what needs Java to those who name their directory."""
    if not needs_java(collection_path):
        return None
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(path.resolve().is_relative_to(INTEROP) for path in named) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one broker stay on one process, so that there is one broker."""
    for item in items:
        if "secured" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with a topic. Groups form without waiting for more members, and sessions may be short."""
    options = ["--group-initial-rebalance-delay-ms", "0", "--group-min-session-timeout-ms", "100"]
    with Daemon(tmp_path, topics=[f"{TOPIC}:{PARTITIONS}"], options=options) as running:
        yield running


@pytest.fixture(scope="session")
def java_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClients]:
    """One JVM for the Java clients of all tests."""
    with JavaClients(tmp_path_factory.mktemp("java") / "java.log") as running:
        yield running


@pytest.fixture
def member(daemon: Daemon, java_clients: JavaClients) -> MakeMember:
    """Makes Java members."""
    return MakeMember(daemon, java_clients)


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """One Apache Kafka broker, with topics, for the tests of our own clients."""
    directory = tmp_path_factory.mktemp("kafka")
    certificates = Certificates(directory / "certificates")
    with secured_broker(directory / "broker", certificates) as broker:
        asyncio.run(make_topics(broker.bootstrap, {"t": 4, TOPIC: PARTITIONS}))
        yield Secured(broker, certificates)


@pytest.fixture(params=["plain", "secure"])
def door(request: pytest.FixtureRequest, secured: Secured) -> Door:
    """A way into the broker: unencrypted, and with TLS and SCRAM."""
    return secured.plain() if request.param == "plain" else secured.secure()


@pytest.fixture
def group(request: pytest.FixtureRequest) -> str:
    """A group of this test's own."""
    return str(request.node.name)


@pytest.fixture
def sockets_forgotten() -> Iterator[None]:
    """kafka-python leaves the sockets of failed attempts to the garbage collector: here, in no other test."""
    log = logging.getLogger("kafka")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)  # pytest keeps what is logged, and so the sockets
    yield
    log.setLevel(level)
    while gc.collect():
        pass  # what held them is finalised first

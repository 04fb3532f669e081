"""A single daemon's users go into the nodes' topic of Apache Kafka, before its records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader.clients.admin import Admin
from ringleader.migration.state import FILE
from ringleader.protocol.records import build_batch
from tests.interop.cluster.migrating import Daemon, read, records
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.command import Done, run_here


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(tmp_path / "data")
    found.coordinator.start()
    yield found
    found.coordinator.stop()


def users(verb: str, daemon: Daemon, brokers: KafkaCluster, *arguments: str) -> Done:
    where = ("--cluster", brokers.bootstrap, "--cluster-security-topic", daemon.security_topic)
    return run_here(None, "users", verb, *arguments, *where, "--cluster-replication-factor", "1")


def topics(brokers: KafkaCluster) -> set[str]:
    async def ask() -> set[str]:
        async with Admin(brokers.bootstrap) as admin:
            return {topic.name for topic in await admin.list_topics(internal=True)}

    return asyncio.run(ask())


def test_users_go_over_and_others_of_the_same_name_stop_it(
    one_broker: KafkaCluster, daemon: Daemon, tmp_path: Path
) -> None:
    topic = daemon.topic("plain")
    daemon.put(topic, build_batch(records(0, 10)))
    daemon.coordinator.stop()
    password = tmp_path / "password"
    password.write_text("open sesame\n")
    for name in ("alice", "bob"):
        added = ("users", "add", name, "--password-file", str(password), "--data-dir", str(daemon.directory))
        assert run_here(None, *added).code == 0

    dry = daemon.move(one_broker, "--dry-run")
    assert dry.code == 0, dry.err
    assert ", 2 users, 0 ACLs and 0 quotas can be taken over" in dry.out
    assert daemon.security_topic not in topics(one_broker)

    # The same password, with another salt.
    assert users("add", daemon, one_broker, "alice", "--password-file", str(password)).code == 0
    for more in ((), ("--into-existing",)):
        refused = daemon.move(one_broker, *more)
        assert refused.code == 1
        text = f"{daemon.security_topic} has already, with other contents, users/alice: remove them there, or"
        assert text in refused.err
    assert topic not in topics(one_broker)
    assert not (daemon.directory / FILE).exists()

    assert users("remove", daemon, one_broker, "alice").code == 0
    done = daemon.move(one_broker, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["security"] == {"users": 2, "acls": 0, "quotas": 0, "groups": 0}
    listed = users("list", daemon, one_broker).out
    assert "alice" in listed
    assert "bob" in listed
    assert sum(map(len, read(one_broker.bootstrap, topic).values())) == 10


def test_a_daemon_without_users_makes_no_topic(one_broker: KafkaCluster, daemon: Daemon) -> None:
    daemon.topic("plain")
    daemon.coordinator.stop()
    done = daemon.move(one_broker)
    assert done.code == 0, done.err
    assert daemon.security_topic not in topics(one_broker)
    assert "users" not in done.out

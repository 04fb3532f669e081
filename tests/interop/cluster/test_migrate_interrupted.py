"""A migration that ends early goes on, and one that a broker leaves does: no record is missing or doubled."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.migration import migration
from ringleader.migration.migration import migrate
from ringleader.protocol.records import Record, build_batch
from tests.interop.cluster.migrating import KEPT, OLD_MS, Daemon, own_settings, read, records
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.command import command_line


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(tmp_path / "data")
    found.coordinator.start()
    yield found
    found.coordinator.stop()


class StoppedError(Exception):
    """The power, or somebody's patience, has ended."""


@pytest.mark.parametrize("after", ["made", 0, 1, 40, 119, 120, "groups"])
def test_what_ended_early_is_gone_on_with(
    one_broker: KafkaCluster, daemon: Daemon, after: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = daemon.topic("plain", 2)
    for partition, n in itertools.product((0, 1), range(60)):
        daemon.put(topic, build_batch(records(n * 10, 10)), partition=partition)
    here = read(daemon.coordinator.bootstrap, topic)
    for number in range(8):
        daemon.commit(f"g{number}", {(topic, 0): 10 * number})
    daemon.coordinator.stop()
    monkeypatch.setattr("ringleader.migration.topics.READ_BYTES", 500)
    count = itertools.count()

    def stop(_done: int, _total: int) -> None:
        if next(count) == after:
            raise StoppedError

    write, writes = migration._write, itertools.count()

    async def stopping(*arguments: Any) -> None:
        if next(writes) == 25:
            raise StoppedError
        await write(*arguments)

    async def never(*_arguments: Any) -> None:
        raise StoppedError

    with pytest.MonkeyPatch.context() as broken:
        if after == "groups":
            broken.setattr(migration, "_write", stopping)
        if after == "made":
            broken.setattr(Admin, "describe_topics", never)
        with pytest.raises(StoppedError):
            asyncio.run(migrate(daemon.plan(one_broker), stop))
    done = daemon.move(one_broker)
    assert done.code == 0, done.err
    assert read(one_broker.bootstrap, topic) == here
    assert own_settings(one_broker.bootstrap, topic) == KEPT
    again = daemon.move(one_broker)
    assert again.code == 1
    assert "this was done before" in again.err


@pytest.mark.timeout(300)
def test_a_migration_killed_again_and_again_gets_there(
    one_broker: KafkaCluster, daemon: Daemon, tmp_path: Path
) -> None:
    """The command itself, by SIGKILL: as soon as there is a topic, amid the records, and while groups
    are written."""
    topic = daemon.topic("large", 2)
    size = 8_000
    for partition, n in itertools.product((0, 1), range(40)):
        batch = [Record(i, OLD_MS + i, b"k", b"%d " % (n * 100 + i) + b"." * size) for i in range(100)]
        daemon.put(topic, build_batch(batch), partition=partition)
    groups = [f"g{number}" for number in range(20)]
    for number, group in enumerate(groups):
        daemon.commit(group, {(topic, 0): number, (topic, 1): 2 * number})
    here = read(daemon.coordinator.bootstrap, topic)
    daemon.coordinator.stop()

    def copied() -> int:
        async def ask() -> int:
            async with Admin(one_broker.bootstrap) as admin:
                if topic not in {one.name for one in await admin.list_topics()}:
                    return -1
                return sum((await admin.end_offsets([(topic, 0), (topic, 1)])).values())

        return asyncio.run(ask())

    def writes_groups() -> bool:
        return bool(json.loads((daemon.directory / "migration.json").read_bytes())["groups"] == "begun")

    moments: list[Callable[[], bool]] = [
        lambda: copied() >= 0,
        lambda: copied() >= 4_000,
        writes_groups,
    ]
    for reached in moments:
        process = subprocess.Popen(
            command_line(*daemon.moving(one_broker)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while not reached():
            assert process.poll() is None, process.communicate()[0]
        process.kill()
        out, _ = process.communicate()
        assert process.returncode == -signal.SIGKILL, out
    done = daemon.move(one_broker, "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["records"] <= 4_000, "everything was written again"
    assert [one["records"] for one in report["topics"]] == [8_000]
    assert read(one_broker.bootstrap, topic) == here
    assert own_settings(one_broker.bootstrap, topic) == KEPT

    async def offsets() -> list[dict[TopicPartition, OffsetAndMetadata]]:
        async with (
            daemon.node(one_broker, tmp_path / "node", {topic: 2}) as node,
            Admin(node.bootstrap) as admin,
        ):
            return [dict(await admin.group_offsets(f"{daemon.name}-{group}")) for group in groups]

    assert asyncio.run(offsets()) == [
        {(topic, 0): OffsetAndMetadata(number), (topic, 1): OffsetAndMetadata(2 * number)}
        for number in range(len(groups))
    ]


def test_a_broker_that_dies_meanwhile_costs_no_record_and_doubles_none(
    three_brokers: KafkaCluster, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = daemon.topic("plain", 3)
    for partition, n in itertools.product(range(3), range(60)):
        daemon.put(topic, build_batch(records(n * 10, 10)), partition=partition)
    here = read(daemon.coordinator.bootstrap, topic)
    daemon.coordinator.stop()
    monkeypatch.setattr("ringleader.migration.topics.READ_BYTES", 500)
    count = itertools.count()

    def kill(_done: int, _total: int) -> None:
        if next(count) == 40:
            three_brokers.kill(2)

    plan = daemon.plan(three_brokers)
    settings = plan.settings.model_copy(update={"cluster_replication_factor": 3})
    plan = replace(plan, replicas=3, settings=settings)
    asyncio.run(migrate(plan, kill))
    assert not three_brokers.brokers[2].running
    assert read(three_brokers.bootstrap, topic) == here

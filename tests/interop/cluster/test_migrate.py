"""A single daemon's data goes into a cluster of Apache Kafka: every record, offset and generation."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.protocol.messages import HeartbeatRequest
from ringleader.protocol.records import Compression, build_batch
from tests.interop.cluster.migrating import OLD_MS, Daemon, own_settings, read, records
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.command import run_here
from tests.support.consuming import PATIENCE_S, consumer


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(tmp_path / "data")
    found.coordinator.start()
    yield found
    found.coordinator.stop()


def filled(daemon: Daemon) -> list[str]:
    """Topics with everything that may be in a log."""
    plain = daemon.topic("plain", 3)
    ahead_ms = int((time.time() + 10 * 86_400) * 1000)
    for partition, (number, codec) in itertools.product(range(2), enumerate(Compression)):
        at_ms = ahead_ms if number == 2 else OLD_MS
        daemon.put(plain, build_batch(records(number * 9, 9, at_ms), compression=codec), partition=partition)
    daemon.put(
        plain,
        build_batch(records(99, 3), producer_id=2**40, producer_epoch=5, base_sequence=0),
        build_batch(records(102, 3), producer_id=2**40, producer_epoch=5, base_sequence=3),
    )
    stamped = daemon.topic("stamped", 1, message_timestamp_type="LogAppendTime")
    daemon.put(stamped, build_batch(records(0, 5)), build_batch(records(5, 5), compression=Compression.LZ4))
    cut = daemon.topic("cut", 2)
    for partition in (0, 1):
        daemon.put(cut, *(build_batch(records(n * 10, 10)) for n in range(5)), partition=partition)
    daemon.coordinator.run(daemon.coordinator.node.topics.truncate(cut, 0, 23))
    daemon.coordinator.run(daemon.coordinator.node.topics.truncate(cut, 1, 50))
    return [plain, stamped, cut, transactions(daemon)]


def transactions(daemon: Daemon) -> str:
    topic = daemon.topic("txn", 1)
    options = {"bootstrap.servers": daemon.coordinator.bootstrap}
    one, two = (
        confluent_kafka.Producer({**options, "transactional.id": f"{daemon.name}-{letter}"})
        for letter in "ab"
    )
    for producer in (one, two):
        producer.init_transactions(30)
    for number, commits in enumerate([True, False, False, True, True]):
        one.begin_transaction()
        two.begin_transaction()
        for n in range(4):
            one.produce(topic, b"one-%d-%d" % (number, n), partition=0)
            one.flush()
            two.produce(topic, b"two-%d-%d" % (number, n), partition=0)
            two.flush()
        (one.commit_transaction if commits else one.abort_transaction)(30)
        (two.abort_transaction if commits else two.commit_transaction)(30)
        daemon.put(topic, build_batch(records(number, 2)))
    return topic


def test_every_record_and_offset_goes_over(one_broker: KafkaCluster, daemon: Daemon, tmp_path: Path) -> None:
    topics = filled(daemon)
    here = {topic: read(daemon.coordinator.bootstrap, topic) for topic in topics}
    partitions = {topic: daemon.coordinator.node.topics.describe(topic) for topic in topics}
    committed: dict[str, dict[TopicPartition, int | OffsetAndMetadata]] = {}
    for number in range(5):
        offsets = committed.setdefault(f"g{number}", {})
        for topic, info in partitions.items():
            assert info is not None
            for partition in range(info.partitions):
                end = daemon.coordinator.node.topics.partition(topic, partition).high_watermark
                offsets[topic, partition] = OffsetAndMetadata(end * number // 4, f"at {number}", 0)
        daemon.commit(f"g{number}", offsets)
    nexts = {
        (group, place): _first(daemon.coordinator.bootstrap, place, value)
        for group, offsets in committed.items()
        for place, value in offsets.items()
    }
    daemon.coordinator.stop()

    before = sorted((path, path.stat().st_size) for path in daemon.directory.rglob("*.log"))
    dry = daemon.move(one_broker, "--dry-run")
    assert dry.code == 0, dry.err
    assert "Nothing has changed" in dry.out
    done = daemon.move(one_broker, "--json")
    assert done.code == 0, done.err
    assert before == sorted((path, path.stat().st_size) for path in daemon.directory.rglob("*.log"))

    assert {topic: read(one_broker.bootstrap, topic) for topic in topics} == here
    report = json.loads(done.out)
    shifted = {one["topic"].split("-")[-1]: one["shifted"] for one in report["topics"]}
    assert shifted == {"plain": [], "stamped": [], "cut": [0, 1], "txn": [0]}

    for topic, info in partitions.items():
        assert info is not None
        assert own_settings(one_broker.bootstrap, topic) == info.configs

    async def moved() -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        counts = {topic: info.partitions for topic, info in partitions.items() if info is not None}
        async with (
            daemon.node(one_broker, tmp_path / "node", counts) as node,
            Admin(node.bootstrap) as admin,
        ):
            return {group: dict(await admin.group_offsets(f"{daemon.name}-{group}")) for group in committed}

    for group, found in asyncio.run(moved()).items():
        assert set(found) == set(committed[group])
        for place, value in found.items():
            assert value.metadata == f"at {group[1:]}"
            assert value.leader_epoch == -1
            assert _first(one_broker.bootstrap, place, value) == nexts[group, place], (group, place, value)


def _first(bootstrap: str, place: TopicPartition, value: int | OffsetAndMetadata) -> Any:
    """The record that a member reads first from there."""
    assert isinstance(value, OffsetAndMetadata)
    found = read(bootstrap, place[0], place, value.offset).get(place[1], [])
    return found[0] if found else None


def test_a_group_goes_on_in_its_generation_and_reads_what_it_has_not(
    one_broker: KafkaCluster, daemon: Daemon, tmp_path: Path
) -> None:
    topic, group = daemon.topic("live", 2), f"{daemon.name}-live"
    for partition in (0, 1):
        daemon.put(topic, *(build_batch(records(n * 10, 10)) for n in range(5)), partition=partition)
    quick: dict[str, Any] = {"session_timeout_ms": 300_000, "heartbeat_interval_ms": 50}

    async def live() -> tuple[int, str]:
        static = consumer_member(
            daemon.coordinator.bootstrap, group, [topic], group_instance_id="one", **quick
        )
        async with static:
            for _ in range(3):
                await static.wait_assigned(PATIENCE_S)
                before = static.generation
                await static.rejoin("once more")
                async with asyncio.timeout(PATIENCE_S):
                    while static.generation == before or static.assigned is None:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
            await static.commit({(topic, 0): 20, (topic, 1): 30})
            return static.generation, static.member_id

    generation, member_id = asyncio.run(live())
    daemon.coordinator.stop()
    done = daemon.move(one_broker)
    assert done.code == 0, done.err

    async def goes_on() -> list[bytes | None]:
        async with daemon.node(one_broker, tmp_path / "node", {topic: 2}) as node:
            beat = HeartbeatRequest(
                group_id=group, generation_id=generation, member_id=member_id, group_instance_id="one"
            )
            async with Cluster(node.bootstrap) as cluster:
                coordinator = await cluster.coordinator(group)
                assert (await cluster.send(coordinator, plain(beat))).error_code == 0
            found: list[bytes | None] = []
            options: dict[str, Any] = quick | {"group_instance_id": "one", "topics": [topic], "group": group}
            async with consumer(one_broker.bootstrap, coordinator_bootstrap=node.bootstrap, **options) as one:
                async with asyncio.timeout(PATIENCE_S):
                    while len(found) < 50:
                        for batch in await one.getmany():
                            found += [record.value for record in batch]
                await one.wait_assigned()
                await one.member.rejoin("a newer generation")
                async with asyncio.timeout(PATIENCE_S):
                    while one.member.generation <= generation:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                # Numbers that the daemon may have given out are never given out again.
                assert one.member.generation > generation + 1
            return found

    found = asyncio.run(goes_on())
    rest = [record.value for n in range(2, 5) for record in records(n * 10, 10)]
    rest += [record.value for n in range(3, 5) for record in records(n * 10, 10)]
    assert sorted(value or b"" for value in found) == sorted(value or b"" for value in rest)


def test_members_whose_partitions_have_other_offsets_join_again(
    one_broker: KafkaCluster, daemon: Daemon, tmp_path: Path
) -> None:
    topic, group = daemon.topic("cut"), f"{daemon.name}-cut"
    daemon.put(topic, *(build_batch(records(n * 10, 10)) for n in range(5)))
    daemon.coordinator.run(daemon.coordinator.node.topics.truncate(topic, 0, 10))

    async def live() -> None:
        options: dict[str, Any] = {"group_instance_id": "one", "session_timeout_ms": 300_000}
        async with consumer_member(daemon.coordinator.bootstrap, group, [topic], **options) as static:
            await static.wait_assigned(PATIENCE_S)
            await static.commit({(topic, 0): 35})

    asyncio.run(live())
    daemon.coordinator.stop()
    done = daemon.move(one_broker)
    assert done.code == 0, done.err
    assert "its members have to join again" in done.out

    async def look() -> None:
        async with daemon.node(one_broker, tmp_path / "node", {topic: 1}) as node:
            async with Admin(node.bootstrap) as admin:
                (found,) = await admin.describe_groups([group])
                assert (found.state, found.members) == ("Empty", ())
                assert await admin.group_offsets(group) == {(topic, 0): OffsetAndMetadata(25)}
            async with consumer_member(node.bootstrap, group, [topic], group_instance_id="one") as static:
                await static.wait_assigned(PATIENCE_S)
                assert static.generation > 2

    asyncio.run(look())


def test_what_is_in_the_way_is_said_and_nothing_is_changed(one_broker: KafkaCluster, daemon: Daemon) -> None:
    topic = daemon.topic("plain", 1)
    daemon.put(topic, build_batch(records(0, 10)))
    daemon.commit("g", {(topic, 0): 4})
    running = daemon.move(one_broker)
    assert running.code == 1
    assert "another ringleader uses this data directory" in running.err
    daemon.coordinator.stop()

    kafka = one_broker.bootstrap
    assert run_here(kafka, "topics", "create", topic, "--partitions", "2").code == 0
    refused = daemon.move(one_broker)
    assert refused.code == 1
    assert f"topic {topic} has 2 partitions on the cluster and 1 here" in refused.err
    assert run_here(kafka, "topics", "delete", topic).code == 0
    assert run_here(kafka, "topics", "create", topic, "--partitions", "1").code == 0
    options = {"bootstrap.servers": kafka}
    producer = confluent_kafka.Producer(options)
    producer.produce(topic, b"theirs")
    producer.flush()
    refused = daemon.move(one_broker)
    assert refused.code == 1
    assert f"there are records already in {topic}" in refused.err
    assert not (daemon.directory / "migration.json").exists()

    node = confluent_kafka.Consumer({**options, "group.id": daemon.nodes_group, "client.id": "node"})
    node.subscribe([topic])
    while not node.assignment():
        node.poll(0.1)
    refused = daemon.move(one_broker, "--into-existing")
    node.close()
    assert refused.code == 1
    assert "nodes of the cluster are running, node: stop them" in refused.err

    done = daemon.move(one_broker, "--into-existing", "--json")
    assert done.code == 0, done.err
    (group,) = json.loads(done.out)["groups"]
    assert group["moved"] == [[topic, 0, 4, 5]]
    values = [value for _, value, _, _ in read(kafka, topic)[0]]
    assert values == [b"theirs", *(record.value for record in records(0, 10))]


def test_an_open_transaction_is_waited_for(one_broker: KafkaCluster, daemon: Daemon) -> None:
    topic = daemon.topic("open")
    options = {"bootstrap.servers": daemon.coordinator.bootstrap, "transactional.id": daemon.name}
    producer = confluent_kafka.Producer(options)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"perhaps")
    producer.flush()
    daemon.coordinator.stop()
    refused = daemon.move(one_broker)
    assert refused.code == 1
    assert f"there are open transactions in {topic}-0: start the daemon again" in refused.err

"""Exactly once through nodes: offsets of groups in the cluster's own transactions, and an owner that dies."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ringleader.clients.admin import Admin
from ringleader.clients.errors import RetriableError
from ringleader.coordinator.groups.records import offset_key, offset_value, pending_key
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage
from tests.chaos import asking
from tests.chaos.targets import ringleader_nodes
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.daemon import Daemon

PARTITIONS = 4
WAIT_S = 60.0
STUCK_S = WAIT_S + 10.0

T = TypeVar("T")


@contextmanager
def two_nodes(directory: Path, cluster: KafkaCluster, name: str) -> Iterator[dict[int, Daemon]]:
    """With a groups' topic of their own."""
    options = [
        *("--offsets-topic-num-partitions", str(PARTITIONS)),
        *("--cluster-groups-topic", f"__{name}"),
        *("--cluster-group-id", f"__{name}"),
        *("--cluster-transactional-id-prefix", f"__{name}"),
        *("--cluster-session-timeout-ms", "3000"),
    ]
    with ringleader_nodes(directory, cluster, (1, 2), options) as nodes:
        yield nodes


async def filled(cluster: KafkaCluster, nodes: str, name: str, records: int) -> None:
    """Topics `name`-in with numbered records, and `name`-out; written through the nodes."""
    async with Admin(cluster.bootstrap) as admin:
        await admin.create_topic(f"{name}-in", 2, replication_factor=3)
        await admin.create_topic(f"{name}-out", 2, replication_factor=3)

    def produce() -> None:
        producer = Producer({"bootstrap.servers": nodes, "enable.idempotence": True})
        for number in range(records):
            producer.produce(f"{name}-in", str(number), partition=number % 2)
        assert producer.flush(WAIT_S) == 0

    await asyncio.to_thread(produce)


class Mover:
    """Consume, transform, produce, in transactions; like its application it begins again after an error."""

    def __init__(self, nodes: str, name: str) -> None:
        self._nodes, self._name = nodes, name
        self._consumer: Any = None
        self._producer: Any = None

    def begin(self) -> None:
        """A consumer of the group, and a producer that fences its predecessor."""
        self._producer = Producer(
            {
                "bootstrap.servers": self._nodes,
                "transactional.id": f"{self._name}-mover",
                "transaction.timeout.ms": 20_000,
            }
        )
        self._producer.init_transactions(WAIT_S)
        self._consumer = Consumer(
            {
                "bootstrap.servers": self._nodes,
                "group.id": self._name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 30_000,
            }
        )
        self._consumer.subscribe([f"{self._name}-in"])

    def move(self, most: int) -> int:
        """One transaction; how many records. Raises KafkaException."""
        records = self._consumer.consume(most, 5.0)
        if not records:
            return 0
        self._producer.begin_transaction()
        for record in records:
            assert record.error() is None, record.error()
            self._producer.produce(f"{self._name}-out", record.value(), partition=record.partition())
        self._producer.send_offsets_to_transaction(
            self._consumer.position(self._consumer.assignment()),
            self._consumer.consumer_group_metadata(),
            WAIT_S,
        )
        return len(records)

    def commit(self) -> None:
        """Raises KafkaException."""
        self._producer.commit_transaction(WAIT_S)

    def abort(self) -> None:
        """Raises KafkaException."""
        self._producer.abort_transaction(WAIT_S)

    def end(self) -> None:
        """Leave the group."""
        self._consumer.close()


async def patiently(function: Callable[..., T], *arguments: Any) -> T:
    """In a thread that nobody waits for longer than that: librdkafka's send_offsets_to_transaction never
    comes back when the group's coordinator was away for so long that Metadata did not name it (its issues
    5511 and 5456; it does so with Apache Kafka's coordinator, too). Raises TimeoutError."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(cast(T, result))

    def work() -> None:
        try:
            result, failed = function(*arguments), None
        except BaseException as error:
            result, failed = None, error
        with contextlib.suppress(RuntimeError):  # the test is over
            loop.call_soon_threadsafe(tell, result, failed)

    threading.Thread(target=work, daemon=True).start()
    async with asyncio.timeout(STUCK_S):
        return await done


def moved(nodes: str, name: str) -> Counter[bytes]:
    """The records that readers of committed records see."""
    consumer = Consumer(
        {"bootstrap.servers": nodes, "group.id": f"{name}-reader", "isolation.level": "read_committed"}
    )
    found: Counter[bytes] = Counter()
    try:
        consumer.assign([TopicPartition(f"{name}-out", partition, 0) for partition in (0, 1)])
        ends = sum(consumer.get_watermark_offsets(TopicPartition(f"{name}-out", one))[1] for one in (0, 1))
        while ends:
            records = consumer.consume(1_000, 3.0)
            if not records:
                break
            found.update(record.value() or b"" for record in records)
    finally:
        consumer.close()
    return found


async def committed(nodes: str, name: str) -> int:
    """The group's offsets together."""
    async with Admin(nodes) as admin:
        found = await admin.group_offsets(name)
    return sum(one.offset for one in found.values())


async def until_committed(nodes: str, name: str, wanted: int) -> None:
    """The owner meets the transaction's marker soon after the commit."""
    async with asyncio.timeout(WAIT_S):
        while True:
            with contextlib.suppress(RetriableError):
                if await committed(nodes, name) == wanted:
                    return
            await asyncio.sleep(0.05)


@pytest.mark.timeout(300)
async def test_offsets_of_a_transaction_count_when_it_is_committed(
    three_brokers: KafkaCluster, tmp_path: Path
) -> None:
    name = "eos-plain"
    with two_nodes(tmp_path, three_brokers, name) as nodes:
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        await filled(three_brokers, bootstrap, name, 300)
        mover = Mover(bootstrap, name)
        await asyncio.to_thread(mover.begin)
        counts = []
        for number in range(3):
            counts.append(await asyncio.to_thread(mover.move, 50))
            if number == 1:
                with pytest.raises(RetriableError, match="UNSTABLE_OFFSET_COMMIT"):
                    await committed(bootstrap, name)
                await asyncio.to_thread(mover.abort)
                await asyncio.to_thread(mover.end)
                mover = Mover(bootstrap, name)
                await asyncio.to_thread(mover.begin)
                counts.pop()
            else:
                await asyncio.to_thread(mover.commit)
        await until_committed(bootstrap, name, sum(counts))
        await asyncio.to_thread(mover.end)
        found = await asyncio.to_thread(moved, bootstrap, name)
        assert len(found) == sum(counts)
        assert set(found.values()) == {1}


async def written_late(cluster: KafkaCluster, name: str, group: str) -> None:
    """The records of an owner that dies before it drops the offsets of a transaction that was over
    already."""
    store = KafkaStorage(
        cluster.bootstrap,
        Claim(9, "nowhere", 9092, "1.0"),
        topic=f"__{name}",
        transactional_id_prefix=f"__{name}",
        partitions=PARTITIONS,
    )
    await store.start()
    try:
        partition = partition_for(group, PARTITIONS)
        epoch = await store.open(partition, 0)
        now_ms = time.time_ns() // 1_000_000
        content = [
            (offset_key(group, f"{name}-in", 0), offset_value(3, -1, "", now_ms, -1)),
            (pending_key(group, f"{name}-in", 0, 10**9), offset_value(7, -1, "", now_ms, -1)),
        ]
        await store.append([(partition, epoch, content)])
    finally:
        await store.close()


@pytest.mark.timeout(300)
async def test_only_offsets_that_no_marker_will_end_are_dropped(
    three_brokers: KafkaCluster, tmp_path: Path
) -> None:
    name = "eos-unended"
    with two_nodes(tmp_path, three_brokers, name) as nodes:
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        await filled(three_brokers, bootstrap, name, 10)
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "open"})
        await asyncio.to_thread(producer.init_transactions, WAIT_S)
        producer.begin_transaction()
        offsets = [TopicPartition(f"{name}-in", 0, 1)]
        await asyncio.to_thread(consumer.commit, offsets=offsets, asynchronous=False)
        offsets[0].offset = 5
        metadata = consumer.consumer_group_metadata()
        await asyncio.to_thread(producer.send_offsets_to_transaction, offsets, metadata, WAIT_S)
        consumer.close()
        for node in nodes.values():
            node.kill()
        await written_late(three_brokers, name, "late")
        for node in nodes.values():
            await asyncio.to_thread(node.start)
        with pytest.raises(RetriableError, match="UNSTABLE_OFFSET_COMMIT"):
            await committed(bootstrap, "late")
        await until_committed(bootstrap, "late", 3)
        with pytest.raises(RetriableError, match="UNSTABLE_OFFSET_COMMIT"):
            await committed(bootstrap, "open")
        await asyncio.to_thread(producer.commit_transaction, WAIT_S)
        await until_committed(bootstrap, "open", 5)
        assert any("offsets dropped" in node.log() for node in nodes.values())


@pytest.mark.timeout(600)
async def test_exactly_once_across_the_death_of_the_groups_owner(
    three_brokers: KafkaCluster, tmp_path: Path
) -> None:
    """The owner is killed after the offsets were sent, before and after the commit, and comes back."""
    name, records = "eos-death", 400
    with two_nodes(tmp_path, three_brokers, name) as nodes:
        bootstrap = ",".join(node.bootstrap for node in nodes.values())
        await filled(three_brokers, bootstrap, name, records)
        mover = Mover(bootstrap, name)
        await asyncio.to_thread(mover.begin)
        done = turn = 0
        while done < records:
            try:
                count = await patiently(mover.move, 40)
                if count:
                    kill = turn in (1, 3, 5)
                    turn += 1
                    owner = asking.coordinator(bootstrap, name) if kill else None
                    if owner is not None and turn % 4:
                        await asyncio.to_thread(nodes[owner].kill)
                    await patiently(mover.commit)
                    if owner is not None:
                        await asyncio.to_thread(nodes[owner].kill)
                        await asyncio.to_thread(nodes[owner].start)
                    done += count
            except (KafkaException, TimeoutError):  # as an application does: it begins again
                await patiently(mover.end)
                for node in nodes.values():
                    if not node.running:
                        await asyncio.to_thread(node.start)
                mover = Mover(bootstrap, name)
                await asyncio.to_thread(mover.begin)
                done = len(await asyncio.to_thread(moved, bootstrap, name))
        await until_committed(bootstrap, name, records)
        await asyncio.to_thread(mover.end)
        found = await asyncio.to_thread(moved, bootstrap, name)
        assert sorted(found, key=int) == [str(number).encode() for number in range(records)]
        assert set(found.values()) == {1}

"""librdkafka's consumers in a group of the consumer protocol on the daemon, which is killed meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.daemon import Daemon

PARTITIONS = 6
RECORDS = 3_000
PATIENCE_S = 120.0
OPTIONS = (
    *("--group-consumer-heartbeat-interval-ms", "200"),
    *("--group-consumer-assignment-interval-ms", "0"),
)


class Member(threading.Thread):
    """Reads, commits each record after it was noted, and remembers which partitions it had."""

    def __init__(self, bootstrap: str, name: str, **options: str) -> None:
        super().__init__(name=name)
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "client.id": name,
                **options,
            }
        )
        self.seen: list[tuple[int, int]] = []
        self.had: set[int] = set()
        self.ended = threading.Event()

    def run(self) -> None:
        def assigned(consumer: Consumer, some: list[TopicPartition]) -> None:
            self.had |= {one.partition for one in some}

        self.consumer.subscribe(["t"], on_assign=assigned)
        while not self.ended.is_set():
            message = self.consumer.poll(0.1)
            if message is None or message.error():
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.seen.append((partition, offset))
            if offset % 50 == 0:
                try:
                    self.consumer.commit(message=message, asynchronous=False)
                except KafkaException:
                    continue  # the daemon is away, or the partition moved: it is read again
        self.consumer.close()


def until(holds: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s, what
        time.sleep(0.05)


def test_members_share_the_topic_and_lose_no_record_when_the_daemon_is_killed(tmp_path: Path) -> None:
    with Daemon(tmp_path, topics=[f"t:{PARTITIONS}"], options=OPTIONS) as daemon:
        producer = Producer({"bootstrap.servers": daemon.bootstrap})
        for number in range(RECORDS):
            producer.produce("t", b"x", partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0
        members = [Member(daemon.bootstrap, name) for name in ("a", "b", "c")]
        try:
            for one in members:
                one.start()
            until(lambda: all(one.had for one in members), "each member had a partition")
            daemon.kill()
            daemon.start()
            wanted = {
                (partition, offset)
                for partition in range(PARTITIONS)
                for offset in range(RECORDS // PARTITIONS)
            }
            until(lambda: wanted <= {place for one in members for place in one.seen}, "all was read")
            members[2].ended.set()
            members[2].join()
            before = {place for one in members for place in one.seen}
            for number in range(PARTITIONS):
                producer.produce("t", b"y", partition=number)
            assert producer.flush(PATIENCE_S) == 0
            last = {(partition, RECORDS // PARTITIONS) for partition in range(PARTITIONS)}
            assert not last & before
            until(
                lambda: last <= {place for one in members[:2] for place in one.seen},
                "the other two took over what the third one had",
            )
        finally:
            for one in members:
                one.ended.set()
            for one in members:
                one.join()


@pytest.mark.parametrize("assignor", ["rack", "weighted"])
def test_members_choose_an_assignor_that_the_daemon_is_set_to_serve(tmp_path: Path, assignor: str) -> None:
    options = (*OPTIONS, "--group-consumer-assignors", "uniform,rack,weighted")
    with Daemon(tmp_path, topics=[f"t:{PARTITIONS}"], options=options) as daemon:
        members = [
            Member(daemon.bootstrap, name, **{"group.remote.assignor": assignor, "client.rack": name})
            for name in ("east", "west")
        ]
        try:
            for one in members:
                one.start()
            until(lambda: all(one.had for one in members), "each member had a partition")
            admin = AdminClient({"bootstrap.servers": daemon.bootstrap})
            described = admin.describe_consumer_groups(["g"])["g"].result(PATIENCE_S)
            assert described.partition_assignor == assignor
        finally:
            for one in members:
                one.ended.set()
            for one in members:
                one.join()

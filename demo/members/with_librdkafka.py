"""A member of the shared group that uses librdkafka. ``python -m demo.members.with_librdkafka``."""

from __future__ import annotations

import json
import signal
import threading
from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, TopicPartition

from demo import plan
from demo.ledger import Ledger, named_member


def consume(consumer: Consumer, ledger: Ledger, stop: threading.Event) -> None:
    """Take, process, write down, commit: in this order, until `stop`."""
    while not stop.is_set():
        offsets: dict[int, list[int]] = defaultdict(list)
        for message in consumer.consume(plan.POLL_RECORDS, 0.25):
            partition, offset = message.partition(), message.offset()
            if message.error() is None and partition is not None and offset is not None:
                json.loads(message.value() or b"null")
                offsets[partition].append(offset)
        if not offsets:
            continue
        ledger.processed(offsets)
        ends = {partition: found[-1] + 1 for partition, found in offsets.items()}
        try:
            consumer.commit(
                offsets=[TopicPartition(plan.TOPIC, partition, end) for partition, end in ends.items()],
                asynchronous=False,
            )
        except KafkaException as error:
            # The group moved on in between: the partition's current owner reads these records again.
            ledger.note("refused", offsets=ends, error=str(error))
        else:
            ledger.note("committed", offsets=ends)


def run(bootstrap: str, name: str, ledger: Ledger) -> None:
    """Be a member until SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": name,
            "group.id": plan.SHARED_GROUP,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.interval.ms": plan.REBALANCE_TIMEOUT_MS,
        }
    )

    def assigned(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
        ledger.note("assigned", partitions=sorted(one.partition for one in partitions))

    consumer.subscribe([plan.TOPIC], on_assign=assigned)
    try:
        consume(consumer, ledger, stop)
    finally:
        consumer.close()
    ledger.note("left")


def main() -> None:
    """Be one member."""
    with named_member(__doc__) as member:
        run(*member)


if __name__ == "__main__":
    main()

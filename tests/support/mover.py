"""A program that moves records from topic "in" to topic "out" in transactions, with librdkafka.

    python -m tests.support.mover BOOTSTRAP COUNT

Says how many are moved in all after each transaction, and ends when it is COUNT. It may be killed at any time
and started again: every record is moved once.
"""

from __future__ import annotations

import sys
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

GROUP = "movers"
WAIT_S = 30.0
QUICK: dict[str, Any] = {
    "retry.backoff.ms": 20,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "log_level": 0,
}


def consumer(bootstrap: str, group: str, **more: Any) -> Consumer:
    """Reads committed records, and stores no offsets by itself."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            **QUICK,
            **more,
        }
    )


def producer(bootstrap: str, name: str = "mover") -> Producer:
    """Writes in transactions."""
    return Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, **QUICK})


def move(bootstrap: str, count: int) -> None:
    """See the module."""
    sender = producer(bootstrap)
    # First: what an earlier mover left open is aborted, so that its offsets are decided.
    sender.init_transactions(WAIT_S)
    reader = consumer(bootstrap, GROUP)
    parts = reader.committed([TopicPartition("in", 0), TopicPartition("in", 1)], WAIT_S)
    for part in parts:
        part.offset = max(part.offset, 0)
    reader.assign(parts)
    moved = sum(part.offset for part in parts)
    while moved < count:
        messages = [message for message in reader.consume(7, 0.1) if message.error() is None]
        if not messages:
            continue
        sender.begin_transaction()
        for message in messages:
            sender.produce("out", message.value(), partition=(message.offset() or 0) % 2)
        sender.send_offsets_to_transaction(reader.position(parts), reader.consumer_group_metadata(), WAIT_S)
        sender.commit_transaction(WAIT_S)
        moved += len(messages)
        print(moved, flush=True)
    reader.close()


if __name__ == "__main__":
    move(sys.argv[1], int(sys.argv[2]))

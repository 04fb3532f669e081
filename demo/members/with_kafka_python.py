"""A member of the shared group that uses kafka-python. ``python -m demo.members.with_kafka_python``."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from demo import plan
from demo.ledger import Ledger, named_member


class Noted(ConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
    """Writes down which partitions this member was given."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def on_partitions_revoked(self, revoked: Sequence[TopicPartition]) -> None:
        """Nothing to do: all that was processed has been offered for commit."""

    def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        """Write down the partitions."""
        self._ledger.note("assigned", partitions=sorted(tp.partition for tp in assigned))


def process(batches: Mapping[TopicPartition, Sequence[Any]]) -> dict[int, list[int]]:
    """The work: read each departure; returns the offsets that were processed, by partition."""
    for records in batches.values():
        for record in records:
            json.loads(record.value)
    return {tp.partition: [record.offset for record in records] for tp, records in batches.items()}


def consume(consumer: KafkaConsumer, ledger: Ledger, stop: threading.Event) -> None:
    """Take, process, write down, commit: in this order, until `stop`."""
    while not stop.is_set():
        batches = consumer.poll(timeout_ms=250, max_records=plan.POLL_RECORDS)
        if not batches:
            continue
        ledger.processed(process(batches))
        ends = {tp: records[-1].offset + 1 for tp, records in batches.items()}
        positions = {str(tp.partition): end for tp, end in ends.items()}
        try:
            consumer.commit({tp: OffsetAndMetadata(end, "", -1) for tp, end in ends.items()})
        except KafkaError as error:
            # The group moved on in between: the partition's current owner reads these records again.
            ledger.note("refused", offsets=positions, error=type(error).__name__)
        else:
            ledger.note("committed", offsets=positions)


def run(bootstrap: str, name: str, ledger: Ledger) -> None:
    """Be a member until SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=name,
        group_id=plan.SHARED_GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=plan.SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=plan.HEARTBEAT_INTERVAL_MS,
        max_poll_interval_ms=plan.REBALANCE_TIMEOUT_MS,
    )
    consumer.subscribe([plan.TOPIC], listener=Noted(ledger))
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

"""A member of the shared group that uses aiokafka. ``python -m demo.members.with_aiokafka``."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from demo import plan
from demo.ledger import Ledger, named_member


class Noted(ConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
    """Writes down which partitions this member was given."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def on_partitions_revoked(self, revoked: Sequence[TopicPartition]) -> None:
        """Nothing to do: all that was processed has been offered for commit."""

    async def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        """Write down the partitions."""
        self._ledger.note("assigned", partitions=sorted(tp.partition for tp in assigned))


def process(batches: Mapping[TopicPartition, Sequence[Any]]) -> dict[int, list[int]]:
    """The work: read each departure; returns the offsets that were processed, by partition."""
    for records in batches.values():
        for record in records:
            json.loads(record.value)
    return {tp.partition: [record.offset for record in records] for tp, records in batches.items()}


async def consume(consumer: AIOKafkaConsumer, ledger: Ledger, stop: asyncio.Event) -> None:
    """Take, process, write down, commit: in this order, until `stop`."""
    while not stop.is_set():
        batches = await consumer.getmany(timeout_ms=250, max_records=plan.POLL_RECORDS)
        if not batches:
            continue
        ledger.processed(process(batches))
        ends = {tp: records[-1].offset + 1 for tp, records in batches.items()}
        positions = {str(tp.partition): end for tp, end in ends.items()}
        try:
            await consumer.commit(ends)
        except KafkaError as error:
            # The group moved on in between: the partition's current owner reads these records again.
            ledger.note("refused", offsets=positions, error=type(error).__name__)
        else:
            ledger.note("committed", offsets=positions)


async def run(bootstrap: str, name: str, ledger: Ledger) -> None:
    """Be a member until SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=name,
        group_id=plan.SHARED_GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=plan.SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=plan.HEARTBEAT_INTERVAL_MS,
        rebalance_timeout_ms=plan.REBALANCE_TIMEOUT_MS,
    )
    consumer.subscribe([plan.TOPIC], listener=Noted(ledger))
    await consumer.start()
    try:
        await consume(consumer, ledger, stop)
    finally:
        await consumer.stop()
    ledger.note("left")


def main() -> None:
    """Be one member."""
    with named_member(__doc__) as member:
        asyncio.run(run(*member))


if __name__ == "__main__":
    main()

"""An aiokafka consumer that commits by hand. ``python -m tests.chaos.clients.aio``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError, KafkaError

from tests.chaos.clients.common import (
    ASK_S,
    POLL_BOUND_S,
    TOPIC,
    Notes,
    Place,
    arguments,
    noted_commit,
    stopped_by_signal,
)
from tests.chaos.history import History

REFUSED = CommitFailedError, IllegalStateError  # the latter: a partition is another member's now


class _Noted(ConsumerRebalanceListener):  # type: ignore[misc]  # its library is untyped
    def __init__(self, consumer: Any, notes: Notes) -> None:
        self._consumer, self._notes = consumer, notes

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Write it down."""
        self._notes.given_up(one.partition for one in revoked)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Write it down."""
        coordinator = self._consumer._coordinator
        partitions = [one.partition for one in assigned]
        self._notes.assigned(coordinator.generation, coordinator.member_id, partitions)


async def run(place: Place, history: History) -> None:
    """Consume until stopped."""
    [group] = place.groups
    stop, notes = stopped_by_signal(), Notes(history, group)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=place.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,  # the history has to have all commits
        group_instance_id=place.identity if place.static else None,
    )
    consumer.subscribe([TOPIC], listener=_Noted(consumer, notes))
    await consumer.start()
    processed: dict[TopicPartition, int] = {}
    due_s = 0.0
    try:
        while not stop.is_set():
            call = history.begin("poll", POLL_BOUND_S)
            batches = await consumer.getmany(timeout_ms=int(min(ASK_S, place.every_s) * 1000))
            call.ok()
            for partition, records in batches.items():
                notes.processed(partition.partition, [record.offset for record in records])
                processed[partition] = records[-1].offset + 1
            if processed and time.monotonic() >= due_s:
                committing = consumer.commit(dict(processed))
                if await noted_commit(history, group, processed, committing, REFUSED, KafkaError):
                    processed.clear()
                due_s = time.monotonic() + place.every_s
    finally:
        await consumer.stop()


def main() -> None:
    """Be one member."""
    place = arguments(__doc__)
    with History(place.history) as history:
        asyncio.run(run(place, history))


if __name__ == "__main__":
    main()

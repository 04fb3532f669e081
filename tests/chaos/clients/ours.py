"""A `GroupConsumer` that commits by hand. ``python -m tests.chaos.clients.ours``."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ringleader import GroupConsumer
from ringleader.clients.errors import ClientError, CommitFailedError
from ringleader.protocol.embedded import Assignment
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


async def run(place: Place, history: History) -> None:
    """Consume until told to stop."""
    [group] = place.groups
    stop, notes = stopped_by_signal(), Notes(history, group)
    noted = None

    def note() -> None:
        nonlocal noted
        held = consumer.member.assigned
        if held is not None and held != noted:
            noted = held
            given = Assignment.decode(held.assignment).partitions.get(TOPIC, [])
            notes.assigned(held.generation, held.member_id, given)

    addresses: dict[str, Any] = {"bootstrap": place.bootstrap}
    if place.straight:
        addresses = {"bootstrap": place.brokers, "coordinator_bootstrap": place.bootstrap}
    consumer = GroupConsumer(
        group_id=group, topics=[TOPIC], auto_offset_reset="earliest", auto_commit=False, **addresses
    )
    async with consumer:
        processed: dict[tuple[str, int], int] = {}
        due_s = 0.0
        while not stop.is_set():
            asked = history.asks("poll", POLL_BOUND_S)
            batches = await consumer.getmany(timeout_s=min(ASK_S, place.every_s))
            asked.ok()
            note()
            for batch in batches:
                notes.processed(batch.partition, batch.offsets)
                processed[batch.topic_partition] = batch.next_offset
            if processed and time.monotonic() >= due_s:
                committing = consumer.commit(dict(processed))
                if await noted_commit(
                    history, group, processed, committing, (CommitFailedError,), ClientError
                ):
                    processed.clear()
                due_s = time.monotonic() + place.every_s


def main() -> None:
    """Be one member."""
    place = arguments(__doc__)
    with History(place.history) as history:
        asyncio.run(run(place, history))


if __name__ == "__main__":
    main()

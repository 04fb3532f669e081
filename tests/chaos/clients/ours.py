"""A `GroupConsumer` that commits by hand. ``python -m tests.chaos.clients.ours``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from ringleader import GroupConsumer
from ringleader.clients.errors import CallbackFailedError, ClientError, CommitFailedError
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
from tests.chaos.clients.misbehaviour import Misbehaviour
from tests.chaos.history import History

Partitions = Iterable[tuple[str, int]]
ASSIGNORS = {"eager": ("range",), "cooperative": ("cooperative-sticky",)}


async def gather(consumer: GroupConsumer, batch_s: float) -> list[Any]:
    """All records that come in within `seconds`."""
    batches: list[Any] = []
    until_s = time.monotonic() + batch_s
    while (left_s := until_s - time.monotonic()) > 0:
        batches += await consumer.getmany(timeout_s=left_s)
    return batches


async def run(place: Place, history: History) -> None:
    """Consume until stopped."""
    [group] = place.groups
    stop, notes = stopped_by_signal(), Notes(history, group)
    noted = None
    faulty = Misbehaviour(place.misbehaves, f"{place.seed} {place.name}", history)

    async def on_assigned(_partitions: Partitions) -> None:
        await faulty.in_callback("on_assigned")

    async def on_revoked(partitions: Partitions) -> None:
        notes.given_up(partition for _, partition in partitions)
        await faulty.in_callback("on_revoked")

    async def on_lost(partitions: Partitions) -> None:
        notes.given_up((partition for _, partition in partitions), lost=True)
        await faulty.in_callback("on_lost")

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
    if place.protocol == "consumer":
        addresses["group_protocol"] = "consumer"
    elif place.protocol:
        addresses["assignors"] = ASSIGNORS[place.protocol]
    consumer = GroupConsumer(
        group_id=group,
        topics=[TOPIC],
        auto_offset_reset="earliest",
        auto_commit=False,
        group_instance_id=place.identity if place.static else None,
        on_assigned=on_assigned,
        on_revoked=on_revoked,
        on_lost=on_lost,
        **addresses,
    )
    async with consumer:
        processed: dict[tuple[str, int], int] = {}
        due_s = 0.0
        while not stop.is_set():
            faulty.between_polls(consumer)
            call = history.begin("poll", POLL_BOUND_S)
            try:
                batches = await faulty.bounded(consumer.getmany(timeout_s=min(ASK_S, place.every_s)))
            except (CallbackFailedError, TimeoutError) as error:
                call.failed(f"{type(error).__name__}: {error}")
                continue
            call.ok()
            note()
            if place.batch_s:
                batches += await gather(consumer, place.batch_s)
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

"""Offsets in transactions that no marker will end.

They were written too late: their transaction was over before, and the owner died before it dropped them. The
client got no answer that they count. If it comes back, its next commit settles it, or its abort (see
`group_transactions`); else a client that asks for stable offsets would wait for ever.

Nothing is dropped on doubt: a transaction is over when all coordinators of the cluster answer, twice with
some time between, that none of this producer is open with the group's partition in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ringleader.clients.errors import ClientError
from ringleader.coordinator.group_transactions.markers import Markers, end_transaction
from ringleader.coordinator.logs import Log
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.relay.transactions import Coordinated
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.protocol.errors import ErrorCode, KafkaError

INTERVAL_S = 10.0
"""Interval of the looks; offsets are dropped at the second one."""

Place = tuple[int, int]
"""Partition of the groups' topic, producer id."""


class Turns(Protocol):
    """The handlers of commits in transactions."""

    def turn(self, place: Place) -> AbstractAsyncContextManager[None]:
        """No commit of that producer is under way there."""

    def settled(self, partition: int) -> AbstractAsyncContextManager[Markers]:
        """All that has ended so far has ended here. Raises ClientError, KafkaError."""


class Unended:
    """Looks for them."""

    def __init__(
        self, runtime: GroupRuntime, turns: Turns, topic: str, coordinated: Coordinated, log: Log
    ) -> None:
        self._runtime = runtime
        self._turns = turns
        self._topic = topic
        self._coordinated = coordinated
        self._log = log
        self._over: set[Place] = set()
        """Places whose transaction was over at the last look."""

    async def watch(self, interval_s: float = INTERVAL_S) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(interval_s)
            await self.look()

    async def look(self) -> None:
        """Once. A broker that does not answer is a doubt."""
        again, self._over = self._over, set()
        try:
            here = self._open_here()
            over = here - await self._open_there(here) if here else here
            for place in over & again:
                await self._drop(place)
            self._over = over - again
        except (ClientError, KafkaError) as error:
            self._log.debug("transactions not looked for", reason=str(error))

    def _open_here(self) -> set[Place]:
        return {
            (partition, producer_id)
            for partition, shard in enumerate(self._runtime.shards)
            if shard.phase is Phase.SERVING
            for producer_id in shard.open_producers()
        }

    async def _open_there(self, places: Iterable[Place]) -> set[Place]:
        """Those of a transaction that is open, or ends just now. Raises ClientError, KafkaError."""
        found: set[Place] = set()
        for transactional_id in await self._coordinated.under_way([producer for _, producer in places]):
            try:
                state = await self._coordinated.describe(transactional_id)
            except KafkaError as error:
                if error.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING:
                    continue  # forgotten since
                raise
            own = [
                number for topic in state.topics if topic.topic == self._topic for number in topic.partitions
            ]
            found |= {(number, state.producer_id) for number in own}
        return found

    async def _drop(self, place: Place) -> None:
        """Unless its producer has come back. Raises ClientError, KafkaError."""
        partition, producer_id = place
        async with self._turns.turn(place):
            if place in await self._open_there([place]):
                return
            async with self._turns.settled(partition) as markers:
                if producer_id not in markers.shard.open_producers():
                    return
                await end_transaction(self._runtime, partition, markers.shard, producer_id, committed=False)
        self._log.warning(
            "offsets dropped",
            partition=partition,
            producer_id=producer_id,
            text="they were written when their transaction was over, and no client got an answer for them",
        )

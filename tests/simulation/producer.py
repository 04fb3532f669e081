"""A transactional producer: it commits a group's offsets in transactions and ends them, one way or the
other. A condition that the transaction coordinator checks (that the transaction is open) is checked here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ringleader.protocol.messages import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.simulation.requests import TOPICS, EndTransaction, spoiled

if TYPE_CHECKING:
    from tests.simulation.world import World


class Producer:
    """One transactional id; its transactions follow each other."""

    def __init__(self, world: World, producer_id: int) -> None:
        self.world = world
        self.producer_id = producer_id
        self.open = False
        self.on = True
        self.sent: list[TxnOffsetCommitRequest] = []

    def start(self) -> None:
        """Begin a transaction."""
        if not self.on:
            return
        rng = self.world.rng
        self.open = True
        self.sent = []
        for _ in range(rng.randint(1, 4)):
            self.world.later(rng.randint(0, 3_000), self._commit)
        self.world.later(rng.randint(500, 8_000), lambda: self._end(rng.random() < 0.6))

    def stop(self) -> None:
        """No more transactions; the last one ends."""
        self.on = False

    def _commit(self) -> None:
        if not self.open:
            return
        rng, world = self.world.rng, self.world
        topic = rng.choice(list(TOPICS))
        parts = [
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=world.checks.fresh_offset(),
                committed_metadata=rng.choice(["", "", "note", "x" * 101]),
            )
            for partition in rng.sample(range(TOPICS[topic]), rng.randint(1, 2))
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=f"x{self.producer_id}",
            group_id=rng.choice(("g", "h", "simple")),
            producer_id=self.producer_id,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=parts)],
        )
        version = 3
        if rng.random() < 0.5 and request.group_id != "simple":  # KIP-447: says whose work it is
            member = rng.choice([one for one in world.workers if one.instance_id is None] or world.workers)
            request.group_id, request.member_id = member.group, member.member_id
            request.group_instance_id = member.instance_id
            request.generation_id_or_member_epoch = member.generation
        else:
            version = rng.randint(0, 3)
        if rng.random() < 0.2:
            request = spoiled(world, request, version)
        self.sent.append(request)
        world.send(self, request, version, None, _nothing)

    def admits(self, request: Any) -> bool:
        """Whether the transaction coordinator lets this commit through: its transaction is open."""
        return self.open and any(one is request for one in self.sent)

    def _end(self, committed: bool) -> None:
        self.open = False
        world = self.world
        world.checks.offsets.transaction_ends(self.producer_id, committed)
        left = {one.number for one in world.partitions}

        def ask(number: int) -> None:
            world.ask(self.world, EndTransaction(number, self.producer_id, committed), partial(ended, number))

        def ended(number: int, code: int | None) -> None:
            if code is None or code:  # until it is done, other shards and processes included
                world.later(300, partial(ask, number))
                return
            left.discard(number)
            if not left:
                world.checks.offsets.transaction_ended(self.producer_id)
                world.later(world.rng.randint(0, 4_000), self.start)

        for number in tuple(left):
            ask(number)


def _nothing(response: Any) -> None:
    """A producer that was refused aborts; here it may also commit what was taken."""

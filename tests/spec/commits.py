"""Members of a recorded group fetch offsets and commit, one line of the trace for each step.

The world's own members (`tests.simulation.consumer`) do neither: their heartbeats are all that its
invariants are about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchResponseGroup,
)
from tests.simulation.consumer.classic import ClassicMember
from tests.simulation.consumer.world import AnyMember, Ticket

if TYPE_CHECKING:
    from tests.spec.recorder import RecordedWorld

OFFSETS_VERSION = 10
REQUESTS_LOST, ANSWERS_LOST = 0.05, 0.1
"""Of the commits."""


@dataclass(slots=True, eq=False)
class Reader:
    """A member's knowledge of the offsets of its partitions."""

    owned: set[str] = field(default_factory=set)
    positions: dict[str, int] = field(default_factory=dict)
    awaited: dict[tuple[str, int], str] = field(default_factory=dict)
    """Those of which the offsets are on their way, by topic and number."""
    commits: bool = False
    """Whether a commit is on its way."""

    def owns(self, places: set[str]) -> None:
        """The member has these now: it knows nothing of those that it did not have before."""
        kept = places & self.owned
        self.owned = set(places)
        self.awaited = {name: one for name, one in self.awaited.items() if one in kept}
        self.positions = {one: offset for one, offset in self.positions.items() if one in kept}


class Offsets:
    """The offsets of the members of one world."""

    def __init__(self, world: RecordedWorld, line: Callable[..., None]) -> None:
        self._world, self._line = world, line
        self._readers: dict[AnyMember, Reader] = {}
        self.committing: AnyMember | None = None
        """The member whose commit is being handled."""

    def owns(self, member: AnyMember, places: set[str]) -> None:
        """See `Reader`."""
        self._readers.setdefault(member, Reader()).owns(places)

    def crashed(self, member: AnyMember) -> None:
        """Nobody hears what it is answered."""
        self._readers.pop(member, None)

    def died(self) -> None:
        """The shard is loaded anew: no answer comes."""
        for reader in self._readers.values():
            reader.awaited, reader.commits = {}, False

    def step(self, able: list[AnyMember]) -> None:
        """One of the members fetches what it has no offset of, or commits one record more."""
        rng = self._world.rng
        if not able:
            return
        member = rng.choice(able)
        reader = self._readers.setdefault(member, Reader())
        places = {
            place: found
            for place in sorted(reader.owned)
            if (found := self._world.topic_and_number(place)) is not None
        }
        blind = {place: found for place, found in places.items() if place not in reader.positions}
        known = [place for place in places if place in reader.positions]
        if blind and not reader.awaited:
            self._fetch(member, reader, blind)
        elif known and not reader.commits:
            place = rng.choice(known)
            self._commit(member, reader, place, *places[place])

    def _fetch(self, member: AnyMember, reader: Reader, places: dict[str, tuple[Topic, int]]) -> None:
        world = self._world
        reader.awaited = {(topic.name, number): place for place, (topic, number) in places.items()}
        ids = {topic.name: topic.topic_id for topic, _ in places.values()}
        is_classic = isinstance(member, ClassicMember)  # as Java's: its fetches name no member
        answer = world.shard.fetch_offsets(
            world.group_id,
            [(name, [number]) for name, number in reader.awaited],
            False,
            self._ticket(member, None),
            None if is_classic else member.member_id,
            -1 if is_classic else member.epoch,
            ids,
        )
        if answer is not None:
            self.answered(member, answer)

    def _commit(self, member: AnyMember, reader: Reader, place: str, topic: Topic, number: int) -> None:
        world = self._world
        reader.positions[place] += 1
        to, reader.commits = reader.positions[place], True
        self._line("commit", member, p=place, ask={"epoch": member.epoch, "to": to})
        if world.rng.random() < REQUESTS_LOST:
            self._acknowledged(member, reader, "losecommit")
            return
        row = OffsetCommitRequestPartition(number, to)
        request = OffsetCommitRequest(world.group_id, member.epoch, member.member_id, member.instance_id)
        request.topics = [OffsetCommitRequestTopic(topic.name, topic.topic_id, [row])]
        self.committing = member
        answer = world.shard.handle(request, self._ticket(member, request), world.now_ms)
        world.drain()
        if self.committing is not None:
            self.handled(ok=False, to=world.committed().get(place, 0))
        if answer is not None:
            self.answered(member, answer)

    def handled(self, *, ok: bool, to: int) -> None:
        """The coordinator took the commit, or refused it. `to`: the offset of the partition by now."""
        self._line("committed", self.committing, ok=ok, to=to)
        self.committing = None

    def answered(self, member: AnyMember, response: OffsetCommitResponse | OffsetFetchResponseGroup) -> None:
        """An answer has left."""
        reader = self._readers.get(member)
        if reader is None:
            return
        if isinstance(response, OffsetCommitResponse):
            is_lost = self._world.rng.random() < ANSWERS_LOST
            self._acknowledged(member, reader, "losecommit" if is_lost else "acknowledged")
            return
        for topic in response.topics if not member.departed else ():
            for one in topic.partitions:
                place = reader.awaited.pop((topic.name, one.partition_index), None)
                if place is not None:
                    shows = max(0, one.committed_offset)
                    self._line("fetch", member, p=place, shows=shows)
                    reader.positions[place] = shows
        reader.awaited = {}  # it asks again for what is missing

    def _acknowledged(self, member: AnyMember, reader: Reader, kind: str) -> None:
        reader.commits = False
        self._line(kind, member)

    def _ticket(self, member: AnyMember, request: Any) -> Ticket:
        ticket = Ticket(member, request, {}, self._world.now_ms)
        ticket.api_version = OFFSETS_VERSION
        return ticket

"""A shard with a group of the consumer protocol under random schedules.

Members join, leave, go silent, come back under another id, are slow to revoke, subscribe to other topics;
requests and answers are lost; topics are created, grow, are deleted and made again; the shard dies with what
was not durable, and is loaded from a log whose old records may have been compacted away.

The invariants, after every step:

C1   A member that is in the group believes to own only what the log says it has or has to give up.
C2   No partition has two holders, and the index of holders is what the members' records say.
C3   Epochs never go back; no member is ahead of the target, no target is ahead of the group.
C4   A member that is stable at the target's epoch has its target, as far as it subscribes to it.
C5   The log alone, compacted at any point, gives the same group.
C6   A request is answered when its records are durable.
C7   A heartbeat that changes nothing writes nothing.
C8   Once nothing goes wrong, all members are stable and own every partition of their topics once.
"""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, ConsumerGroupState
from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, LEFT_EPOCH, MemberState
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from tests.simulation.consumer.member import ModelMember
from tests.simulation.facts import ViolationError

NAMES = ("a", "b", "c")
FAULTY_MS = 400_000
SETTLE_MS = 300_000


class Ticket:
    """A request on its way."""

    api_version = 1
    client_id = "client"
    client_host = "/127.0.0.1"
    principal = "User:ANONYMOUS"
    connection: object = None

    def __init__(self, member: ModelMember, is_leave: bool) -> None:
        self.member, self.is_leave = member, is_leave
        self.serial = member.serial


class World:
    """One run. `simulate` drives it."""

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.seed, self.rng, self.tell = seed, random.Random(seed), tell
        self.group_id = "g"
        self.now_ms = 1_000_000
        self.steps = 0
        self.trace = hashlib.sha256()
        self.topics = Topics()
        self.settings = GroupSettings(
            group_consumer_session_timeout_ms=45_000,
            group_consumer_assignment_interval_ms=self.rng.choice([0, 0, 1_000, 15_000]),
        )
        self.log: list[tuple[bytes, bytes | None]] = []
        """All that is durable."""
        self._in_flight: deque[Any] = deque()
        self.calm = False
        self._ids = 0
        self.members: list[ModelMember] = []
        self.waiting: set[Ticket] = set()
        self._epochs = (0, 0)
        self.shard = self._load()
        self.counts: dict[str, int] = {}
        for name in NAMES[: self.rng.randint(1, 3)]:
            self._make(name)

    # ---- what happens ----

    def run(self) -> None:
        """Faults for a while, then none, when everything has to settle."""
        until_ms = self.now_ms + FAULTY_MS
        while self.now_ms < until_ms:
            self._step()
        self.calm = True
        until_ms = self.now_ms + SETTLE_MS
        while self.now_ms < until_ms and not self._has_settled():
            self._step()
        self.must(self._has_settled(), "C8", f"it did not settle: {self._group()}")
        self._beat_without_news()

    def _beat_without_news(self) -> None:
        present = [one for one in self.members if not one.gone]
        for member in present:
            self._ask(member, member.request())
        self._advance()
        before = len(self.log)
        for member in present:
            self._ask(member, member.request())
            self.must(not self.shard.dirty, "C7", f"the shard has something to write or to answer: {member}")
        self.must(len(self.log) == before, "C7", "a heartbeat without news was written")

    def _step(self) -> None:
        self.steps += 1
        self.now_ms += self.rng.choice([0, 1, 20, 200, 2_000])
        self._advance()
        if not self.calm and self.rng.random() < 0.12:
            self.rng.choice(
                [self._join, self._join, self._leave, self._crash, self._topic, self._die, self._subscribe]
            )()
        else:
            self._beat()
        self._advance()
        self._check()

    def _advance(self) -> None:
        due_ms = self.shard.next_deadline()
        if due_ms is not None and due_ms <= self.now_ms:
            self.shard.tick(self.now_ms)
        self._drain()
        while self._in_flight and (self.calm or self.rng.random() < 0.7):
            append = self._in_flight.popleft()
            self.log += append.records
            self.shard.durable(append.position, self.now_ms)
            self._drain()

    def _drain(self) -> None:
        while self.shard.dirty:
            box = self.shard.drain()
            self._in_flight += box.appends
            for append in box.appends:
                for key, value in append.records:
                    self.trace.update(key + (value or b""))
            for answer in box.answers:
                self._answered(answer.ticket, answer.response)

    def _answered(self, ticket: Ticket, response: Any) -> None:
        self.waiting.discard(ticket)
        member = ticket.member
        if ticket.serial != member.serial or ticket.is_leave:
            return
        member.waits = False
        self.say(f"{member} <- {response}")
        self._count(f"code {response.error_code}")
        if not self.calm and self.rng.random() < 0.1:
            member.failed()
            self._count("answers lost")
        else:
            member.answered(response)

    def _beat(self) -> None:
        idle = [one for one in self.members if not one.waits and not one.gone]
        if not idle:
            return
        member = self.rng.choice(idle)
        if member.to_revoke and (self.calm or self.rng.random() < 0.6):
            member.revoke()
        request = member.request()
        if not self.calm and self.rng.random() < 0.05:
            member.failed()
            self._count("requests lost")
            return
        self._ask(member, request)

    def _ask(self, member: ModelMember, request: Any) -> None:
        ticket = Ticket(member, request.member_epoch < 0)
        self.say(f"{member} -> {request}")
        self.waiting.add(ticket)
        member.waits = not ticket.is_leave
        response = self.shard.handle(request, ticket, self.now_ms)
        if response is not None:
            self._answered(ticket, response)

    def _join(self) -> None:
        if len([one for one in self.members if not one.gone]) >= 5:
            return
        self._ids += 1
        instance_id = f"i{self.rng.randint(0, 2)}" if self.rng.random() < 0.4 else None
        if instance_id and any(one.instance_id == instance_id and not one.gone for one in self.members):
            return
        self.members.append(ModelMember(self, self._ids, instance_id, self._some_topics()))

    def _some_topics(self) -> frozenset[str]:
        return frozenset(self.rng.sample(NAMES, self.rng.randint(0, 3)))

    def _leave(self) -> None:
        present = [one for one in self.members if not one.gone and one.epoch > 0 and not one.waits]
        if present:
            member = self.rng.choice(present)
            away = member.instance_id is not None and self.rng.random() < 0.7
            self._ask(member, member.leave(AWAY_EPOCH if away else LEFT_EPOCH))

    def _crash(self) -> None:
        if present := [one for one in self.members if not one.gone]:
            member = self.rng.choice(present)
            member.gone, member.owned = True, frozenset()
            member.serial += 1
            self._count("crashes")

    def _subscribe(self) -> None:
        if present := [one for one in self.members if not one.gone]:
            self.rng.choice(present).subscribe(self._some_topics())

    def _topic(self) -> None:
        name = self.rng.choice(NAMES)
        known = self.topics.named(name)
        if known is None or self.rng.random() < 0.2:
            self._make(name)
        elif self.rng.random() < 0.3:
            self.topics.remove(name)
        elif known.partitions < 9:
            self.topics.put(Topic(name, known.topic_id, known.partitions + self.rng.randint(1, 3)))

    def _make(self, name: str) -> None:
        self.topics.put(Topic(name, self.rng.randbytes(16), self.rng.randint(1, 6)))

    # ---- the shard's life ----

    def _load(self) -> Shard:
        count = 0

        def ids(prefix: str) -> str:
            nonlocal count
            count += 1
            return f"{prefix}-{self.now_ms}-{count}"

        shard = Shard(0, self.settings, ids, topics=self.topics)
        shard.replay(self._compacted())
        shard.loaded(self.now_ms, self.now_ms)
        return shard

    def _compacted(self) -> list[tuple[bytes, bytes | None]]:
        """The log as a cleaner leaves it that came up to one record, and has seen those up to a later one."""
        known = self.rng.randint(0, len(self.log))
        done = self.rng.randint(0, known)
        last = {key: place for place, (key, _) in enumerate(self.log[:known])}
        return [row for place, row in enumerate(self.log) if place >= done or last[row[0]] == place]

    def _die(self) -> None:
        self._count("deaths")
        landed = self.rng.randint(0, len(self._in_flight))
        for _ in range(landed):
            self.log += self._in_flight.popleft().records
        self._in_flight.clear()
        for ticket in self.waiting:
            if ticket.serial == ticket.member.serial and not ticket.is_leave:
                ticket.member.waits = False
                ticket.member.failed()
        self.waiting.clear()
        self.shard = self._load()
        self._epochs = (0, 0)

    # ---- what must hold ----

    def _group(self) -> ConsumerGroup | None:
        group = self.shard._groups.get(self.group_id)
        return None if group is None else group.consumer

    def _check(self) -> None:
        self.must(bool(self._in_flight) or not self.waiting, "C6", f"{len(self.waiting)} requests wait")
        group = self._group()
        if group is None:
            return
        self._check_index(group)
        epochs = group.epoch, group.assignment_epoch
        self.must(epochs >= self._epochs, "C3", f"epochs {self._epochs} become {epochs}")
        self._epochs = epochs
        self.must(group.assignment_epoch <= group.epoch, "C3", f"target {epochs[1]}, group {epochs[0]}")
        for member in group.members.values():
            current = member.current
            self.must(current.epoch <= group.assignment_epoch, "C3", f"{member.member_id}: {current}")
            # A topic that a member left and subscribed to again comes with the next target.
            if current.state is MemberState.STABLE and current.epoch == group.epoch:
                subscribed = self.topics.ids(group.topic_names(member))
                wanted = {one: some for one, some in member.target.items() if one in subscribed}
                had = {one: frozenset(some) for one, some in current.assigned.items() if one in subscribed}
                self.must(had == wanted, "C4", f"{member.member_id} has {had} of {wanted}")
        for one in self.members:
            known = group.members.get(one.member_id)
            if one.gone or known is None or one.epoch <= 0 or known.current.epoch < 0:
                continue
            if known.current.epoch < one.epoch:
                continue  # it was made again after a death that lost its epoch, and will be fenced
            for topic_id, partition in one.owned:
                holds = known.current.assignment_epoch(topic_id, partition) is not None
                self.must(holds, "C1", f"{one} owns {topic_id.hex()}-{partition}, not of {known.current}")
        if self.steps % 16 == 0:
            self._check_replay(group)

    def _check_index(self, group: ConsumerGroup) -> None:
        incremental = {topic: dict(held) for topic, held in group._holders.items()}
        try:
            group.index()
        except AssertionError as error:
            self.must(False, "C2", str(error))
        self.must(incremental == group._holders, "C2", "the index is not what the members' records say")

    def _check_replay(self, group: ConsumerGroup) -> None:
        rows = [*self._compacted(), *(row for one in self._in_flight for row in one.records)]
        fresh = ConsumerGroup(self.group_id)
        for key, value in rows:
            named = records.decode_key(key)
            if named is not None:
                records.apply(fresh, named[0], named[2], value)
        same = sorted(records.all_records(fresh)) == sorted(records.all_records(group))
        self.must(same, "C5", "the log gives another group")

    def _has_settled(self) -> bool:
        group = self._group()
        present = [one for one in self.members if not one.gone]
        if group is None or self._in_flight or any(one.waits for one in present):
            return group is None and not present
        if group.state not in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
            return False
        if set(group.members) != {one.member_id for one in present}:
            return False
        owned = [place for one in present for place in one.owned]
        wanted = {
            (topic.topic_id, partition)
            for name in group.subscribed_topics()
            if (topic := self.topics.named(name)) is not None
            for partition in range(topic.partitions)
        }
        checked = not present or group.checked_version == self.topics.version
        return sorted(owned) == sorted(wanted) and checked

    def must(self, condition: bool, name: str, text: str) -> None:
        """Raises `ViolationError` unless it holds."""
        if not condition:
            again = f"python -m tests.simulation.consumer --seed {self.seed}"
            raise ViolationError(name, text, self.seed, f"{self.now_ms} ms, step {self.steps}", again)

    def say(self, text: str) -> None:
        """For the story, if it is to be printed."""
        if self.tell is not None:
            self.tell(f"{self.now_ms} #{self.steps} {text}")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def simulate(seed: int, tell: Callable[[str], None] | None = None) -> World:
    """One run. Raises `ViolationError`."""
    world = World(seed, tell)
    world.run()
    return world

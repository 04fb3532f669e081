"""A shard with a group whose members speak the consumer protocol, the classic one, or either, under random
schedules.

Members join, leave, go silent, come back under another id or in the other protocol, are slow to revoke,
subscribe to other topics, by name or by expressions, compute the target and lie, are late or die; the group
is upgraded and downgraded. Requests and answers are lost; topics are created, grow, are deleted and made
again; the shard dies with what was not durable, and is loaded from a log whose old records may have been
compacted away.

The invariants, after every step:

C1   A member that is in the group believes to own only what the log says it has or has to give up.
C2   No partition has two holders, and the index of holders is what the members' records say.
C3   Epochs never go back; no member is ahead of the target, no target is ahead of the group.
C4   A member that is stable at the target's epoch has its target, as far as it subscribes to it.
C5   The log alone, compacted at any point, gives the same group.
C6   A request is answered when its records are durable, and after the time of a join and a sync phase.
C7   A heartbeat that changes nothing writes nothing.
C9   While the group is a classic one, no partition is of two members of its generation.
C10  The memory that is counted is that of the members that are there.
C11  Where a member computes the target, its time ends; a target that is up to date gives each partition
     of the group's topics to one subscriber, whoever computed it.
C12  A heartbeat that the hot path takes would be answered the same by the general one, which would write
     nothing.
C13  What a member reads by an expression matches it, and its principal could see it: see `expressions`.
C8   Once nothing goes wrong, all members are stable and own every partition of their topics once.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from ringleader.coordinator.consumer_groups import memory, records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, ConsumerGroupState
from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, LEFT_EPOCH, MemberState
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.states import NOT_YET, GroupState
from ringleader.coordinator.groups.steady import Last, last_of
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from tests.simulation.consumer.classic import REBALANCE_TIMEOUT_MS, ClassicMember
from tests.simulation.consumer.expressions import Expressions
from tests.simulation.consumer.member import ModelMember
from tests.simulation.facts import ViolationError

NAMES = ("a", "b", "c")
DELEGATED = (
    *("client:cooperative-sticky", "client:cooperative-sticky", "client:weighted"),
    *("range", "rack", "weighted"),
)
FAULTY_MS = 400_000
SETTLE_MS = 300_000
WAIT_MS = 3 * REBALANCE_TIMEOUT_MS
"""The longest that a JoinGroup or SyncGroup waits for other members."""

AnyMember = ModelMember | ClassicMember
VERSIONS = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5}


class Ticket:
    """A request on its way."""

    client_id = "client"
    client_host = "/127.0.0.1"

    def __init__(self, member: AnyMember, request: Any, ids: dict[str, bytes], now_ms: int) -> None:
        self.member = member
        self.principal = member.principal
        self.is_leave = isinstance(request, LeaveGroupRequest) or getattr(request, "member_epoch", 0) < 0
        self.waits_for_others = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        self.api_version = VERSIONS.get(type(request), 1)
        self.ids, self.begun_ms = ids, now_ms
        self.serial = member.serial
        self.connection = object()


class World:
    """One run. `simulate` drives it."""

    def __init__(self, seed: int, tell: Callable[[str], None] | None = None) -> None:
        self.seed, self.rng, self.tell = seed, random.Random(seed), tell
        self.group_id = "g"
        self.now_ms = 1_000_000
        self.steps = 0
        self.faulty_ms = FAULTY_MS
        self.trace = hashlib.sha256()
        self.topics = Topics()
        self.settings = GroupSettings(
            group_consumer_session_timeout_ms=45_000,
            group_consumer_assignment_interval_ms=self.rng.choice([0, 0, 1_000, 15_000]),
            group_consumer_assignors=("uniform", "range", "rack", "weighted"),
            assigned_at_once=self.rng.choice([1, 20, 20_000]),
            group_consumer_migration_policy=self.rng.choice(
                [*["bidirectional"] * 7, "upgrade", "downgrade", "disabled"]
            ),
        )
        self.classic_share = self.rng.choice([0.0, 0.3, 0.5, 0.7])
        """Of the members that come, so many are classic ones."""
        self.cooperative = self.rng.random() < 0.6
        """Whether these keep partitions while they join again."""
        self.log: list[tuple[bytes, bytes | None]] = []
        """All that is durable."""
        self._in_flight: deque[Any] = deque()
        self.calm = False
        self._ids = 0
        self.members: list[AnyMember] = []
        self._static_topics: dict[str | None, frozenset[str]] = {}
        self._assignors = self.rng.choice([(None,), (None, *DELEGATED), DELEGATED])
        self.waiting: set[Ticket] = set()
        self._epochs = (0, 0)
        self._last: dict[str, Last] = {}
        """The server's memory of plain heartbeats, by request."""
        self.counts: dict[str, int] = {}
        self.names = NAMES
        self.expressions = Expressions(self)
        self.shard = self._load()
        for name in NAMES[: self.rng.randint(1, 3)]:
            self._make(name)

    # ---- what happens ----

    def run(self) -> None:
        """Faults for a while, then none, when everything has to settle."""
        until_ms = self.now_ms + self.faulty_ms
        while self.now_ms < until_ms:
            self._step()
        self.calm = True
        if self.settings.group_consumer_migration_policy in ("downgrade", "disabled"):
            for one in self.members:
                if isinstance(one, ModelMember):  # a classic group may keep it out for ever
                    one.departed, one.owned = True, frozenset()
                    one.serial += 1
        until_ms = self.now_ms + SETTLE_MS
        while self.now_ms < until_ms and not self._has_settled():
            self._step()
        self.must(self._has_settled(), "C8", f"it did not settle: {self._group() or self._classic_group()}")
        self._beat_without_news()

    def _beat_without_news(self) -> None:
        present = [one for one in self.members if not one.departed]
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
                [
                    *(self._join, self._join, self._leave, self._crash, self._topic, self._die),
                    *(self._subscribe, self._switch, self._give_up),
                ]
            )()
        else:
            self._beat()
        self.expressions.step()
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
            self.note("flushed")
            self.shard.durable(append.position, self.now_ms)
            self._drain()

    def _drain(self) -> None:
        while self.shard.dirty:
            box = self.shard.drain()
            self.expressions.requested(box.events)
            self._in_flight += box.appends
            for append in box.appends:
                self.note("wrote", append.records)
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
        if response is None:
            self._failed(member)
            return
        if isinstance(response, ConsumerGroupHeartbeatResponse) and response.leader_task is not None:
            self.count("tasks")
        self.count(f"code {response.error_code}")
        if not self.calm and self.rng.random() < 0.1:
            self._failed(member)
            self.count("answers lost")
        else:
            if isinstance(member, ClassicMember):
                member.answered(response, ticket.ids)
            else:
                member.answered(response)
            self.note("heard", member, response)

    def _beat(self) -> None:
        idle = self._idle()
        if not idle:
            return
        member = self.rng.choice(idle)
        if isinstance(member, ModelMember) and member.to_revoke and (self.calm or self.rng.random() < 0.6):
            member.revoke()
        request = member.request()
        if not self.calm and self.rng.random() < 0.05:
            self.note("sent", member, request)
            self._failed(member)
            self.count("requests lost")
            return
        self._ask(member, request)

    def _idle(self) -> list[AnyMember]:
        """Members that may send their next request."""
        return [one for one in self.members if not one.waits and not one.departed]

    def _failed(self, member: AnyMember) -> None:
        member.failed()
        self.note("failed", member)

    def _ask(self, member: AnyMember, request: Any) -> None:
        ids = {name: topic.topic_id for name in NAMES if (topic := self.topics.named(name)) is not None}
        ticket = Ticket(member, request, ids, self.now_ms)
        self.say(f"{member} -> {request}")
        self.note("sent", member, request)
        group = self.shard._groups.get(self.group_id)
        if group is None or group.is_empty:
            self._epochs = (0, 0)  # it may change its protocol, and begins anew
        if isinstance(request, ConsumerGroupHeartbeatRequest) and request.computed_target is not None:
            lies = isinstance(member, ModelMember) and member.lies
            self.count("lies" if lies else "targets computed by members")
        self.waiting.add(ticket)
        member.waits = not ticket.is_leave
        response = None
        if isinstance(request, HeartbeatRequest):
            named = request.group_id, request.generation_id, request.member_id, request.group_instance_id
            code = self.shard.heartbeat(*named, self.now_ms)
            response = None if code == NOT_YET else HeartbeatResponse(error_code=code)
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            response = self._stay(request, ticket)
        if response is None:
            response = self.shard.handle(request, ticket, self.now_ms)
        if response is not None:
            self._remember(request, ticket, response)
            self._answered(ticket, response)

    def _stay(self, request: ConsumerGroupHeartbeatRequest, ticket: Ticket) -> Any:
        """The hot path, as the server takes it. None: it is not for this request, or the general one is to
        show that it comes to the same."""
        last = self._last.get(str(request))
        named = request.group_id, request.member_epoch, request.member_id
        if last is None or self.shard.stay(*named, last, self.now_ms) == NOT_YET:
            return None
        self.count("steady heartbeats")
        if self.rng.random() < 0.5:
            interval_ms = last.interval_ms
            return ConsumerGroupHeartbeatResponse(0, 0, None, named[2], named[1], interval_ms)
        before = self.shard._core._begun, self.shard.dirty
        response = self.shard.handle(request, ticket, self.now_ms)
        self.must(
            (self.shard._core._begun, self.shard.dirty) == before, "C12", f"{request} changes something"
        )
        same = response is not None and self._last_of(request, ticket, response) == last
        self.must(same, "C12", f"{request} is answered {response} after {last}")
        return response

    def _remember(self, request: Any, ticket: Ticket, response: Any) -> None:
        if isinstance(response, ConsumerGroupHeartbeatResponse):
            last = self._last_of(request, ticket, response)
            if last is not None:
                self._last[str(request)] = last

    def _last_of(self, request: Any, ticket: Ticket, response: Any) -> Last | None:
        return last_of(request, response, ticket.client_id, ticket.client_host)

    def _join(self) -> None:
        if len([one for one in self.members if not one.departed]) >= 5:
            return
        self._ids += 1
        instance_id = f"i{self.rng.randint(0, 2)}" if self.rng.random() < 0.4 else None
        if instance_id and any(one.instance_id == instance_id and not one.departed for one in self.members):
            return
        # A classic group does not rebalance when a static member comes back, even with other topics.
        topics = self._some_topics()
        if instance_id is not None and self.classic_share:
            topics = self._static_topics.setdefault(instance_id, topics)
        self._add(self.rng.random() < self.classic_share, instance_id, topics)

    def _add(self, classic: bool, instance_id: str | None, topics: frozenset[str]) -> None:
        if classic:
            self.members.append(ClassicMember(self, instance_id, topics))
        else:
            member = ModelMember(self, self._ids, instance_id, topics)
            member.assignor = self.rng.choice(self._assignors)
            member.leads = member.assignor is not None and self.rng.random() < 0.8
            member.lies, member.dawdles = self.rng.random() < 0.15, self.rng.random() < 0.15
            self.expressions.give(member)
            self.members.append(member)

    def _some_topics(self) -> frozenset[str]:
        return frozenset(self.rng.sample(NAMES, self.rng.randint(0, 3)))

    def _leave(self) -> None:
        present = [one for one in self.members if not one.departed and one.epoch > 0 and not one.waits]
        if present:
            self._end(self.rng.choice(present))

    def _end(self, member: AnyMember) -> None:
        away = member.instance_id is not None and self.rng.random() < 0.7
        if isinstance(member, ModelMember):
            self._ask(member, member.leave(AWAY_EPOCH if away else LEFT_EPOCH))
        elif away:
            member.departed, member.owned = True, frozenset()
        else:
            self._ask(member, member.leave())

    def _switch(self) -> None:
        """A member is rolled to the other protocol."""
        present = [one for one in self.members if not one.departed and one.epoch > 0 and not one.waits]
        if not present or not self.classic_share:
            return
        member = self.rng.choice(present)
        self._end(member)
        self._ids += 1
        self._add(isinstance(member, ModelMember), member.instance_id, member.topics)
        self.count("switched to the other protocol")

    def _give_up(self) -> None:
        """A client stops to wait for an answer, and asks again."""
        if waiting := [one for one in self.members if one.waits and not one.departed]:
            member = self.rng.choice(waiting)
            member.serial += 1
            member.waits = False
            self._failed(member)

    def _crash(self) -> None:
        if present := [one for one in self.members if not one.departed]:
            member = self.rng.choice(present)
            member.departed, member.owned = True, frozenset()
            member.serial += 1
            self.note("crashed", member)
            self.count("crashes")

    def _subscribe(self) -> None:
        present = [
            one for one in self.members if not one.departed and one.instance_id not in self._static_topics
        ]
        if present:
            member = self.rng.choice(present)
            member.subscribe(self._some_topics())
            if isinstance(member, ModelMember):
                self.expressions.give(member)

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
        self.count("deaths")
        landed = self.rng.randint(0, len(self._in_flight))
        for _ in range(landed):
            self.log += self._in_flight.popleft().records
        self._in_flight.clear()
        for ticket in self.waiting:
            if ticket.serial == ticket.member.serial and not ticket.is_leave:
                ticket.member.waits = False
                ticket.member.failed()
        self.waiting.clear()
        self.expressions.died()
        self.shard = self._load()
        self.note("loaded")
        self._epochs = (0, 0)

    # ---- what must hold ----

    def _group(self) -> ConsumerGroup | None:
        group = self.shard._groups.get(self.group_id)
        return None if group is None else group.consumer

    def _classic_group(self) -> Group | None:
        group = self.shard._groups.get(self.group_id)
        return None if group is None or group.consumer is not None else group

    def _check(self) -> None:
        if not self._in_flight:
            for ticket in self.waiting:
                waits = self.now_ms - ticket.begun_ms
                late = waits > WAIT_MS or not (self._classic_group() and ticket.waits_for_others)
                self.must(not late, "C6", f"{ticket.member} waits for {waits} ms")
        if self.steps % 16 == 0:
            self._check_replay()
        group = self._group()
        if self._classic_group() is None:
            self._check_memory(group)
            if group is not None:
                self._check_target(group)
        if group is None:
            self._check_classic()
            return
        self.count("steps in the consumer protocol")
        self._check_index(group)
        self.expressions.check(group)
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
            if one.departed or known is None or one.epoch <= 0 or known.current.epoch < 0:
                continue
            if known.current.epoch < one.epoch:
                continue  # it was made again after a death that lost its epoch, and will be fenced
            for topic_id, partition in one.owned:
                # Classic ones know topics by name only.
                exists = isinstance(one, ModelMember) or self.topics.of_id(topic_id) is not None
                holds = known.current.assignment_epoch(topic_id, partition) is not None
                place = f"{topic_id.hex()}-{partition}"
                self.must(holds or not exists, "C1", f"{one} owns {place}, not of {known.current}")

    def _check_classic(self) -> None:
        group = self._classic_group()
        if group is None:
            return
        self.count("steps in the classic protocol")
        owners: dict[tuple[bytes, int], AnyMember] = {}
        for one in self.members:
            known = group.members.get(one.member_id)
            if one.departed or known is None or one.epoch != group.generation:
                continue
            for place in one.owned:
                other = owners.setdefault(place, one)
                self.must(other is one, "C9", f"{one} and {other} own {place}")

    def _check_memory(self, group: ConsumerGroup | None) -> None:
        there = 0
        for one in () if group is None else group.members.values():
            there += memory.MEMBER_BYTES + memory.text_bytes(one.member_id)
            there += memory.subscription_bytes(one.subscription)
            there += memory.target_bytes(
                one.target, sum(map(len, one.target.values()))
            ) + memory.current_bytes(one.current)
        for pattern, found in {} if group is None else group.regexes.items():
            there += memory.regex_bytes(pattern, found.topics, found.views)
        counted = self.shard._core.memory.total.counted
        self.must(counted == there, "C10", f"{counted} bytes are counted, {there} are there")

    def _check_target(self, group: ConsumerGroup) -> None:
        delegation = self.shard._groups[self.group_id].delegation
        if delegation is not None and self.shard._groups[self.group_id].computing is None:
            self.must(self.now_ms < delegation.until_ms, "C11", f"{delegation.leader} is waited for")
            self.must(not delegation.leader or self.now_ms < delegation.due_ms, "C11", "a leader without end")
        is_old = group.assignment_epoch < group.epoch or group.checked_version != self.topics.version
        if is_old or self.classic_share or self.expressions.waits(group):
            return
        given = Counter(
            (topic_id, partition)
            for member in group.members.values()
            for topic_id, some in member.target.items()
            if topic_id in self.topics.ids(group.topic_names(member))
            for partition in some
        )
        topics = [self.topics.named(name) for name in _read(group)]
        wanted = Counter((one.topic_id, number) for one in topics if one for number in range(one.partitions))
        self.must(given == wanted, "C11", f"the target is {given}, not {wanted}")

    def _check_index(self, group: ConsumerGroup) -> None:
        incremental = {topic: dict(held) for topic, held in group._holders.items()}
        try:
            group.index()
        except AssertionError as error:
            self.must(False, "C2", str(error))
        self.must(incremental == group._holders, "C2", "the index is not what the members' records say")

    def _check_replay(self) -> None:
        fresh = Shard(0, self.settings, lambda prefix: prefix)
        fresh.replay([*self._compacted(), *(row for one in self._in_flight for row in one.records)])
        same = _durable(fresh._groups.get(self.group_id)) == _durable(self.shard._groups.get(self.group_id))
        self.must(same, "C5", "the log gives another group")

    def _has_settled(self) -> bool:
        present = [one for one in self.members if not one.departed]
        if self._in_flight or any(one.waits for one in present):
            return False
        if any(isinstance(one, ModelMember) and one.says_all for one in present):
            return False
        if any(isinstance(one, ClassicMember) and not one.is_settled for one in present):
            return False
        group = self._group()
        if group is None:
            return self._classic_has_settled(present)
        if group.state not in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
            return False
        if set(group.members) != {one.member_id for one in present}:
            return False
        owned = [place for one in present for place in one.owned]
        wanted = {
            (topic.topic_id, partition)
            for name in _read(group)
            if (topic := self.topics.named(name)) is not None
            for partition in range(topic.partitions)
        }
        checked = not present or group.checked_version == self.topics.version
        return sorted(owned) == sorted(wanted) and checked and self.expressions.has_settled(group)

    def _classic_has_settled(self, present: list[AnyMember]) -> bool:
        group = self._classic_group()
        if group is None or not group.members:
            return not present
        if group.state is not GroupState.STABLE or set(group.members) != {one.member_id for one in present}:
            return False
        classic = [one for one in present if isinstance(one, ClassicMember)]
        if not any(one.leads and one.seen_version == self.topics.version for one in classic):
            return False
        names = {name for one in present for name in one.topics}
        wanted = {
            (topic.topic_id, partition)
            for name in names
            if (topic := self.topics.named(name)) is not None
            for partition in range(topic.partitions)
        }
        owned = [place for one in present for place in one.owned]
        return sorted(owned) == sorted(wanted)

    def must(self, condition: bool, name: str, text: str) -> None:
        """Raises `ViolationError` unless it holds."""
        if not condition:
            again = f"python -m tests.simulation.consumer --seed {self.seed}"
            raise ViolationError(name, text, self.seed, f"{self.now_ms} ms, step {self.steps}", again)

    def note(self, what: str, *of: Any) -> None:
        """A step, for a world that is recorded (tests/spec)."""

    def say(self, text: str) -> None:
        """For the story, if it is to be printed."""
        if self.tell is not None:
            self.tell(f"{self.now_ms} #{self.steps} {text}")

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def _read(group: ConsumerGroup) -> set[str]:
    """The topics that any member reads. (An expression may have matched more, for a member that has left.)"""
    return {name for member in group.members.values() for name in group.topic_names(member)}


def _durable(group: Group | None) -> Any:
    """A group as the log has it."""
    if group is None:
        return None
    consumer = [] if group.consumer is None else sorted(records.all_records(group.consumer))
    return consumer or group.synced


def simulate(seed: int, tell: Callable[[str], None] | None = None) -> World:
    """One run. Raises `ViolationError`."""
    world = World(seed, tell)
    world.run()
    return world

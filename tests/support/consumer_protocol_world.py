"""A group of the consumer protocol on a simulated clock and network: member machines, and a coordinator after
the rules of KIP-848 and what Apache Kafka 4.3 does."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ringleader.clients.group.machine.actions import (
    CancelRevoked,
    Over,
    PrepareJoin,
    Send,
    TellAssigned,
    TellLost,
    TellRevoked,
)
from ringleader.clients.group.machine.consumer_protocol import consumer_protocol
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.group.subscription import partitions_given_up
from ringleader.clients.model import TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatResponse,
    FindCoordinatorResponse,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.support.consumer_protocol_script import assignment, owned, places, topic_id

INTERVAL_MS, SESSION_MS, REBALANCE_MS, REQUEST_MS = 1_000, 9_000, 8_000, 3_000

Places = frozenset[TopicPartition]
NONE: Places = frozenset()


@dataclass(eq=False)
class Place:
    """A member as the coordinator knows it. `pending`: what it has to give up and has not yet."""

    instance: str | None
    topics: set[str]
    heard_ms: int
    epoch: int = 0
    before: int = 0
    assigned: Places = NONE
    pending: Places = NONE
    pending_since_ms: int = 0


class Group:
    """The coordinator's side. An epoch is given out with each change; the target is even, and sticky."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.topics = topics
        self.members: dict[str, Place] = {}
        self.epoch = 0
        self.target: dict[str, Places] = {}

    def changed(self) -> None:
        """A new group epoch, and the target for it."""
        self.epoch += 1
        target: dict[str, set[TopicPartition]] = {
            name: {p for p in self.target.get(name, NONE) if p[0] in one.topics}
            for name, one in self.members.items()
        }
        for topic, count in sorted(self.topics.items()):
            able = [name for name, one in self.members.items() if topic in one.topics]
            for number in range(count if able else 0):
                if not any((topic, number) in target[name] for name in able):
                    target[min(able, key=lambda name: (len(target[name]), name))].add((topic, number))
        moved = True
        while moved:
            moved = False
            for most, least in itertools.permutations(sorted(target), 2):
                for place in sorted(target[most]):
                    if place[0] in self.members[least].topics and len(target[most]) > len(target[least]) + 1:
                        target[most].discard(place)
                        target[least].add(place)
                        moved = True
        self.target = {name: frozenset(of) for name, of in target.items()}

    def remove(self, name: str) -> None:
        """It is gone."""
        del self.members[name]
        self.changed()

    def expire(self, now_ms: int) -> None:
        """Members that were silent, or did not give up in time, are removed."""
        for name, one in list(self.members.items()):
            late = one.pending and now_ms - one.pending_since_ms >= REBALANCE_MS
            if now_ms - one.heard_ms >= SESSION_MS or late:
                self.remove(name)

    def holders(self, place: TopicPartition, but: str) -> list[str]:
        """The other members that have it, or have not given it up yet."""
        return [
            name for name, one in self.members.items() if name != but and place in one.assigned | one.pending
        ]

    def heartbeat(self, request: Any, now_ms: int) -> ConsumerGroupHeartbeatResponse:
        """One request, answered."""
        self.expire(now_ms)
        name, epoch = request.member_id, request.member_epoch
        one = self.members.get(name)
        if epoch < 0:
            return self._left(name, epoch)
        reported = owned(request)
        mine = None if reported is None else frozenset((t, n) for t, ns in reported.items() for n in ns)
        if epoch == 0:
            assert mine == NONE
            assert request.subscribed_topic_names is not None
            if one is None:
                holder = self._of_instance(request.instance_id)
                if holder is not None and self.members[holder].epoch != -2:
                    return _refused(ErrorCode.UNRELEASED_INSTANCE_ID)
                one = self.members[name] = Place(request.instance_id, set(), now_ms)
                if holder is not None:
                    self.target[name] = self.target.pop(holder)
                    one.topics = self.members.pop(holder).topics
                    self.epoch += 1
        elif one is None:
            return _refused(ErrorCode.UNKNOWN_MEMBER_ID)
        elif epoch > one.epoch or (
            epoch < one.epoch and (epoch != one.before or mine is None or not mine <= one.assigned)
        ):
            return _refused(ErrorCode.FENCED_MEMBER_EPOCH)
        one.heard_ms = now_ms
        if request.subscribed_topic_names is not None and set(request.subscribed_topic_names) != one.topics:
            one.topics = set(request.subscribed_topic_names)
            self.changed()
        had = one.assigned
        self._reconcile(name, one, mine, now_ms)
        news = epoch == 0 or mine is not None or one.assigned != had
        return ConsumerGroupHeartbeatResponse(
            member_id=name,
            member_epoch=one.epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=assignment(_by_topic(one.assigned) if news else None),
        )

    def _reconcile(self, name: str, one: Place, mine: Places | None, now_ms: int) -> None:
        if one.pending and mine is not None and not mine & one.pending:
            one.pending = NONE
        if one.pending:
            return
        target = self.target.get(name, NONE)
        keep = one.assigned & target
        if keep != one.assigned:
            one.pending, one.pending_since_ms = one.assigned - keep, now_ms
            one.assigned = keep
            if mine is None or mine & one.pending:
                return
            one.pending = NONE
        free = frozenset(place for place in target - keep if not self.holders(place, name))
        if one.epoch != self.epoch:
            one.before, one.epoch = one.epoch, self.epoch
        one.assigned = keep | free

    def _left(self, name: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
        if name not in self.members:
            return _refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if epoch == -1:
            self.remove(name)
        else:
            one = self.members[name]
            one.epoch, one.assigned, one.pending = -2, NONE, NONE
        return ConsumerGroupHeartbeatResponse(member_id=name, member_epoch=epoch)

    def _of_instance(self, instance: str | None) -> str | None:
        found = (name for name, one in self.members.items() if instance and one.instance == instance)
        return next(found, None)


def _refused(code: int) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code)


def _by_topic(partitions: Places) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        found.setdefault(topic, []).append(number)
    return found


class Member:
    """A machine, its driver's part, and what its user has."""

    def __init__(self, world: World, name: str, instance: str | None = None) -> None:
        self.world, self.name, self.instance = world, name, instance
        self.topics = ["t", "u"]
        settings = MemberSettings(
            group_id="g",
            given_up=partitions_given_up,
            group_instance_id=instance,
            rebalance_timeout_ms=REBALANCE_MS,
            request_timeout_ms=REQUEST_MS,
        )
        self.machine = MemberMachine(
            consumer_protocol(settings, name, lambda: self.topics, world.random.random)
        )
        self.machine.state.prepares = world.random.random() < 0.5
        self.has: Places = NONE
        self.alive = True
        self.ended = False
        self.error: Exception | None = None
        self._arrived_ms = 0
        self._cancelled: set[int] = set()

    def start(self) -> None:
        """Join."""
        self.machine.start(self.world.now_ms)
        self.pump()

    def leave(self) -> None:
        """For good, or as a static member to be back."""
        self.machine.leave("enough", self.world.now_ms, 1_000, silently=self.instance is not None)
        self.pump()

    def tick(self) -> None:
        """Its timer."""
        due_ms = self.machine.next_deadline()
        if self.alive and due_ms is not None and due_ms <= self.world.now_ms:
            self.machine.tick(self.world.now_ms)
            self.pump()

    def pump(self) -> None:
        """Do what the machine wants."""
        world = self.world
        for action in self.machine.drain():
            match action:
                case Send():
                    self._send(action)
                case PrepareJoin():
                    world.later(world.random.randint(0, 200), partial(self._do, "prepared", action.number))
                case TellAssigned():
                    self.has = frozenset(places(action.assigned))
                case TellRevoked():
                    takes_ms = world.random.choice((0, 5, 300, 4_000, 20_000) if world.rough else (0, 300))
                    moving = frozenset(places(action.revoked))
                    world.later(takes_ms, partial(self._revoked, action.round, moving))
                case TellLost():
                    self.has -= frozenset(places(action.lost))
                case CancelRevoked():
                    self._cancelled.add(action.round)
                case Over():
                    self.has, self.ended, self.error = NONE, True, action.error
        if (due_ms := self.machine.next_deadline()) is not None:
            world.later(max(0, due_ms - world.now_ms), self.tick)

    def _do(self, what: str, *arguments: Any) -> None:
        if self.alive:
            getattr(self.machine, what)(*arguments, self.world.now_ms)
            self.pump()

    def _revoked(self, round_: int, moving: Places) -> None:
        if self.alive and round_ not in self._cancelled:
            self.has -= moving
            self._do("revoked", round_)

    def _send(self, send: Send) -> None:
        """Requests arrive in the order in which they were sent; any may be lost, and any answer."""
        world, chance = self.world, self.world.random.random()
        delay_ms = world.random.randint(1, 200 if world.rough else 5)
        self._arrived_ms = max(self._arrived_ms, world.now_ms + delay_ms)
        if world.rough and chance < 0.05:
            world.later(send.timeout_ms, partial(self._do, "fail", send.ticket, "lost on the way"))
        else:
            lost = world.rough and chance < 0.15
            world.later(self._arrived_ms - world.now_ms, partial(self._arrive, send, lost))

    def _arrive(self, send: Send, lost: bool) -> None:
        world, request = self.world, send.request.build(send.request.max_version and 12)
        kind = type(request).__name__
        if kind == "FindCoordinatorRequest":
            response: Any = FindCoordinatorResponse(node_id=1, host="h", port=1)
        elif kind == "MetadataRequest":
            response = world.name(request)
        else:
            response = world.serve(request)
        if lost:
            world.later(REQUEST_MS, partial(self._do, "fail", send.ticket, "the answer was lost"))
        else:
            back_ms = world.random.randint(1, 200 if world.rough else 5)
            world.later(back_ms, partial(self._do, "answer", send.ticket, response))


class World:
    """One group, its members and its time. In `rough` times answers get lost and callbacks are slow."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.rough = True
        self.group = Group({"t": 5, "u": 3})
        self.members: list[Member] = []
        self._down_until_ms = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def later(self, ms: int, do: Callable[[], None]) -> None:
        """After so long."""
        heapq.heappush(self._events, (self.now_ms + ms, next(self._count), do))

    def run(self, ms: int) -> None:
        """So long, and look at each step that no partition has two owners."""
        end_ms = self.now_ms + ms
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, do = heapq.heappop(self._events)
            do()
            self.group.expire(self.now_ms)
            self.check()
        self.now_ms = end_ms
        self.group.expire(end_ms)

    def join(self, instance: str | None = None) -> Member:
        """One more member."""
        one = Member(self, f"m{len(self.members)}", instance)
        self.members.append(one)
        one.start()
        return one

    def restart(self, ms: int) -> None:
        """For so long the coordinator answers that it is none."""
        self._down_until_ms = self.now_ms + ms

    def serve(self, request: Any) -> ConsumerGroupHeartbeatResponse:
        """The answer of the coordinator at this time."""
        if self.now_ms < self._down_until_ms:
            return _refused(self.random.choice((ErrorCode.NOT_COORDINATOR, 14)))
        return self.group.heartbeat(request, self.now_ms)

    def name(self, request: Any) -> MetadataResponse:
        """The names of topics; of some of them not yet."""
        names = {topic_id(name): name for name in self.group.topics}
        topics = []
        for one in request.topics:
            known = not self.rough or self.random.random() < 0.7
            code, name = (0, names[one.topic_id]) if known else (100, None)
            topics.append(MetadataResponseTopic(error_code=code, name=name, topic_id=one.topic_id))
        return MetadataResponse(topics=topics)

    def check(self) -> None:
        """No two members that the coordinator still counts hold the same partition."""
        owners: dict[TopicPartition, str] = {}
        for one in self.members:
            if one.alive and one.name in self.group.members:
                for place in one.has:
                    assert place not in owners, f"{place} is {owners[place]}'s and {one.name}'s"
                    owners[place] = one.name

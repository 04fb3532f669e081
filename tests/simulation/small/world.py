"""All that can happen in a small world: three members of the consumer protocol, a topic of two partitions.

Breadth first over the real shard: each state that was reached is loaded from its log, and each step that is
possible in it is taken once. Only the log outlives a step: what a shard knows besides, its deadlines, is here
a step that may come at any time. A state is the group's records, the topic, what each member knows, the
answers on their way, and how often the world may still change.

The steps: a member sends a heartbeat, which is handled once, or a second time that it does not hear of, or is
lost; its answer arrives, early or late, or is lost; a member gives partitions up; it leaves; a static one
leaves for a while; a member is removed by a timeout; the topic grows; it is deleted; the shard fails over
once, with all answers lost.

In every state: no partition has two holders (S1), no member believes to own what the log does not say it has
(S2), nor two members the same partition (S3), no epoch passes the one it follows (S4), a member at the
target's epoch has its target (S5), the log gives the same group wherever a cleaner stood in it (S6). On every
step: no epoch goes back (S7). And in every state that is drawn: once nothing fails, all is stable and owned
once (S8).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, ConsumerGroupState, TwoHoldersError
from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, LEFT_EPOCH, MemberState
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.deadlines import Kind, MemberDeadline
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.messages import ConsumerGroupHeartbeatResponse
from tests.simulation.consumer.member import ModelMember, Owned

GROUP = "g"
TOPIC = Topic("t", b"\x07" * 16, 2)
NOW_MS = 1_000_000
SETTINGS = GroupSettings(group_consumer_assignment_interval_ms=0)
ROUNDS = 12
"""Heartbeats of each member until all must be settled."""

Row = tuple[bytes, bytes | None]


class SmallWorldError(AssertionError):
    """A state that must not be; the text says which invariant, and the steps that lead there."""


class Client(NamedTuple):
    """The knowledge of a member; see `ModelMember`. `answer`: what is on its way to it."""

    epoch: int = 0
    owned: Owned = frozenset()
    to_revoke: Owned = frozenset()
    wanted: Owned | None = None
    says_all: bool = True
    reported: Owned | None = None
    departed: bool = True
    answer: bytes | None = None


class State(NamedTuple):
    """See the module."""

    rows: frozenset[tuple[bytes, bytes]]
    partitions: int
    """Of the topic; 0: it is deleted."""
    clients: tuple[Client, ...]
    may_grow: bool
    may_go: bool
    may_fail_over: bool


class Ticket:
    """A request on its way."""

    api_version = 1
    client_id = "client"
    client_host = "/127.0.0.1"
    principal = "User:ANONYMOUS"
    connection: object = None


class _Group:
    """The world as a `ModelMember` asks it."""

    group_id = GROUP


@dataclass(slots=True)
class Found:
    """The outcome of a search."""

    depth: int = 0
    states: int = 0
    steps: int = 0
    settled: int = 0
    """States from which it was tried that all settles."""
    whole: bool = True
    """Whether every state within the depth was visited; else the time was over."""
    kinds: dict[str, int] = field(default_factory=dict)


class SmallWorld:
    """One search. `statics`: members with an instance id, from the last one on. `settles_every`: of so many
    new states one has to settle. `formed`: it begins with a group that has settled, else with none."""

    def __init__(
        self, members: int = 3, statics: int = 1, settles_every: int = 1, *, formed: bool = False
    ) -> None:
        self._formed = formed
        self._names = [f"m{number}" for number in range(members)]
        self._instances = [f"i{n}" if n >= members - statics else None for n in range(members)]
        self._settles_every = settles_every
        self._predecessors: dict[State, tuple[State | None, str, tuple[Row, ...]]] = {}
        """How each state was first reached: from where, by which step, and what that step wrote."""

    def search(self, depth: int, seconds: float | None = None) -> Found:
        """All states of up to so many steps, or until the time is over. Raises `SmallWorldError`."""
        first = State(frozenset(), TOPIC.partitions, (Client(),) * len(self._names), True, True, True)
        begun: list[Row] = []
        if self._formed:
            _, members, begun = self._settle(first)
            clients = tuple(self._freeze(member, None) for member in members)
            first = self._after(first, 0, clients[0], begun)._replace(clients=clients)
        found = Found(states=1)
        self._predecessors = {first: (None, "", tuple(begun))}
        layer = [first]
        end_s = None if seconds is None else time.monotonic() + seconds
        for number in range(depth):
            following: list[State] = []
            for state in layer:
                if end_s is not None and time.monotonic() > end_s:
                    found.whole = False
                    return found
                for what, after, written in self._steps(state):
                    found.steps += 1
                    kind = what.split()[-1]
                    found.kinds[kind] = found.kinds.get(kind, 0) + 1
                    if after not in self._predecessors:
                        self._predecessors[after] = (state, what, written)
                        found.states += 1
                        self._check(state, after)
                        if not found.states % self._settles_every:
                            found.settled += 1
                            self._check_settles(after)
                        following.append(after)
            layer, found.depth = following, number + 1
        return found

    # ---- steps ----

    def _steps(self, state: State) -> Iterator[tuple[str, State, tuple[Row, ...]]]:
        fresh = True
        for place, client in enumerate(state.clients):
            name = self._names[place]
            if client.departed:
                # Members are alike until they have joined: the next one is the one that joins.
                if client != Client() or fresh:
                    yield f"{name} comes", self._with(state, place, client._replace(departed=False)), ()
                fresh = fresh and client != Client()
                continue
            if client.answer is not None:
                yield f"{name} is answered", self._answered(state, place), ()
                yield f"{name} answer-lost", self._changed(state, place, _failed), ()
                continue
            yield from self._requests(state, place)
            yield f"{name} request-lost", self._changed(state, place, _unanswered), ()
            if client.to_revoke:
                yield f"{name} revokes", self._changed(state, place, ModelMember.revoke), ()
        yield from self._removals(state)
        if state.partitions and state.may_grow:
            yield "topic grows", state._replace(partitions=state.partitions + 1, may_grow=False), ()
        if state.partitions and state.may_go:
            yield "topic deleted", state._replace(partitions=0, may_go=False), ()
        if state.may_fail_over:
            lost = tuple(
                self._freeze(_failed(self._thaw(place, one)), None) if one.answer is not None else one
                for place, one in enumerate(state.clients)
            )
            yield "shard fails-over", state._replace(clients=lost, may_fail_over=False), ()

    def _requests(self, state: State, place: int) -> Iterator[tuple[str, State, tuple[Row, ...]]]:
        name, client = self._names[place], state.clients[place]
        member = self._thaw(place, client)
        request = member.request()
        for what, times in (("asks", 1), ("repeats", 2)):
            shard = self._shard(state)
            written: list[Row] = []
            answers = [_handle(shard, request, written) for _ in range(times)]
            member_after = self._freeze(member, answers[0])
            yield f"{name} {what}", self._after(state, place, member_after, written), (*written,)
        kinds = [LEFT_EPOCH] if self._instances[place] is None else [LEFT_EPOCH, AWAY_EPOCH]
        for epoch in kinds if client.epoch > 0 else ():
            leaving = self._thaw(place, client)
            shard, written = self._shard(state), []
            _handle(shard, leaving.leave(epoch), written)
            leaving.rejoin()
            what = "leaves" if epoch == LEFT_EPOCH else "goes-away"
            left = self._freeze(leaving, None)
            yield f"{name} {what}", self._after(state, place, left, written), (*written,)

    def _removals(self, state: State) -> Iterator[tuple[str, State, tuple[Row, ...]]]:
        for place, name in enumerate(self._names):
            shard = self._shard(state)
            group = _group(shard)
            if group is None or name not in group.members:
                continue
            shard._consumer.session_fired(MemberDeadline(GROUP, Kind.CONSUMER_SESSION, name), NOW_MS)
            written: list[Row] = []
            _drain(shard, written)
            yield f"{name} is-removed", self._after(state, place, state.clients[place], written), (*written,)

    def _answered(self, state: State, place: int) -> State:
        client = state.clients[place]
        assert client.answer is not None
        member = self._thaw(place, client)
        member.answered(ConsumerGroupHeartbeatResponse.decode(client.answer, 1))
        return self._with(state, place, self._freeze(member, None))

    def _changed(self, state: State, place: int, change: Callable[[ModelMember], Any]) -> State:
        member = self._thaw(place, state.clients[place])
        change(member)
        return self._with(state, place, self._freeze(member, None))

    @staticmethod
    def _with(state: State, place: int, client: Client) -> State:
        clients = list(state.clients)
        clients[place] = client
        return state._replace(clients=tuple(clients))

    def _after(self, state: State, place: int, client: Client, written: list[Row]) -> State:
        known = dict(state.rows)
        for key, value in written:
            if value is None:
                known.pop(key, None)
            else:
                known[key] = value
        return self._with(state, place, client)._replace(rows=frozenset(known.items()))

    # ---- shards and members ----

    def _topics(self, state: State) -> Topics:
        topics = Topics()
        if state.partitions:
            topics.put(replace(TOPIC, partitions=state.partitions))
        return topics

    def _shard(self, state: State) -> Shard:
        shard = Shard(0, SETTINGS, str, topics=self._topics(state))
        shard.replay(sorted(state.rows))
        shard.loaded(NOW_MS, NOW_MS)
        return shard

    def _thaw(self, place: int, client: Client) -> ModelMember:
        world: Any = _Group
        member = ModelMember(world, place, self._instances[place], frozenset((TOPIC.name,)))
        member.epoch, member.owned, member.to_revoke, member.wanted = client[:4]
        member.says_all, member.reported, member.departed = client[4:7]
        return member

    @staticmethod
    def _freeze(member: ModelMember, answer: bytes | None) -> Client:
        return Client(
            member.epoch,
            member.owned,
            member.to_revoke,
            member.wanted,
            member.says_all,
            member.reported,
            member.departed,
            answer,
        )

    # ---- what must hold ----

    def _check(self, before: State, state: State) -> None:
        group, earlier = _replayed(state.rows), _replayed(before.rows)
        try:
            group.index()
        except TwoHoldersError as error:
            self._must(False, state, f"S1: {error}")
        owners: dict[tuple[bytes, int], str] = {}
        for place, client in enumerate(state.clients):
            name = self._names[place]
            known = group.members.get(name)
            if client.epoch <= 0 or known is None or not 0 <= client.epoch <= known.current.epoch:
                continue  # it was removed, and will hear of it
            for one in client.owned:
                holds = known.current.assignment_epoch(*one) is not None
                self._must(holds, state, f"S2: {name} owns {one[1]}, and has {known.current}")
                self._must(
                    owners.setdefault(one, name) == name, state, f"S3: {owners[one]} and {name} own {one[1]}"
                )
        self._must(group.assignment_epoch <= group.epoch, state, "S4: the target is ahead of the group")
        for member in group.members.values():
            current = member.current
            self._must(current.epoch <= group.assignment_epoch, state, f"S4: {member.member_id}: {current}")
            if current.state is MemberState.STABLE and current.epoch == group.epoch and state.partitions:
                had = {topic: frozenset(some) for topic, some in current.assigned.items()}
                self._must(had == dict(member.target), state, f"S5: {member.member_id} has {had}")
            old = earlier.members.get(member.member_id)
            if old is not None and AWAY_EPOCH not in (old.current.epoch, current.epoch):
                self._must(current.epoch >= old.current.epoch, state, f"S7: {member.member_id}")
        self._must(group.epoch >= earlier.epoch, state, "S7: the group's epoch went back")
        self._must(
            group.assignment_epoch >= earlier.assignment_epoch, state, "S7: the target's epoch went back"
        )
        self._check_compacted(state, group)

    def _check_compacted(self, state: State, group: ConsumerGroup) -> None:
        """Cleaners that stood in what earlier steps wrote were tried when those were taken."""
        *earlier, last_step = (self._predecessors[one][2] for one in self._path(state))
        log = [row for written in (*earlier, last_step) for row in written]
        wanted = sorted(records.all_records(group))
        for known in range(len(log) - len(last_step) + 1, len(log) + 1):
            last = {key: place for place, (key, _) in enumerate(log[:known])}
            rows = [row for place, row in enumerate(log) if place >= known or last[row[0]] == place]
            found = sorted(records.all_records(_replayed(rows)))
            self._must(found == wanted, state, f"S6: a cleaner at {known} of {len(log)} makes another group")

    def _check_settles(self, state: State) -> None:
        shard, members, _ = self._settle(state)
        group = _group(shard)
        stable = group is not None and group.state is ConsumerGroupState.STABLE
        owned = sorted(one for member in members for one in member.owned)
        whole = [(TOPIC.topic_id, number) for number in range(state.partitions)]
        self._must(stable and owned == whole, state, f"S8: it does not settle: {owned} of {whole}, {group}")

    def _settle(self, state: State) -> tuple[Shard, list[ModelMember], list[Row]]:
        """Nothing is lost any more; members that left are back, and late answers arrive."""
        shard, members, written = self._shard(state), [], list[Row]()
        for place, client in enumerate(state.clients):
            member = self._thaw(place, client)
            member.departed = False
            if client.answer is not None:
                member.answered(ConsumerGroupHeartbeatResponse.decode(client.answer, 1))
            members.append(member)
        for _ in range(ROUNDS):
            for member in members:
                member.revoke()
                answer = _handle(shard, member.request(), written)
                member.answered(ConsumerGroupHeartbeatResponse.decode(answer, 1))
        return shard, members, written

    def _path(self, state: State) -> list[State]:
        path = [state]
        while (before := self._predecessors[path[-1]][0]) is not None:
            path.append(before)
        return path[::-1]

    def _must(self, condition: bool, state: State, text: str) -> None:
        if not condition:
            steps = "; ".join(self._predecessors[one][1] for one in self._path(state)[1:])
            raise SmallWorldError(f"{text}\nafter: {steps}")


def _failed(member: ModelMember) -> ModelMember:
    member.failed()
    return member


def _unanswered(member: ModelMember) -> None:
    member.request()
    member.failed()


def _group(shard: Shard) -> ConsumerGroup | None:
    group = shard._groups.get(GROUP)
    return None if group is None else group.consumer


def _replayed(rows: Any) -> ConsumerGroup:
    group = ConsumerGroup(GROUP)
    for key, value in rows:
        named = records.decode_key(key)
        if named is not None:
            records.apply(group, named[0], named[2], value)
    return group


def _handle(shard: Shard, request: Any, written: list[Row]) -> bytes:
    response = shard.handle(request, Ticket(), NOW_MS)
    answers = _drain(shard, written)
    if response is None:
        (response,) = answers
    encoded: bytes = response.encode(1)
    return encoded


def _drain(shard: Shard, written: list[Row]) -> list[Any]:
    answers = []
    while shard.dirty:
        box = shard.drain()
        answers += [one.response for one in box.answers]
        for append in box.appends:
            written += append.records
            shard.durable(append.position, NOW_MS)
    return answers

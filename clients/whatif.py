"""The assignment of each assignor for a group: now, with other members, with more partitions; and the number
of partitions that a topic needs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ringleader.clients.assignors import (
    ASSIGNORS,
    Assignment,
    Assignor,
    AssignorMember,
    lag_aware,
    sticky_user_data,
    weight_user_data,
)
from ringleader.clients.assignors.lag import DEFAULT_IMBALANCE, behind
from ringleader.clients.descriptions import GroupDescription
from ringleader.protocol.embedded import Subscription, WeightUserData
from ringleader.protocol.errors import MalformedError

MAX_ROUNDS = 10
"""Rounds in which cooperative members may settle; two are the rule."""

NEW_MEMBER = "new-member-"


class PlannedMember(BaseModel):
    """A member in a file that `ringleader plan` reads and writes."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1)
    topics: list[str]
    owned: dict[str, list[int]] = {}
    instance: str | None = None
    rack: str | None = None
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)


class Situation(BaseModel):
    """A group as it is: its members, the partitions of its topics, and how far it is behind in each."""

    model_config = ConfigDict(extra="forbid")

    topics: dict[str, int]
    members: list[PlannedMember] = Field(min_length=1)
    lags: dict[str, list[int]] = {}

    @model_validator(mode="after")
    def _makes_sense(self) -> Situation:
        ids = [member.id for member in self.members]
        if len(set(ids)) != len(ids):
            raise ValueError("two members have the same id")
        if any(count < 0 for count in self.topics.values()):
            raise ValueError("a topic has fewer than 0 partitions")
        return self


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one assignor for a situation."""

    assignor: str
    moves: int
    """Partitions that one member owns now and another one gets."""
    fewest: int
    most: int
    """Partitions of the member with the fewest, and with the most."""
    idle: int
    """Members without a partition."""
    lag_most: int
    """Records behind, of the member with the most of them."""
    rounds: int
    """Rebalances until the group has settled."""
    milliseconds: float
    """Time to compute, of all rounds."""
    assignment: Assignment = field(repr=False)


def situation_of(
    group: GroupDescription, partitions: Mapping[str, int], lags: Mapping[str, Sequence[int]]
) -> Situation:
    """A live group. Raises ValueError for one that has no members, or is no consumer group."""
    if group.protocol_type != "consumer":
        raise ValueError(f"group {group.group_id} is no group of consumers")
    if not group.members:
        raise ValueError(f"group {group.group_id} has no members")
    if any(one.subscribed_topic_regex for one in group.members):
        raise ValueError(f"group {group.group_id} reads what matches a regex, which its coordinator resolves")
    members = []
    for one in group.members:
        subscription = _subscription(one.raw_metadata)
        members.append(
            PlannedMember(
                id=one.member_id,
                topics=list(one.topics),
                owned={topic: list(ps) for topic, ps in one.assignment.items()},
                instance=one.group_instance_id,
                rack=one.rack_id,
                weight=_weight(subscription),
            )
        )
    return Situation(
        topics=dict(partitions), members=members, lags={topic: list(of) for topic, of in lags.items()}
    )


def _subscription(metadata: bytes) -> Subscription:
    try:
        return Subscription.decode(metadata)
    except MalformedError:
        return Subscription([])


def _weight(subscription: Subscription) -> float:
    try:
        return WeightUserData.decode(subscription.user_data or b"").weight
    except MalformedError:
        return 1.0


def with_members(situation: Situation, change: int) -> Situation:
    """With this number of further members, which subscribe to what the others do; or fewer: the last ones
    leave. At least one stays."""
    members = list(situation.members)
    if change < 0:
        members = members[: max(1, len(members) + change)]
    topics = sorted({topic for member in situation.members for topic in member.topics})
    members += [PlannedMember(id=f"{NEW_MEMBER}{number + 1}", topics=topics) for number in range(change)]
    return situation.model_copy(update={"members": members})


def with_partitions(situation: Situation, more: int) -> Situation:
    """With this number of further partitions of each topic."""
    return situation.model_copy(update={"topics": {t: n + more for t, n in situation.topics.items()}})


def with_topic(situation: Situation, partitions: int) -> Situation:
    """With a new topic of this number of partitions, without lag, which all members subscribe to: as when it
    matches the pattern of a group."""
    name = next(name for number in count(1) if (name := f"new-topic-{number}") not in situation.topics)
    members = [member.model_copy(update={"topics": [*member.topics, name]}) for member in situation.members]
    return situation.model_copy(update={"topics": {**situation.topics, name: partitions}, "members": members})


def outcomes(
    situation: Situation,
    names: Iterable[str] | None = None,
    *,
    before: Situation | None = None,
    imbalance: float = DEFAULT_IMBALANCE,
) -> list[Outcome]:
    """The result of each assignor; only those named, in their order. `before`: the owners until then, if
    members have left since. `imbalance`: that of `lag-aware`. Raises ValueError for a name that is none."""
    known = dict(ASSIGNORS)
    by_lag = lag_aware(situation.lags, imbalance)
    known[by_lag.name] = by_lag
    wanted = list(known if names is None else names)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"there is no assignor {', '.join(unknown)}; there are {', '.join(known)}")
    return [_outcome(situation, known[name], before or situation) for name in wanted]


def _outcome(situation: Situation, assignor: Assignor, before: Situation) -> Outcome:
    members = [_joining(member, assignor) for member in situation.members]
    seconds, rounds, settled = 0.0, 0, False
    got: Assignment = {}
    while not settled and rounds < MAX_ROUNDS:
        rounds += 1
        began = time.perf_counter()
        got = assignor.assign(members, situation.topics)
        seconds += time.perf_counter() - began
        settled = all(
            set(ps) <= set(got[member.member_id].get(topic, ()))
            for member in members
            for topic, ps in member.owned.items()
        )
        members = [replace(member, owned=got[member.member_id], generation=rounds + 1) for member in members]
    counts = [sum(map(len, topics.values())) for topics in got.values()]
    return Outcome(
        assignor.name,
        _moves(before, got),
        min(counts),
        max(counts),
        counts.count(0),
        max(behind(situation.lags, topics) for topics in got.values()),
        rounds,
        seconds * 1000,
        got,
    )


def _joining(member: PlannedMember, assignor: Assignor) -> AssignorMember:
    """The member as it joins: an eager one owns nothing any more, and tells what it had."""
    generation = 1 if member.owned else -1
    data = sticky_user_data(member.owned, generation)
    if assignor.name == "weighted":
        data = weight_user_data(member.weight)
    return AssignorMember(
        member.id,
        member.instance,
        member.topics,
        member.owned if assignor.cooperative else {},
        generation,
        member.rack,
        data,
    )


def _moves(before: Situation, got: Assignment) -> int:
    owner = {
        (topic, partition): member.id
        for member in before.members
        for topic, ps in member.owned.items()
        for partition in ps
    }
    return sum(
        owner.get((topic, partition), member) != member
        for member, topics in got.items()
        for topic, ps in topics.items()
        for partition in ps
    )


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many partitions a topic needs, from measured throughput (all in one unit, for example MB/s)."""

    by_producers: int
    """So that producers reach the target."""
    by_consumers: int
    """So that consumers keep up with it."""
    partitions: int
    """The number that is needed: the larger of the two."""
    at_best: int
    """The target over the FASTER of the two: too few, unless both are equally fast."""


def sizing(target: float, per_producer: float, per_consumer: float) -> Sizing:
    """`per_producer`, `per_consumer`: what one of them was measured to do with one partition. Raises
    ValueError for a rate that is not above 0."""
    for name, rate in (("target", target), ("producer", per_producer), ("consumer", per_consumer)):
        if not 0 < rate < math.inf:
            raise ValueError(f"the {name} throughput is above 0, not {rate:g}")
    by_producers, by_consumers = math.ceil(target / per_producer), math.ceil(target / per_consumer)
    best = math.ceil(target / max(per_producer, per_consumer))
    return Sizing(by_producers, by_consumers, max(by_producers, by_consumers), best)

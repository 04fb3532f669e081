"""The target of a group: what an assignor wants each member to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.assignors import uniform
from ringleader.coordinator.consumer_groups.assignors.model import (
    Assignor,
    Candidate,
    Facts,
    Shares,
    Work,
)
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import Target
from ringleader.coordinator.consumer_groups.topics import Topics

PARTITION_BYTES = 16
"""Of a record that are as much work as looking at a partition or topic."""


class AssignorError(Exception):
    """An assignor raised, or its answer breaks a rule; the text says which one."""


class Aimed(NamedTuple):
    """The new target of a member, ready to take effect."""

    member: Candidate
    wanted: Target
    """As it is read from the record."""
    record: records.Record


class Made(NamedTuple):
    """The target of a group, ready to take effect."""

    aimed: list[Aimed]
    """Members whose targets are other ones than before."""
    dealt: dict[bytes, int] | None = None
    """If it came about so: see `group.Dealt.counts`."""


Rates: TypeAlias = Mapping[str, Mapping[int, tuple[int, float]]]
"""Topic -> partition -> an offset, and records per second; negative: not known."""

NO_RATES: Rates = {}


def question(
    group: ConsumerGroup, topics: Topics, rates: Rates = NO_RATES, first: str = ""
) -> Work[tuple[list[Candidate], dict[bytes, int], Facts]]:
    """The input of an assignor: the members as they are before the first yield. `first`: see `Facts`."""
    members = [
        (one.member_id, group.topic_names(one), one.target, one.subscription)
        for one in group.members.values()
    ]
    names = list(group.subscribed_topics())
    yield len(members) + len(names)
    ids: dict[frozenset[str], frozenset[bytes]] = {}
    candidates: list[Candidate] = []
    for member_id, subscribed, target, described in members:
        known = ids.get(subscribed)
        if known is None:
            known = ids[subscribed] = topics.ids(subscribed)
            yield len(subscribed)
        candidates.append(Candidate(member_id, known, target, described.instance_id, described.rack_id))
    there = [topic for name in names if (topic := topics.named(name)) is not None]
    counts = {topic.topic_id: topic.partitions for topic in there}
    racks = {topic.topic_id: topic.racks for topic in there if topic.racks}
    measured: dict[bytes, list[float]] = {}
    for topic in there:
        of_topic = rates.get(topic.name, {})
        if any(rate > 0 for _, rate in of_topic.values()):
            numbers = range(topic.partitions)
            measured[topic.topic_id] = [max(0.0, of_topic.get(one, (0, 0.0))[1]) for one in numbers]
            yield topic.partitions
    return candidates, counts, Facts(racks, measured, first)


def compute(
    group: ConsumerGroup, topics: Topics, assignor: Assignor, rates: Rates = NO_RATES, first: str = ""
) -> Work[Made]:
    """Ask the assignor; the targets that are other ones than before. The group and the topics may change
    meanwhile. `first`: see `Facts`. Raises `AssignorError`."""
    if assignor is uniform.assign:
        going_on = continued(group, topics, first)
        if going_on is not None:
            return (yield from going_on)
    members, counts, facts = yield from question(group, topics, rates, first)
    try:
        shares = yield from assignor(members, counts, facts)
    except Exception as error:
        raise AssignorError(f"the assignor raised {error!r}") from error
    yield from check(shares, members, counts)
    made = yield from aimed(group.group_id, members, shares)
    return Made(made, counts if assignor is uniform.assign and uniform.alike(members) else None)


def continued(group: ConsumerGroup, topics: Topics, first: str = "") -> Work[Made] | None:
    """The target that `compute` makes by `uniform`, from what has changed since it dealt the last one out;
    None: more has changed than it can go on from. Only what moves is looked at partition by partition: in a
    large group that one member leaves, or joins, this is a small part of it."""
    last, names = group.dealt, group.names_of_all
    if last is None or names is None:
        return None
    there = [topic for name in names if (topic := topics.named(name)) is not None]
    counts = {topic.topic_id: topic.partitions for topic in there}
    if any(counts.get(topic_id, 0) < count for topic_id, count in last.counts.items()):
        return None  # partitions that members have are there no more
    free = {topic_id: set(some) for topic_id, some in last.left.items() if some}
    for topic_id, count in counts.items():
        had = last.counts.get(topic_id, 0)
        if count > had:
            free.setdefault(topic_id, set()).update(range(had, count))
    members = group.members.values()
    loads = {one.member_id: one.load for one in members}
    if sum(loads.values()) + sum(map(len, free.values())) != sum(counts.values()):
        return None  # members had gone when it took effect
    known = {one.member_id: (one.target, one.subscription.instance_id) for one in members}
    return _deal_on(group.group_id, known, counts, free, loads, first)


def _deal_on(
    group_id: str,
    members: dict[str, tuple[Target, str | None]],
    counts: dict[bytes, int],
    free: dict[bytes, set[int]],
    loads: dict[str, int],
    first: str,
) -> Work[Made]:
    shares: Shares = {}

    def share_of(member_id: str) -> dict[bytes, frozenset[int]]:
        found = shares.get(member_id)
        if found is None:
            found = shares[member_id] = dict(members[member_id][0])
        return found

    yield (len(members) + len(counts)) // 8
    yield from uniform.deal(loads, free, share_of, first)
    topics = frozenset(counts)
    changed = [Candidate(one, topics, *of) for one, of in members.items() if one in shares]
    return Made((yield from aimed(group_id, changed, shares)), counts)


def check(shares: Shares, members: list[Candidate], counts: dict[bytes, int]) -> Work[None]:
    """Raises `AssignorError` if a partition has two owners or none, or a member gets what it does not
    subscribe to or what does not exist."""
    topics_of = {one.member_id: one.topics for one in members}
    given: dict[bytes, list[frozenset[int]]] = {topic_id: [] for topic_id in counts}
    for member_id, own in shares.items():
        subscribed = topics_of.get(member_id)
        if subscribed is None:
            raise AssignorError(f"{member_id} is no member")
        if not own.keys() <= subscribed or not own.keys() <= counts.keys():
            strange = min(
                topic_id for topic_id in own if topic_id not in subscribed or topic_id not in counts
            )
            raise AssignorError(f"{member_id} does not subscribe to topic {strange.hex()}")
        for topic_id, partitions in own.items():
            given[topic_id].append(partitions)
        yield len(own) // 2
    wanted = frozenset[bytes]().union(*{one.topics for one in members})
    for topic_id, some in given.items():
        numbers = frozenset[int]().union(*some)
        if len(numbers) < sum(map(len, some)):
            raise AssignorError(f"a partition of topic {topic_id.hex()} has two owners")
        complete = numbers == set(range(counts[topic_id])) if topic_id in wanted else not numbers
        if not complete:
            raise AssignorError(f"topic {topic_id.hex()} is not assigned completely")
        yield (len(some) + len(numbers)) // 8


def aimed(group_id: str, members: list[Candidate], shares: Shares) -> Work[list[Aimed]]:
    """Those of the shares that are other ones than before."""
    made: list[Aimed] = []
    for one in members:
        share = shares[one.member_id]
        if share != one.target:
            made.append(aim(group_id, one, share))
            yield len(made[-1].record[1] or b"") // PARTITION_BYTES
        yield 1
    return made


def aim(group_id: str, member: Candidate, share: Target) -> Aimed:
    """A member is to have this share."""
    wanted = dict(sorted(share.items()))
    record = records.target(group_id, member.member_id, wanted)
    return Aimed(member, wanted, record)

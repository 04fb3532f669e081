"""The target of a group: what an assignor wants each member to have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ringleader.coordinator.consumer_groups import memory, records
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
    held_bytes: int
    """The memory that it takes; see `memory`."""
    record: records.Record


Rates: TypeAlias = Mapping[str, Mapping[int, tuple[int, float]]]
"""Topic -> partition -> an offset, and records per second; negative: not known."""

NO_RATES: Rates = {}


def question(
    group: ConsumerGroup, topics: Topics, rates: Rates = NO_RATES
) -> Work[tuple[list[Candidate], dict[bytes, int], Facts]]:
    """The input of an assignor: the members as they are before the first yield."""
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
    return candidates, counts, Facts(racks, measured)


def compute(
    group: ConsumerGroup, topics: Topics, assignor: Assignor, rates: Rates = NO_RATES
) -> Work[list[Aimed]]:
    """Ask the assignor; the targets that are other ones than before. The group and the topics may change
    meanwhile. Raises `AssignorError`."""
    members, counts, facts = yield from question(group, topics, rates)
    try:
        shares = yield from assignor(members, counts, facts)
    except Exception as error:
        raise AssignorError(f"the assignor raised {error!r}") from error
    yield from check(shares, members, counts)
    return (yield from aimed(group.group_id, members, shares))


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
    return Aimed(member, wanted, memory.target_bytes(wanted), record)

"""The target of a group: what an assignor wants each member to have."""

from __future__ import annotations

from ringleader.coordinator.consumer_groups.assignors.model import Assignor, Candidate, Shares
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.topics import Topics


class AssignorError(Exception):
    """An assignor raised, or its answer breaks a rule; the text says which one."""


def question(group: ConsumerGroup, topics: Topics) -> tuple[list[Candidate], dict[bytes, int]]:
    """The input of an assignor."""
    ids: dict[frozenset[str], frozenset[bytes]] = {}
    members: list[Candidate] = []
    for one in group.members.values():
        names = group.topic_names(one)
        known = ids.get(names)
        if known is None:
            known = ids[names] = topics.ids(names)
        members.append(Candidate(one.member_id, known, one.target, one.subscription.instance_id))
    counts = {
        topic.topic_id: topic.partitions
        for name in group.subscribed_topics()
        if (topic := topics.named(name)) is not None
    }
    return members, counts


def compute(group: ConsumerGroup, topics: Topics, assignor: Assignor) -> Shares:
    """Ask the assignor. Raises `AssignorError`."""
    members, counts = question(group, topics)
    try:
        shares = assignor(members, counts)
    except Exception as error:
        raise AssignorError(f"the assignor raised {error!r}") from error
    check(shares, members, counts)
    return shares


def check(shares: Shares, members: list[Candidate], counts: dict[bytes, int]) -> None:
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
    wanted = frozenset[bytes]().union(*{one.topics for one in members})
    for topic_id, some in given.items():
        numbers = frozenset[int]().union(*some)
        if len(numbers) < sum(map(len, some)):
            raise AssignorError(f"a partition of topic {topic_id.hex()} has two owners")
        complete = numbers == set(range(counts[topic_id])) if topic_id in wanted else not numbers
        if not complete:
            raise AssignorError(f"topic {topic_id.hex()} is not assigned completely")

"""Racks (KIP-881) in random groups: the promises hold whatever members and brokers say of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

import pytest

from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    RANGE,
    STICKY,
    Assignment,
    Assignor,
    AssignorMember,
    PartitionRacks,
    sticky_user_data,
)

RACKS = "abcd"
GROUPS = 1_000
ROUNDS = 4
"""A cooperative group takes two to give away and to hand out; then nothing moves."""

STICKY_ONES = pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY], ids=lambda a: a.name)


def shuffled(
    draw: random.Random, same_topics: bool
) -> tuple[list[AssignorMember], dict[str, int], PartitionRacks]:
    """A new group: most members have a rack, partitions are near to some of them or to none."""
    topics = [f"t{number}" for number in range(draw.randint(1, 4))]
    counts = {topic: draw.randint(1, 8) for topic in topics}
    known = RACKS[: draw.randint(1, 4)]
    members = [
        AssignorMember(
            f"m{number}",
            topics=topics if same_topics else draw.sample(topics, draw.randint(0, len(topics))),
            rack=draw.choice([*known, draw.choice(["", None, "elsewhere"])]),
        )
        for number in range(draw.randint(1, 9))
    ]
    return members, counts, placed(draw, counts, known)


def placed(draw: random.Random, counts: Mapping[str, int], racks: str) -> PartitionRacks:
    """Up to two replicas of each partition; of some topics, the first partitions only are known."""
    return {
        topic: [
            frozenset(draw.choice(racks) for _ in range(draw.randint(0, 2)))
            for _ in range(draw.choice([count, count, draw.randint(0, count)]))
        ]
        for topic, count in counts.items()
    }


def changed(
    draw: random.Random, assignor: Assignor, members: list[AssignorMember], had: Assignment, generation: int
) -> Iterator[AssignorMember]:
    """The members as they come back: some have gone, some moved to another rack, some are new."""
    for member in members:
        if draw.random() < 0.8:
            back = claiming(assignor, member, had, generation)
            yield back if draw.random() < 0.9 else replace(back, rack=draw.choice(RACKS))
    for number in range(draw.randint(0, 3)):
        yield replace(draw.choice(members), member_id=f"n{generation}-{number}", owned={}, user_data=None)


def claiming(assignor: Assignor, member: AssignorMember, had: Assignment, generation: int) -> AssignorMember:
    owned = had[member.member_id]
    if assignor is STICKY:
        return replace(member, user_data=sticky_user_data(owned, generation))
    return replace(member, owned=owned, generation=generation)


def settled(
    assignor: Assignor,
    members: list[AssignorMember],
    counts: Mapping[str, int],
    where: PartitionRacks,
    generation: int,
) -> tuple[Assignment, int]:
    """The assignment when another round moves nothing, and its generation. That it comes to this is promised
    where all read the same topics."""
    for _ in range(ROUNDS):
        before = assignor.assign(members, counts, where)
        once_each(members, counts, before, all_of_them=assignor is not COOPERATIVE_STICKY)
        generation += 1
        members = [claiming(assignor, one, before, generation) for one in members]
        got = assignor.assign(members, counts, where)
        if got == before:
            once_each(members, counts, got, all_of_them=True)
            return got, generation
    assert len({frozenset(member.topics) for member in members}) > 1, f"no rest after {ROUNDS} rounds"
    return got, generation


def once_each(
    members: list[AssignorMember], counts: Mapping[str, int], got: Assignment, *, all_of_them: bool
) -> None:
    """Every partition of a topic that somebody reads has one owner, who reads the topic."""
    assert got.keys() == {member.member_id for member in members}
    owned = [(topic, one) for share in got.values() for topic, many in share.items() for one in many]
    wanted = set(chain.from_iterable(member.topics for member in members))
    there = {(topic, one) for topic, count in counts.items() if topic in wanted for one in range(count)}
    assert len(owned) == len(set(owned))
    assert set(owned) == there if all_of_them else set(owned) <= there
    for member in members:
        assert got[member.member_id].keys() <= set(member.topics)


def sizes(got: Assignment) -> list[int]:
    return [sum(map(len, share.values())) for share in got.values()]


@STICKY_ONES
@pytest.mark.parametrize("same_topics", [True, False])
def test_every_partition_once_however_near(assignor: Assignor, same_topics: bool, seed: int) -> None:
    """Joining, leaving, moving to another rack; replicas move, too."""
    draw = random.Random(seed)
    for _ in range(GROUPS):
        members, counts, where = shuffled(draw, same_topics)
        got, generation = settled(assignor, members, counts, where, 0)
        if same_topics:
            assert max(sizes(got)) - min(sizes(got)) <= 1
        members = list(changed(draw, assignor, members, got, generation))
        if draw.random() < 0.3:
            where = placed(draw, counts, RACKS)
        if members:
            got, _ = settled(assignor, members, counts, where, generation)
            if same_topics:
                assert max(sizes(got)) - min(sizes(got)) <= 1


def test_ranges_are_balanced_however_near(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(GROUPS):
        members, counts, where = shuffled(draw, draw.random() < 0.5)
        got = RANGE.assign(members, counts, where)
        once_each(members, counts, got, all_of_them=True)
        for topic in counts:
            shares = [len(got[one.member_id].get(topic, ())) for one in members if topic in one.topics]
            assert not shares or max(shares) - min(shares) <= 1


@STICKY_ONES
def test_members_that_can_be_near_are_near(assignor: Assignor, seed: int) -> None:
    """As many members in each rack as it has partitions, one replica of each: all of them can be near."""
    draw = random.Random(seed)
    for _ in range(100):
        racks = [draw.choice(RACKS) for _ in range(draw.randint(1, 12))]
        each = draw.randint(1, 3)
        members = [AssignorMember(f"m{n}", topics=["t"], rack=rack) for n, rack in enumerate(racks)]
        replicas = [frozenset(rack) for rack in racks for _ in range(each)]
        draw.shuffle(replicas)
        counts, where = {"t": len(replicas)}, {"t": replicas}
        got, generation = settled(assignor, members, counts, where, 0)
        # From anywhere: who has what is far gives it up for what is near.
        draw.shuffle(racks)
        moved = [replace(one, rack=rack) for one, rack in zip(members, racks, strict=True)]
        again = [claiming(assignor, one, got, generation) for one in moved]
        for found, at in ((got, members), (settled(assignor, again, counts, where, generation)[0], moved)):
            for one in at:
                assert all(one.rack in replicas[partition] for partition in found[one.member_id]["t"])

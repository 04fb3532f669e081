"""Faults of the assignors of aiokafka and kafka-python that ours in their place do not have.

Each test first shows the fault in the library's own assignor: when that is fixed, the test fails and can go.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as AiokafkaSticky,
)
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from ringleader.clients import aiokafka as for_aiokafka
from ringleader.clients import kafka_python as for_kafka_python
from tests.support.plugged import Topics, info, shares


def sizes(assigned: Mapping[str, Any]) -> dict[str, int]:
    return {name: len(share) for name, share in shares(assigned).items()}


def held(topic: str, partitions: Sequence[int]) -> Any:
    """A share as kafka-python hands it to an assignor."""
    return ConsumerProtocolAssignment.decode(
        ConsumerProtocolAssignment(0, [(topic, list(partitions))], b"").encode()
    )


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (RangePartitionAssignor, for_kafka_python.Range),
        (RoundRobinPartitionAssignor, for_kafka_python.RoundRobin),
    ],
)
def test_kafka_python_forgets_a_static_member_when_static_and_dynamic_come_in_turn(
    theirs: Any, ours: Any
) -> None:
    members = [info("m1", ["t"], "i1"), info("m2", ["t"]), info("m3", ["t"], "i3")]
    assert sizes(theirs.assign(Topics(t=6), members)) == {"m1": 0, "m2": 3, "m3": 3}
    assert sizes(ours().assign(Topics(t=6), members)) == {"m1": 2, "m2": 2, "m3": 2}


def test_kafka_pythons_round_robin_knows_no_different_topics() -> None:
    members = [info("m1", ["t"]), info("m2", ["t", "u"])]
    with pytest.raises(KeyError):
        RoundRobinPartitionAssignor.assign(Topics(t=2, u=2), members)
    ours = shares(for_kafka_python.RoundRobin().assign(Topics(t=2, u=2), members))
    assert ours == {"m1": [("t", 0)], "m2": [("t", 1), ("u", 0), ("u", 1)]}


def test_kafka_pythons_cooperative_members_do_not_say_since_when_they_own() -> None:
    """So the last one that claims a partition has it, also when it missed a generation."""

    def assigned(kind: Any, *order: str) -> dict[str, list[tuple[str, int]]]:
        plugs = {"fresh": kind(), "stale": kind()}
        plugs["fresh"].on_assignment(held("t", [0, 1]), 5)
        plugs["stale"].on_assignment(held("t", [0, 1]), 4)
        members = [info(name, ["t"], plug=plugs[name]) for name in order]
        return shares(kind().assign(Topics(t=2), members))

    both_orders = [("fresh", "stale"), ("stale", "fresh")]
    theirs = [assigned(CooperativeStickyAssignor, *order) for order in both_orders]
    assert theirs[0] != theirs[1]
    for order in both_orders:
        ours = assigned(for_kafka_python.CooperativeSticky, *order)
        assert len(ours["fresh"]) == 1
        assert ours["stale"] == []  # what it gets is withheld until `fresh` has given it up


def test_kafka_pythons_sticky_members_do_not_understand_those_of_other_clients() -> None:
    """They put a version in front of the user data, and expect one; Java does not. So neither keeps what it
    has when the other one leads. Ours reads both."""
    had = {"a": [0, 1], "b": [2, 3], "c": [4, 5]}
    plugs = {"a": for_kafka_python.Sticky(), "b": for_kafka_python.Sticky(), "c": StickyPartitionAssignor()}
    members = []
    for name, plug in plugs.items():
        plug.on_assignment(held("t", had[name]), 5)
        joined = info(name, ["t"], plug=plug)
        joined.metadata = ConsumerProtocolSubscription.decode(joined.metadata.encode())  # as it comes
        members.append(joined)
    kept = {name: [("t", p) for p in partitions] for name, partitions in had.items()}
    theirs = shares(plugs["c"].assign(Topics(t=6), members))
    assert theirs["c"] == kept["c"]
    assert theirs["a"] != kept["a"]
    assert shares(plugs["a"].assign(Topics(t=6), members)) == kept


def again(first: Any, second: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A rebalance of two aiokafka consumers of one process in which nothing has changed: before, after."""
    before = first.assign(Topics(t=4), {"a": first.metadata(["t"]), "b": second.metadata(["t"])})
    for plug, name in ((first, "a"), (second, "b")):
        plug.on_assignment(ConsumerProtocolMemberAssignment.decode(before[name].encode()))
    after = second.assign(Topics(t=4), {"a": first.metadata(["t"]), "b": second.metadata(["t"])})
    return shares(before), shares(after)


def test_aiokafka_loses_the_claims_of_all_consumers_of_a_process_but_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("member_assignment", "_latest_partition_movements"):
        monkeypatch.setattr(AiokafkaSticky, name, None)
    before, after = again(AiokafkaSticky, AiokafkaSticky)
    assert not set(before["a"]) & set(after["a"])  # all that it had has moved, for nothing
    before, after = again(for_aiokafka.sticky(), for_aiokafka.sticky())
    assert before == after


def missed_one(fresh: Any, stale: Any) -> list[dict[str, Any]]:
    """`stale` had all partitions, was away while `fresh` got them, and is back with its old claim."""
    everything = ConsumerProtocolMemberAssignment(0, [("t", [0, 1, 2, 3])], b"")
    for plug in (fresh, stale):
        plug.on_assignment(everything)
    alone = fresh.assign(Topics(t=4), {"fresh": fresh.metadata(["t"])})["fresh"]
    fresh.on_assignment(ConsumerProtocolMemberAssignment.decode(alone.encode()))
    metadata = {"fresh": fresh.metadata(["t"]), "stale": stale.metadata(["t"])}
    return [
        shares(fresh.assign(Topics(t=4), dict(order)))
        for order in (metadata.items(), [*metadata.items()][::-1])
    ]


def test_aiokafka_does_not_know_a_claim_that_is_out_of_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """It never tells its assignor the generation: who is named first keeps what both claim."""
    for name in ("member_assignment", "_latest_partition_movements"):
        monkeypatch.setattr(AiokafkaSticky, name, None)
    theirs = missed_one(AiokafkaSticky, AiokafkaSticky)
    assert AiokafkaSticky.generation == -1
    assert theirs[0] != theirs[1]
    ours = missed_one(for_aiokafka.sticky(), for_aiokafka.sticky())
    assert ours[0] == ours[1]
    assert ours[0] == {"fresh": [("t", 0), ("t", 1)], "stale": [("t", 2), ("t", 3)]}


# ---- work ----


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """How many functions are called, Python's and C's: work without a clock."""
    calls = [0]

    def count(frame: FrameType, event: str, argument: object) -> None:
        calls[0] += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def mixed(members: int) -> dict[str, list[str]]:
    """Each wants five of ten topics."""
    return {
        f"m{n:03}": sorted(f"t{(n * 3 + step * (1 + n % 3)) % 10}" for step in range(5))
        for n in range(members)
    }


def of_aiokafka(plug: Any, members: int, partitions: int) -> int:
    topics = Topics(**{f"t{n}": partitions // 10 for n in range(10)})
    metadata = {name: plug.metadata(wanted) for name, wanted in mixed(members).items()}
    with counted_calls() as calls:
        answer = plug.assign(topics, metadata)
    assert sum(sizes(answer).values()) == partitions
    return calls[0]


def of_kafka_python(plug: Any, members: int, partitions: int) -> int:
    topics = Topics(**{f"t{n}": partitions // 10 for n in range(10)})
    infos = [info(name, wanted, plug=plug) for name, wanted in mixed(members).items()]
    with counted_calls() as calls:
        answer = plug.assign(topics, infos)
    assert sum(sizes(answer).values()) == partitions
    return calls[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("work", "theirs", "ours"),
    [
        (of_aiokafka, AiokafkaSticky, for_aiokafka.sticky()),
        (of_kafka_python, StickyPartitionAssignor(), for_kafka_python.Sticky()),
    ],
    ids=["aiokafka", "kafka-python"],
)
def test_mixed_topics_take_them_longer_and_longer(
    work: Callable[[Any, int, int], int], theirs: Any, ours: Any
) -> None:
    """Four times the members and partitions: ours has four times as much to do, they have ever more. (For
    500 members and 10,000 partitions they take more than 100 s.)"""
    small, large = (10, 100), (40, 400)
    assert work(theirs, *large) > 6 * work(theirs, *small)
    assert work(ours, *large) < 4.5 * work(ours, *small)
    assert work(theirs, *large) > 10 * work(ours, *large)


@pytest.mark.parametrize("same", [True, False])
def test_the_work_on_the_loop_is_bounded(same: bool) -> None:
    """aiokafka computes on the application's loop: a bounded number of calls for each partition and each
    subscription."""
    for members, partitions in ((20, 1_000), (100, 1_000), (20, 10_000), (100, 10_000)):
        wanted = {name: ["t0", "t1"] for name in mixed(members)} if same else mixed(members)
        topics = Topics(**{f"t{n}": partitions // (2 if same else 10) for n in range(2 if same else 10)})
        plugs = {name: for_aiokafka.sticky() for name in wanted}
        before: dict[str, Any] = {}
        for _ in range(2):
            metadata = {name: plugs[name].metadata(wanted[name]) for name in wanted}
            with counted_calls() as calls:
                before = for_aiokafka.sticky().assign(topics, metadata)
            pairs = sum(map(len, wanted.values()))
            assert calls[0] < 20 * partitions + 60 * pairs
            for name, plug in plugs.items():
                plug.on_assignment(before[name])


def test_a_long_computation_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plug = for_aiokafka.sticky()
    plug.assign(Topics(t=2), {"a": plug.metadata(["t"])})
    assert not caplog.records
    monkeypatch.setattr(for_aiokafka, "LONG_S", 0.0)
    plug.assign(Topics(t=2), {"a": plug.metadata(["t"])})
    assert "2 partitions to 1 members has held the event loop" in caplog.text

"""The next map follows from the members' reports, with any leader."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.cluster.controller import next_map
from ringleader.coordinator.cluster.map import NOBODY, ClusterMap, MapError, NodeInfo
from ringleader.coordinator.cluster.state import Drain, MemberState, Pin
from ringleader.coordinator.security.listeners import Address, NamedAddress

PARTITIONS = 12


def info(node_id: int) -> NodeInfo:
    return NodeInfo(node_id, f"node-{node_id}", 9092, "0.1.0")


@dataclass
class Nodes:
    """Nodes that do what the map says, at once."""

    cluster: ClusterMap | None = None

    def turn(self, there: Iterable[int], *wishes: MemberState, leaving: Iterable[int] = ()) -> ClusterMap:
        """One generation with these nodes."""
        known = self.cluster
        states = [
            MemberState(
                info(node_id),
                known,
                dict.fromkeys(known.owned_by(node_id) if known else (), 0),
                node_id in leaving,
            )
            for node_id in there
        ]
        self.cluster = next_map([*states, *wishes], min(there, default=NOBODY), PARTITIONS)
        assert ClusterMap.decode(self.cluster.encode()) == self.cluster
        return self.cluster

    def settle(self, there: Iterable[int], *wishes: MemberState, leaving: Iterable[int] = ()) -> ClusterMap:
        """Until nothing is to move any more."""
        cluster = self.turn(there, *wishes, leaving=leaving)
        for _ in range(PARTITIONS):
            if not cluster.moving:
                return cluster
            cluster = self.turn(there, leaving=leaving)
        raise AssertionError(f"it does not come to rest: {cluster}")


def counts(cluster: ClusterMap) -> dict[int, int]:
    return {node.node_id: len(cluster.owned_by(node.node_id)) for node in cluster.nodes}


def test_the_first_map_gives_out_everything_at_once() -> None:
    cluster = Nodes().turn([1, 2, 3])
    assert (cluster.generation, cluster.controller, cluster.moving) == (1, 1, {})
    assert counts(cluster) == {1: 4, 2: 4, 3: 4}


def test_the_shards_of_a_dead_node_move_at_once_and_nothing_else() -> None:
    nodes = Nodes()
    before = nodes.turn([1, 2, 3])
    after = nodes.turn([2, 3])
    assert counts(after) == {2: 6, 3: 6}
    assert not after.moving
    for partition in range(PARTITIONS):
        if before.owners[partition] != 1:
            assert after.owners[partition] == before.owners[partition]


def test_a_node_that_joins_gets_its_share_a_few_at_a_time() -> None:
    nodes = Nodes()
    nodes.turn([1, 2])
    first = nodes.turn([1, 2, 3])
    assert len(first.owned_by(3)) == 2
    assert len(first.moving) == 2
    assert counts(nodes.settle([1, 2, 3])) == {1: 4, 2: 4, 3: 4}


def test_the_next_leader_goes_on_where_the_last_one_was() -> None:
    nodes = Nodes()
    nodes.turn([1, 2])
    half = nodes.turn([1, 2, 3])
    newcomer = MemberState(info(3), None, dict.fromkeys(half.owned_by(3), 0))
    old = replace(half, generation=half.generation - 1, owners=(NOBODY,) * PARTITIONS)
    others = [MemberState(info(1), old, dict.fromkeys(half.owned_by(1), 0)), MemberState(info(2), half)]
    cluster = next_map([newcomer, *others], 3, PARTITIONS)
    assert (cluster.generation, cluster.controller) == (half.generation + 1, 3)
    assert [
        one for one, (a, b) in enumerate(zip(half.owners, cluster.owners, strict=True)) if a != b
    ] == list(half.moving), "the rest of what was planned, as the newest map says"


def test_a_node_that_leaves_hands_over_everything_a_few_at_a_time() -> None:
    nodes = Nodes()
    nodes.turn([1, 2, 3])
    nodes.turn([1, 2])
    nodes.turn([1, 2, 3])
    first = nodes.turn([1, 2, 3], leaving=[2])
    assert first.leaving == {2}
    assert first.moving, "not all at once"
    assert first.owned_by(2)
    cluster = nodes.settle([1, 2, 3], leaving=[2])
    assert counts(cluster) == {1: 6, 2: 0, 3: 6}


def test_the_last_node_keeps_what_it_has_when_it_leaves() -> None:
    nodes = Nodes()
    before = nodes.turn([1])
    assert nodes.turn([1], leaving=[1]).owners == before.owners


def test_a_drained_node_is_empty_until_it_is_wanted_again_or_was_gone() -> None:
    nodes = Nodes()
    nodes.turn([1, 2, 3])
    assert counts(nodes.settle([1, 2, 3], MemberState(drains=(Drain(3, True),)))) == {1: 6, 2: 6, 3: 0}
    assert counts(nodes.settle([1, 2, 3])) == {1: 6, 2: 6, 3: 0}, "it needs no reminder"
    assert counts(nodes.settle([1, 2, 3], MemberState(drains=(Drain(3, False),))))[3] == 4
    nodes.settle([1, 2, 3], MemberState(drains=(Drain(3, True),)))
    nodes.turn([1, 2])
    assert counts(nodes.settle([1, 2, 3]))[3] == 4


def test_when_all_are_drained_somebody_must_own_the_partitions_all_the_same() -> None:
    nodes = Nodes()
    cluster = nodes.settle([1, 2], MemberState(drains=(Drain(1, True), Drain(2, True))))
    assert counts(cluster) == {1: 6, 2: 6}


def test_a_partition_goes_where_the_operator_wants_it_and_stays() -> None:
    nodes = Nodes()
    cluster = nodes.turn([1, 2])
    [partition, *_] = cluster.owned_by(1)
    cluster = nodes.settle([1, 2], MemberState(pins=(Pin(partition, 2), Pin(999, 2))))
    assert cluster.owners[partition] == 2
    assert cluster.pinned == {partition: 2}
    assert nodes.settle([1, 2]).owners[partition] == 2
    assert nodes.turn([1]).owners[partition] == 1
    assert nodes.turn([1]).pinned == {}


def test_a_node_that_has_not_taken_over_what_it_was_given_gets_no_more() -> None:
    nodes = Nodes()
    nodes.turn([1])
    half = nodes.turn([1, 2])
    busy = [
        MemberState(info(1), half, dict.fromkeys(half.owned_by(1), 0)),
        MemberState(info(2), half, {}),
    ]
    assert next_map(busy, 1, PARTITIONS).owners == half.owners


@given(st.lists(st.tuples(st.sets(st.integers(1, 5)), st.sets(st.integers(1, 5))), max_size=12))
def test_whatever_happens_it_comes_to_rest_with_everything_owned(
    turns: list[tuple[set[int], set[int]]],
) -> None:
    nodes = Nodes()
    for there, leaving in turns:
        nodes.turn(there, leaving=leaving)
    cluster = nodes.settle([1, 2, 3])
    assert counts(cluster) == {1: 4, 2: 4, 3: 4}


def test_what_a_node_cannot_serve_moves_at_once_and_back_when_it_is_well() -> None:
    nodes = Nodes()
    before = nodes.turn([1, 2, 3])
    mine = before.owned_by(2)

    def turn(cluster: ClusterMap, *, unable: Iterable[int] = (), wary: bool = False) -> ClusterMap:
        states = [
            MemberState(info(one), cluster, dict.fromkeys(cluster.owned_by(one), 0)) for one in (1, 2, 3)
        ]
        states[1] = replace(states[1], unable=frozenset(unable), wary=wary)
        return next_map(states, 1, PARTITIONS)

    cut = turn(before, unable=sorted(mine)[:3])
    assert cut.owned_by(2) == set(sorted(mine)[3:])
    assert not cut.moving
    assert turn(cut, wary=True).owners == cut.owners, "it is not trusted yet"
    assert len(turn(cut).moving) + len(turn(cut).owned_by(2)) == 4
    everybody = [
        MemberState(info(one), before, dict.fromkeys(before.owned_by(one), 0), unable=mine)
        for one in (1, 2, 3)
    ]
    assert next_map(everybody, 1, PARTITIONS).owners == before.owners, "nobody is better"


def test_a_planned_move_to_a_node_that_is_wary_by_now_is_dropped() -> None:
    nodes = Nodes()
    nodes.turn([1, 2])
    half = nodes.turn([1, 2, 3])
    assert half.moving
    states = [MemberState(info(one), half, dict.fromkeys(half.owned_by(one), 0)) for one in (1, 2, 3)]
    states[2] = replace(states[2], wary=True)
    after = next_map(states, 1, PARTITIONS)
    assert (after.owners, after.moving) == (half.owners, {})


def test_what_older_versions_tell_has_nothing_that_they_cannot_serve() -> None:
    state = json.loads(MemberState(info(1), unable=frozenset({3}), wary=True).encode())
    del state["unable"], state["wary"]
    assert MemberState.decode(json.dumps(state).encode()) == MemberState(info(1))


def test_a_members_state_reads_back_as_it_was_written() -> None:
    known = Nodes().turn([1, 2])
    state = MemberState(info(1), known, {3: 70, 1: 0}, True, (Drain(2, True),), (Pin(0, 1),))
    state = replace(state, unable=frozenset({4, 5}), wary=True)
    assert MemberState.decode(state.encode()) == state
    assert MemberState.decode(MemberState().encode()) == MemberState()


def test_older_versions_read_what_a_plain_node_tells_of_nodes_with_listeners() -> None:
    """One that took the place of such a node may lead before there is another map."""
    secured = (NamedAddress("SSL", Address("two.example", 9443)),)
    before = Nodes().turn([1, 2])
    known = replace(before, nodes=(info(1), info(2)._replace(listeners=secured)))
    assert known.format == 2
    state = json.loads(MemberState(info(1), known).encode())
    assert state["format"] == json.loads(state["known"])["format"] == 1
    read = MemberState.decode(MemberState(info(1), known).encode())
    assert next_map([read], 1, PARTITIONS) == next_map([MemberState(info(1), known)], 1, PARTITIONS)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'"format":1', b'"format":3', "state of a node has format 3"),
        (b'"loads":[]', b'"loads":[[-1,1]]', "no number from 0"),
        (b'"node":null', b'"node":[1]', "not enough values"),
        (b'"known":null', b'"known":{}', "map of the cluster cannot be read"),
        (b'"pins":[]', b'"pins":7', "no list"),
    ],
)
def test_what_is_no_state_is_refused(old: bytes, new: bytes, says: str) -> None:
    data = MemberState().encode()
    assert old in data
    with pytest.raises(MapError, match=says):
        MemberState.decode(data.replace(old, new))


def test_the_leaders_of_the_logs_count() -> None:
    leaders = {partition: 1 + partition // (PARTITIONS // 2) for partition in range(PARTITIONS)}
    states = [MemberState(info(node_id)) for node_id in (1, 2)]
    cluster = next_map(states, 1, PARTITIONS, leaders)
    for node_id in (1, 2):
        assert len({leaders[partition] for partition in cluster.owned_by(node_id)}) == 1


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_that_tell_the_load_of_a_partition_the_higher_counts(first: int) -> None:
    """One of them woke up just now, and has not served it for a while."""
    before = ClusterMap(1, 1, (info(1), info(2)), (1, 1, 2, 2))
    states = [
        MemberState(info(1), before, {0: 1_000, 1: 1_000}),
        MemberState(info(2), before, {0: 0, 1: 0, 2: 0, 3: 0}),
    ]
    after = next_map(states[first:] + states[:first], 1, 4)
    heirs = [after.moving.get(partition, owner) for partition, owner in enumerate(after.owners)]
    assert heirs[0] != heirs[1]


def test_load_waits_for_the_end_of_planned_moves() -> None:
    nodes = Nodes()
    nodes.turn([1, 2])
    half = nodes.turn([1, 2, 3])
    hot = sorted(half.owned_by(1) - half.moving.keys())[:2]
    loads = {one: dict.fromkeys(half.owned_by(one), 0) for one in (1, 2, 3)}
    loads[1] |= dict.fromkeys(hot, 1_000)
    after = next_map([MemberState(info(one), half, loads[one]) for one in (1, 2, 3)], 1, PARTITIONS)
    planned, goal = (
        [one.moving.get(partition, owner) for partition, owner in enumerate(one.owners)]
        for one in (half, after)
    )
    assert goal == planned

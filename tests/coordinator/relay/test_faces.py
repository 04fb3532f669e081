"""Nodes in the brokers' place."""

from __future__ import annotations

from ringleader.coordinator.relay.faces import Faces

BROKERS = (1, 2, 3)


def shown(faces: Faces, leaders: list[int]) -> list[int]:
    return [faces.leader(leader, "orders", partition) for partition, leader in enumerate(leaders)]


def test_with_as_many_nodes_each_stands_for_one_broker() -> None:
    faces = Faces(BROKERS, (30, 10, 20))
    assert shown(faces, [1, 2, 3, 1]) == [10, 20, 30, 10]


def test_with_fewer_nodes_all_partitions_of_a_broker_are_at_one_node() -> None:
    faces = Faces(BROKERS, (10, 20))
    assert shown(faces, [1, 2, 3, 1]) == [10, 20, 10, 10]


def test_with_more_nodes_those_of_one_broker_share_its_partitions() -> None:
    faces = Faces(BROKERS, (10, 20, 30, 40))
    found = shown(faces, [1] * 8)
    assert set(found) == {10, 40}
    assert found.count(10) == 4
    assert shown(faces, [2] * 8) == [20] * 8


def test_nobody_leads_nobody() -> None:
    assert Faces(BROKERS, (10,)).leader(-1, "orders", 0) == -1
    assert Faces(BROKERS, (10,)).leader(7, "orders", 0) == -1
    assert Faces(BROKERS, ()).leader(1, "orders", 0) == -1


def test_replicas_keep_their_number_and_have_the_leader_among_them() -> None:
    faces = Faces(BROKERS, (10, 20, 30, 40))
    leader = faces.leader(1, "orders", 1)
    assert faces.replicas([2, 1, 3], 1, leader) == [20, leader, 30]
    assert Faces(BROKERS, (10,)).replicas([2, 1, 3], 1, 10) == [10, 10, 10]

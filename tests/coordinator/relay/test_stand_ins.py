"""Nodes in the brokers' place."""

from __future__ import annotations

from ringleader.coordinator.relay.stand_ins import StandIns

BROKERS = dict.fromkeys((1, 2, 3), "")
ABC = {1: "a", 2: "b", 3: "c"}


def racked(*nodes: int, **racks: str) -> dict[int, str]:
    """In no rack; or `a="10 20"`."""
    of_rack = {int(node): rack for rack, ids in racks.items() for node in ids.split()}
    return dict.fromkeys(nodes, "") | of_rack


def shown(stand_ins: StandIns, leaders: list[int]) -> list[int]:
    return [stand_ins.leader(leader, "orders", partition) for partition, leader in enumerate(leaders)]


def test_with_as_many_nodes_each_stands_for_one_broker() -> None:
    stand_ins = StandIns(BROKERS, racked(30, 10, 20))
    assert shown(stand_ins, [1, 2, 3, 1]) == [10, 20, 30, 10]


def test_with_fewer_nodes_all_partitions_of_a_broker_are_at_one_node() -> None:
    stand_ins = StandIns(BROKERS, racked(10, 20))
    assert shown(stand_ins, [1, 2, 3, 1]) == [10, 20, 10, 10]


def test_with_more_nodes_those_of_one_broker_share_its_partitions() -> None:
    stand_ins = StandIns(BROKERS, racked(10, 20, 30, 40))
    found = shown(stand_ins, [1] * 8)
    assert set(found) == {10, 40}
    assert found.count(10) == 4
    assert shown(stand_ins, [2] * 8) == [20] * 8


def test_nobody_leads_nobody() -> None:
    assert StandIns(BROKERS, racked(10)).leader(-1, "orders", 0) == -1
    assert StandIns(BROKERS, racked(10)).leader(7, "orders", 0) == -1
    assert StandIns(BROKERS, racked()).leader(1, "orders", 0) == -1


def test_replicas_keep_their_number_and_have_the_leader_among_them() -> None:
    stand_ins = StandIns(BROKERS, racked(10, 20, 30, 40))
    leader = stand_ins.leader(1, "orders", 1)
    assert stand_ins.replicas([2, 1, 3], 1, leader) == [20, leader, 30]
    assert StandIns(BROKERS, racked(10)).replicas([2, 1, 3], 1, 10) == [10, 10, 10]


# ---- racks ----


def test_a_broker_has_a_node_of_its_rack() -> None:
    stand_ins = StandIns(ABC, racked(c="10", a="20", b="30"))
    assert shown(stand_ins, [1, 2, 3, 1]) == [20, 30, 10, 20]
    assert stand_ins.replicas([2, 1, 3], 1, 20) == [30, 20, 10]


def test_nodes_of_one_rack_share_the_partitions_of_its_brokers() -> None:
    stand_ins = StandIns({1: "a", 2: "a", 3: "b"}, racked(a="10 20 30", b="40"))
    assert set(shown(stand_ins, [1] * 8)) == {10, 30}
    assert set(shown(stand_ins, [2] * 8)) == {20}
    assert set(shown(stand_ins, [3] * 8)) == {40}


def test_a_broker_in_whose_rack_no_node_is_has_any_node() -> None:
    for brokers in (ABC, ABC | {3: ""}):
        stand_ins = StandIns(brokers, racked(a="10", b="20"))
        assert shown(stand_ins, [1, 2, 3]) == [10, 20, 10]


def test_nodes_that_are_all_in_one_rack_are_as_without_racks() -> None:
    for brokers in (BROKERS, ABC):
        stand_ins = StandIns(brokers, racked(a="10 20 30 40"))
        plain = StandIns(BROKERS, racked(10, 20, 30, 40))
        leaders = [1, 2, 3] * 8
        assert shown(stand_ins, leaders) == shown(plain, leaders)


def test_brokers_without_racks_have_nodes_in_all_racks() -> None:
    stand_ins = StandIns(BROKERS, racked(a="10 20", b="30 40", c="50 60"))
    leader = stand_ins.leader(1, "orders", 0)
    replicas = stand_ins.replicas([1, 2, 3], 1, leader)
    found = {rack: stand_ins.in_rack(rack, [1, 2, 3], [], 1, leader) for rack in "abc"}
    assert set(found.values()) == set(replicas)
    assert [found[rack] // 10 for rack in "abc"] == [leader // 10, 3, 5]


def test_the_node_of_a_rack_is_one_that_clients_find_among_the_replicas() -> None:
    stand_ins = StandIns(ABC, racked(a="10", b="20", c="30"))
    assert stand_ins.in_rack("b", [1, 2], [], 1, 10) == 20
    assert stand_ins.in_rack("c", [1, 2], [], 1, 10) == -1, "no replica there"
    assert stand_ins.in_rack("b", [1, 2], [2], 1, 10) == -1, "offline"
    assert stand_ins.in_rack("d", [1, 2, 3], [], 1, 10) == -1, "no such rack"
    assert stand_ins.in_rack("b", [1, 7], [], 1, 10) == -1, "a broker that was never seen"
    fewer = StandIns({1: "a", 2: "b", 3: "b"}, racked(a="10", b="20"))
    assert fewer.in_rack("b", [1, 2, 3], [3], 1, 10) == -1, "clients take it for offline"

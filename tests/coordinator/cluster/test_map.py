"""The map reads back as it was written; what cannot be read is refused with a sentence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.cluster.map import MAX_BYTES, NOBODY, ClusterMap, MapError, NodeInfo
from ringleader.coordinator.cluster.state import MemberState
from ringleader.coordinator.nodes import NodeAddress
from ringleader.coordinator.security.listeners import MAX_LISTENERS, Address, NamedAddress

NODES = (NodeInfo(1, "one.example", 9092, "0.1.0"), NodeInfo(4, "::1", 9093, "0.1.0"))
MAP = ClusterMap(7, 1, NODES, (1, 4, NOBODY, 1), {1: 1}, frozenset({4}), frozenset({1}), {2: 1})

node_ids = st.integers(0, 2**31 - 1)
ports = st.integers(1, 65_535)
listeners = st.builds(NamedAddress, st.text(max_size=10), st.builds(Address, st.text(max_size=40), ports))
nodes = st.builds(
    NodeInfo,
    node_ids,
    st.text(max_size=40),
    ports,
    st.text(max_size=10),
    st.lists(listeners, max_size=3).map(tuple),
    st.none() | st.text(max_size=10),
)
maps = st.builds(
    ClusterMap,
    generation=st.integers(0, 2**31 - 1),
    controller=st.just(NOBODY) | node_ids,
    nodes=st.lists(nodes, max_size=5).map(tuple),
    owners=st.lists(st.just(NOBODY) | node_ids, max_size=60).map(tuple),
    moving=st.dictionaries(st.integers(0, 60), node_ids, max_size=3),
    drained=st.frozensets(node_ids, max_size=3),
    leaving=st.frozensets(node_ids, max_size=3),
    pinned=st.dictionaries(st.integers(0, 60), node_ids, max_size=3),
)


@given(maps)
def test_it_reads_back_as_it_was_written(cluster: ClusterMap) -> None:
    assert ClusterMap.decode(cluster.encode()) == cluster


def test_the_map_names_the_owners() -> None:
    assert MAP.owner(1) == NODES[1]
    assert MAP.owner(2) is None
    assert MAP.owner(99) is None
    assert replace(MAP, owners=(9,)).owner(0) is None, "an owner that is no node of the map"
    assert MAP.owned_by(1) == {0, 3}


def test_where_clients_of_a_listener_come() -> None:
    assert NODES[1].address("PLAINTEXT") == NodeAddress(4, "::1", 9093)
    assert NODES[1].address("SSL") is None
    listeners = (
        NamedAddress("SSL", Address("one.example", 9443)),
        NamedAddress("IN", Address("10.0.0.1", 9092)),
    )
    node = NodeInfo(1, "10.0.0.1", 9092, "0.1.0", listeners)
    assert node.address("SSL") == NodeAddress(1, "one.example", 9443)
    assert node.address("IN") == NodeAddress(1, "10.0.0.1", 9092)
    assert node.address("PLAINTEXT") is None


def test_older_versions_read_what_has_no_listeners_by_name() -> None:
    old = (
        b'{"format":1,"generation":7,"controller":1,"nodes":[[1,"one.example",9092,"0.1.0"],'
        b'[4,"::1",9093,"0.1.0"]],"owners":[1,4,-1,1],"moving":[[1,1]],"drained":[4],"leaving":[1],'
        b'"pinned":[[2,1]]}'
    )
    assert MAP.encode() == old
    assert ClusterMap.decode(old) == MAP
    named = NODES[0]._replace(listeners=(NamedAddress("SSL", Address("one.example", 9443)),))
    data = json.loads(replace(MAP, nodes=(named, NODES[1])).encode())
    assert data["format"] == 2
    assert data["nodes"] == [
        [1, "one.example", 9092, "0.1.0", [["SSL", "one.example", 9443]]],
        [4, "::1", 9093, "0.1.0"],
    ]


def test_racks_stand_beside_the_nodes_whose_fields_older_versions_count() -> None:
    one, four = NODES[0]._replace(rack="a"), NODES[1]
    data = json.loads(replace(MAP, nodes=(one, four)).encode())
    assert data["racks"] == ["a", None]
    assert {**data, "racks": None} == {**json.loads(MAP.encode()), "racks": None}
    nobody = replace(MAP, nodes=tuple(node._replace(rack="") for node in NODES))
    assert json.loads(nobody.encode())["racks"] == ["", ""], "there are none, which is not: nobody told"
    assert (one.address("PLAINTEXT"), nobody.nodes[1].address("PLAINTEXT")) == (
        NodeAddress(1, "one.example", 9092, "a"),
        NodeAddress(4, "::1", 9093, None),
    )


def test_a_member_tells_its_rack_beside_its_node() -> None:
    state = MemberState(NODES[0]._replace(rack="a"))
    data = json.loads(state.encode())
    assert (data["node"], data["rack"]) == ([1, "one.example", 9092, "0.1.0"], "a")
    assert MemberState.decode(state.encode()) == state
    del data["rack"]
    assert MemberState.decode(json.dumps(data).encode()) == MemberState(NODES[0]), "as older versions do"
    with pytest.raises(MapError, match="no text of up to 255"):
        MemberState.decode(json.dumps({**data, "rack": 7}).encode())


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(MAP.encode()), **fields}).encode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "cannot be read"),
        (b"[1]", "it is no object"),
        (b"[" * 100_000, "cannot be read"),
        (b"{}", "no format number"),
        (changed(format=True), "no format number"),
        (changed(format=3), "format 3, and this version reads up to 2: upgrade it"),
        (changed(nodes=[[1, "a", 0, ""]]), "no number from 1 to 65535"),
        (changed(nodes=[[1, "a" * 256, 1, ""]]), "no text of up to 255"),
        (changed(nodes=[[1, "a"]]), "not enough values"),
        (changed(nodes=[[1, "a", 1, "", [["SSL", "a", 0]]]]), "no number from 1 to 65535"),
        (changed(nodes=[[1, "a", 1, "", [["SSL", "a"]]]]), "not enough values"),
        (changed(nodes=[[1, "a", 1, "", [["SSL", "a", 1]] * (MAX_LISTENERS + 1)]]), "no list of up to 100"),
        (changed(nodes=[[1, "a", 1, "", [], 7]]), "no list of up to 5"),
        (changed(racks=["a"]), "shorter than argument 1"),
        (changed(racks=["a", "b", "c"]), "longer than argument 1"),
        (changed(racks=["a", 7]), "no text of up to 255"),
        (changed(racks=None), "no list"),
        (changed(owners=[-2]), "no number from -1"),
        (changed(controller=True), "True is no number"),
        (changed(owners=[0] * 1_001), "no list of up to 1000"),
        (changed(owners=None), "no list"),
        (changed(drained={"1": 2}), "no list"),
        (changed(pinned=[1]), "cannot unpack"),
        (b" " * MAX_BYTES + b"{}", "1,048,578 bytes, more than 1,048,576"),
    ],
)
def test_what_cannot_be_read_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(MapError, match=says):
        ClusterMap.decode(data)


def test_missing_fields_of_the_map_are_named() -> None:
    values = json.loads(MAP.encode())
    for name in ("nodes", "owners", "generation", "controller", "moving", "drained", "leaving", "pinned"):
        rest = {key: value for key, value in values.items() if key != name}
        with pytest.raises(MapError, match=name):
            ClusterMap.decode(json.dumps(rest).encode())

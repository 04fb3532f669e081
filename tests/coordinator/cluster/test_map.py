"""The map reads back as it was written; what cannot be read is refused with a sentence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.cluster.map import MAX_BYTES, NOBODY, ClusterMap, MapError, NodeInfo
from ringleader.coordinator.server.handlers import NodeAddress

NODES = (NodeInfo(1, "one.example", 9092, "0.1.0"), NodeInfo(4, "::1", 9093, "0.1.0"))
MAP = ClusterMap(7, 1, NODES, (1, 4, NOBODY, 1), {1: 1}, frozenset({4}), frozenset({1}), {2: 1})

node_ids = st.integers(0, 2**31 - 1)
nodes = st.builds(NodeInfo, node_ids, st.text(max_size=40), st.integers(1, 65_535), st.text(max_size=10))
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


def test_who_owns_what() -> None:
    assert MAP.owner(1) == NODES[1]
    assert MAP.owner(2) is None
    assert MAP.owner(99) is None
    assert replace(MAP, owners=(9,)).owner(0) is None, "an owner that is no node of the map"
    assert MAP.owned_by(1) == {0, 3}
    assert NODES[1].address == NodeAddress(4, "::1", 9093)


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
        (changed(format=2), "format 2, and this version reads up to 1: upgrade it"),
        (changed(nodes=[[1, "a", 0, ""]]), "no number from 1 to 65535"),
        (changed(nodes=[[1, "a" * 256, 1, ""]]), "no text of up to 255"),
        (changed(nodes=[[1, "a"]]), "not enough values"),
        (changed(owners=[-2]), "no number from -1"),
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


def test_what_is_missing_is_named() -> None:
    values = json.loads(MAP.encode())
    for name in ("nodes", "owners", "generation", "controller", "moving", "drained", "leaving", "pinned"):
        rest = {key: value for key, value in values.items() if key != name}
        with pytest.raises(MapError, match=name):
            ClusterMap.decode(json.dumps(rest).encode())

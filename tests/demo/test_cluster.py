"""The owners of the shards, as `make cluster` shows them."""

from __future__ import annotations

from demo.cluster import shares
from ringleader.coordinator.cluster.map import NOBODY, ClusterMap, NodeInfo


def test_shards_are_shown_as_runs() -> None:
    nodes = (NodeInfo(1, "127.0.0.1", 9001, "0"), NodeInfo(2, "127.0.0.1", 9002, "0"))
    cluster = ClusterMap(1, 2, nodes, (1, 1, 1, 2, 1, 2, NOBODY, 1))
    assert shares(cluster) == (
        "node 1 at 127.0.0.1:9001: 5 shards 0-2 4 7\nnode 2 at 127.0.0.1:9002, controller: 2 shards 3 5"
    )

"""Nodes that are taken for dead before their session in the nodes' group ends. Pure: no clock, no socket.

A wrong suspicion does no harm but a move: the fence in the store keeps a partition safe. So it may be quick.
Rules against harm by the number of moves:

- A node that answers nothing is suspected after `MISSED_PINGS` in a row, each with its own time. One
  that was stopped itself, and wakes, has to wait again like that.
- A node that misses more than half of the others rather suspects itself, and reports nothing.
- A node that was suspected for its silence `MOST_SUSPICIONS` times within `WINDOW_MS` is left to its session.
- One node reports for all: the controller, and where that is suspected too, the next one in the map.

A node whose connection was reset and that then refuses one is gone for sure, and needs no such care.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo

PING_INTERVAL_S = 0.25
"""Between two pings, and how long each has to be answered."""
MISSED_PINGS = 4
MOST_SUSPICIONS = 3
WINDOW_MS = 600_000
AGAIN_MS = 1_000
"""A node that is still in the map after this time is reported again."""


@dataclass(slots=True)
class _Peer:
    node: NodeInfo
    heard: bool = False
    """Since it is in the map. This node does not miss one that it never reached."""
    missed: int = 0
    refuses: bool = False
    reported_ms: int | None = None

    @property
    def silent(self) -> bool:
        return self.heard and not self.refuses and self.missed >= MISSED_PINGS


@dataclass(slots=True)
class Suspicion:
    """The suspicions of one node about the others."""

    node_id: int
    _peers: dict[int, _Peer] = field(default_factory=dict)
    _order: list[int] = field(default_factory=list)
    """The nodes in the order in which they report."""
    _silences: dict[int, list[int]] = field(default_factory=dict)
    """By node: when it was suspected for its silence."""

    def follow(self, cluster: ClusterMap) -> None:
        """Another map: a node that is new in it begins without misses."""
        others = {node.node_id: node for node in cluster.nodes if node.node_id != self.node_id}
        there = len(others) < len(cluster.nodes)
        self._peers = {
            node_id: self._peers[node_id]
            if node_id in self._peers and self._peers[node_id].node == node
            else _Peer(node)
            for node_id, node in others.items()
        }
        ids = [node.node_id for node in cluster.nodes]
        self._order = sorted(ids, key=lambda node_id: (node_id != cluster.controller, node_id))
        if not there:
            self._order = []

    def heard(self, node_id: int) -> None:
        """It answered a ping."""
        if (peer := self._peers.get(node_id)) is not None:
            peer.heard, peer.missed, peer.refuses = True, 0, False

    def missed(self, node_id: int) -> None:
        """It did not answer within `PING_INTERVAL_S`, or could not be reached."""
        if (peer := self._peers.get(node_id)) is not None:
            peer.missed += 1

    def refused(self, node_id: int) -> None:
        """Nobody listens where it was."""
        if (peer := self._peers.get(node_id)) is not None:
            peer.missed += 1
            peer.refuses = peer.heard

    def due(self, now_ms: int) -> list[tuple[int, str]]:
        """Of whom this node has to say now that they are gone, and why."""
        suspects = [
            node_id
            for node_id, peer in self._peers.items()
            if peer.refuses or self._believed(node_id, now_ms)
        ]
        first = next((node_id for node_id in self._order if node_id not in suspects), None)
        if first != self.node_id:
            return []
        reports = []
        for node_id in suspects:
            peer = self._peers[node_id]
            if peer.reported_ms is not None and now_ms - peer.reported_ms < AGAIN_MS:
                continue
            if peer.refuses:
                reports.append((node_id, "it refuses connections"))
            else:
                if peer.reported_ms is None:
                    self._silences.setdefault(node_id, []).append(now_ms)
                reports.append((node_id, f"{peer.missed} pings without an answer"))
            peer.reported_ms = now_ms
        return reports

    def _believed(self, node_id: int, now_ms: int) -> bool:
        """Whether its silence counts."""
        peer = self._peers[node_id]
        if not peer.silent:
            return False
        silent = sum(other.silent for other in self._peers.values())
        if len(self._peers) > 1 and 2 * silent > len(self._peers):
            return False
        before = [when for when in self._silences.get(node_id, ()) if now_ms - when < WINDOW_MS]
        self._silences[node_id] = before
        return peer.reported_ms is not None or len(before) < MOST_SUSPICIONS

"""The node that stands for each broker: clients know nodes only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from zlib import crc32


class StandIns:
    """Every node computes the same from the same brokers and nodes.

    With no more nodes than brokers, all partitions that a broker leads are shown at one node, so that a Fetch
    or Produce to a node concerns as few brokers as possible. With more nodes, those of one broker share its
    partitions.

    Where nodes are in several racks, a broker has a node of its own rack: a partition is shown in the racks
    in which its records are. A broker without a node in its rack has any node, as without racks.
    """

    def __init__(self, brokers: Mapping[int, str], nodes: Mapping[int, str]) -> None:
        """Racks by id, "" without one. `brokers`: all that were ever seen, so that a broker's absence changes
        nothing."""
        self._racks = nodes
        racks = set(nodes.values())
        together: dict[str, list[int]] = {}
        for broker, rack in sorted(brokers.items()):
            together.setdefault(rack if len(racks) > 1 and rack in racks else "", []).append(broker)
        of_rack = Counter[str]()
        turns = {}
        for node, rack in sorted(nodes.items()):
            turns[node] = of_rack[rack]
            of_rack[rack] += 1
        # Racks take turns, so that brokers without racks have nodes in different ones.
        in_turn = sorted(nodes, key=lambda node: (turns[node], node))
        self._nodes: dict[int, list[int]] = {}
        """Nodes that share the partitions of a broker."""
        for rack, alike in together.items():
            all_nodes = [node for node in in_turn if not rack or nodes[node] == rack]
            for rank, broker in enumerate(alike):
                own = all_nodes[rank :: len(alike)]
                self._nodes[broker] = own or (all_nodes and [all_nodes[rank % len(all_nodes)]])

    def leader(self, broker: int, topic: str, partition: int) -> int:
        """The node for a partition that this broker leads; -1: none."""
        candidates = self._nodes.get(broker)
        if not candidates:
            return -1
        if len(candidates) == 1:
            return candidates[0]
        return candidates[(crc32(topic.encode()) + partition) % len(candidates)]

    def in_rack(
        self, rack: str, brokers: Sequence[int], offline: Sequence[int], leader: int, shown: int
    ) -> int:
        """The node of that rack among those for the brokers of a partition; -1: there is none. One that
        stands for a broker that is `offline`, too, is passed over, as clients do."""
        away = self.replicas(offline, leader, shown)
        found = self.replicas(brokers, leader, shown)
        return next((node for node in found if self._racks.get(node) == rack and node not in away), -1)

    def replicas(self, brokers: Sequence[int], leader: int, shown: int) -> list[int]:
        """The nodes for the brokers of a partition; `shown`: the one for its `leader`. As many as there are
        brokers, so that counts stay true; a node that stands for several is there several times."""
        return [shown if broker == leader else self.leader(broker, "", 0) for broker in brokers]

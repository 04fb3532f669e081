"""Which node stands for which broker: clients know nodes only."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32


class Faces:
    """Every node computes the same from the same brokers and nodes.

    With no more nodes than brokers, all partitions that a broker leads are shown at one node, so that a Fetch
    or Produce to a node concerns as few brokers as possible. With more nodes, those of one broker share its
    partitions.
    """

    def __init__(self, brokers: Sequence[int], nodes: Sequence[int]) -> None:
        """`brokers`: ids of all that were ever seen, so that one that is away changes nothing."""
        self._nodes = sorted(nodes)
        self._brokers = max(1, len(brokers))
        self._ranks = {broker: rank for rank, broker in enumerate(sorted(brokers))}

    def leader(self, broker: int, topic: str, partition: int) -> int:
        """The node for a partition that this broker leads; -1: none."""
        rank = self._ranks.get(broker)
        if rank is None or not self._nodes:
            return -1
        candidates = self._nodes[rank :: self._brokers]
        if not candidates:
            return self._nodes[rank % len(self._nodes)]
        if len(candidates) == 1:
            return candidates[0]
        return candidates[(crc32(topic.encode()) + partition) % len(candidates)]

    def replicas(self, brokers: Sequence[int], leader: int, shown: int) -> list[int]:
        """The nodes for the brokers of a partition; `shown`: the one for its `leader`. As many as there are
        brokers, so that counts stay true; a node that stands for several is there several times."""
        return [shown if broker == leader else self.leader(broker, "", 0) for broker in brokers]

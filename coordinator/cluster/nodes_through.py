"""The nodes as clients of one listener see them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.nodes import NodeAddress


class NodesThrough:
    """Owners and nodes with the addresses of one listener."""

    def __init__(
        self,
        listener: str,
        current: Callable[[], ClusterMap | None],
        staying: Callable[[], Sequence[NodeInfo]],
    ) -> None:
        """`current()`: the map; `staying()`: the nodes without those that are about to leave."""
        self._listener = listener
        self._current = current
        self._staying = staying

    def owner(self, partition: int) -> NodeAddress | None:
        """The address of a partition's owner; None: it has none, or none at this listener."""
        cluster = self._current()
        owner = None if cluster is None else cluster.owner(partition)
        return None if owner is None else owner.address(self._listener)

    def nodes(self) -> Sequence[NodeAddress]:
        """The addresses of the nodes at this listener."""
        nodes = self._staying()
        if any(node.rack is None for node in nodes):  # an older one shows partitions as without racks
            nodes = [node._replace(rack=None) for node in nodes]
        found = [node.address(self._listener) for node in nodes]
        return [address for address in found if address is not None]

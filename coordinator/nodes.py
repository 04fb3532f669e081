"""Addresses of the nodes as clients see them, and which node owns a partition of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class NodeAddress(NamedTuple):
    """A node as clients see it: a broker."""

    node_id: int
    host: str
    port: int
    rack: str | None = None
    """None: the rack is not known."""


class Directory(Protocol):
    """The nodes as clients of one listener see them, and the owner of each partition of groups. Answers at
    once, from memory."""

    def owner(self, partition: int) -> NodeAddress | None:
        """The node that serves the groups of that partition; None while no node does."""

    def nodes(self) -> Sequence[NodeAddress]:
        """All nodes, by node id."""


class Nodes(Protocol):
    """All nodes of a cluster."""

    async def mapped(self) -> None:
        """Returns when the other nodes are known: a node that starts listens before that."""

    def through(self, listener: str) -> Directory:
        """The nodes as seen through the listener of this name, without those that have no such listener."""


class OnlyNode:
    """The directory of a node by itself."""

    def __init__(self, address: NodeAddress) -> None:
        self._address = address

    def owner(self, partition: int) -> NodeAddress | None:
        """See `Directory`."""
        return self._address

    def nodes(self) -> Sequence[NodeAddress]:
        """See `Directory`."""
        return (self._address,)

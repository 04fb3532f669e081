"""The map of the cluster: its nodes, and which of them owns each partition of groups.

The controller writes it, every node gets the whole of it as its assignment in the nodes' group. It helps to
find the owner; it is never what makes a write safe: that is the fence in the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ringleader.coordinator.nodes import NodeAddress
from ringleader.coordinator.security.listeners import MAX_LISTENERS, Address, NamedAddress
from ringleader.protocol import json_text
from ringleader.protocol.wire import INT32_MAX, INT64_MAX

FORMAT = 2
"""The newest format that this version reads."""
PLAIN_FORMAT = 1
"""Written while no node has other listeners than one named PLAINTEXT, so that older versions read it."""

MAX_BYTES = 1_048_576
MAX_NODES = 1_000
MAX_PARTITIONS = 1_000
"""As `offsets.topic.num.partitions`."""
MAX_TEXT_CHARACTERS = 255

PLAINTEXT = "PLAINTEXT"
"""The listener of a node that names none."""

NOBODY = -1
"""The owner of a partition that no node has."""


class MapError(ValueError):
    """Bytes that are no map, or one of a version that this one does not know. The text is one sentence."""


class NodeInfo(NamedTuple):
    """A node: where the others reach it, which version it runs, and where clients reach it."""

    node_id: int
    host: str
    port: int
    version: str
    listeners: tuple[NamedAddress, ...] = ()
    """By name what it advertises; nothing: `host` and `port`, by the name PLAINTEXT."""
    rack: str | None = None
    """Its `broker.rack`, "" without one; None: not known, as of nodes of older versions."""

    @property
    def format(self) -> int:
        """The oldest that can tell it."""
        return FORMAT if self.listeners else PLAIN_FORMAT

    def address(self, listener: str) -> NodeAddress | None:
        """As clients see it that came through the listener of this name; None: it has none of the name."""
        known = dict(self.listeners or [NamedAddress(PLAINTEXT, Address(self.host, self.port))])
        found = known.get(listener)
        return None if found is None else NodeAddress(self.node_id, *found, self.rack or None)

    def to_json(self) -> list[Any]:
        """The form that `read_node` reads."""
        known = [[name, *address] for name, address in self.listeners]
        return [*self[:4], known] if known else [*self[:4]]


@dataclass(frozen=True, slots=True)
class ClusterMap:
    """The owners of all partitions, of one generation of the nodes' group."""

    generation: int
    controller: int
    """Node id of the controller that made it."""
    nodes: tuple[NodeInfo, ...]
    """By node id."""
    owners: tuple[int, ...]
    """Of each partition the node id of its owner, or `NOBODY`."""
    moving: Mapping[int, int] = field(default_factory=dict)
    """Planned moves that are still to come: partition -> its next owner."""
    drained: frozenset[int] = frozenset()
    """Nodes that are to own nothing, by an operator's request."""
    leaving: frozenset[int] = frozenset()
    """Nodes that hand over everything, as they are about to stop."""
    pinned: Mapping[int, int] = field(default_factory=dict)
    """Partition -> node that is to own it, by an operator's request."""

    def node(self, node_id: int) -> NodeInfo | None:
        """The node of that id, if it is there."""
        return next((node for node in self.nodes if node.node_id == node_id), None)

    def owner(self, partition: int) -> NodeInfo | None:
        """The node that owns this partition, if one does."""
        return self.node(self.owners[partition]) if partition < len(self.owners) else None

    def owned_by(self, node_id: int) -> frozenset[int]:
        """The partitions of that node."""
        return frozenset(partition for partition, owner in enumerate(self.owners) if owner == node_id)

    @property
    def format(self) -> int:
        """The oldest that can tell it."""
        return max((node.format for node in self.nodes), default=PLAIN_FORMAT)

    def plainly(self) -> ClusterMap:
        """As all versions read it: who owns what, without the nodes' listeners."""
        return replace(self, nodes=tuple(node._replace(listeners=()) for node in self.nodes))

    def encode(self) -> bytes:
        """As the nodes' group carries it."""
        racks = [node.rack for node in self.nodes]
        # Beside the nodes, whose fields older versions count.
        more = {} if all(rack is None for rack in racks) else {"racks": racks}
        return write_json(
            {
                "format": self.format,
                "generation": self.generation,
                "controller": self.controller,
                "nodes": [node.to_json() for node in self.nodes],
                "owners": self.owners,
                "moving": sorted(self.moving.items()),
                "drained": sorted(self.drained),
                "leaving": sorted(self.leaving),
                "pinned": sorted(self.pinned.items()),
                **more,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> ClusterMap:
        """The map in these bytes. Raises `MapError`."""
        values = read_json(data, "map of the cluster")
        try:
            nodes = [read_node(entry) for entry in some(values["nodes"], MAX_NODES)]
            racks = some(values.get("racks", [None] * len(nodes)), MAX_NODES)
            return cls(
                generation=number(values["generation"], 0, INT32_MAX),
                controller=number(values["controller"], NOBODY, INT32_MAX),
                nodes=tuple(in_rack(node, rack) for node, rack in zip(nodes, racks, strict=True)),
                owners=tuple(
                    number(owner, NOBODY, INT32_MAX) for owner in some(values["owners"], MAX_PARTITIONS)
                ),
                moving=_partitions(values["moving"]),
                drained=_nodes(values["drained"]),
                leaving=_nodes(values["leaving"]),
                pinned=_partitions(values["pinned"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise MapError(f"the map of the cluster cannot be read: {error!r}") from None


# ---- reading what other nodes wrote ----


def _partitions(value: Any) -> dict[int, int]:
    """Partition -> node."""
    return {
        number(partition, 0, MAX_PARTITIONS): number(node_id, 0, INT32_MAX)
        for partition, node_id in some(value, MAX_PARTITIONS)
    }


def _nodes(value: Any) -> frozenset[int]:
    return frozenset(number(node_id, 0, INT32_MAX) for node_id in some(value, MAX_NODES))


def write_json(values: Mapping[str, Any]) -> bytes:
    """As short as it gets."""
    return json.dumps(values, separators=(",", ":")).encode()


def read_json(data: bytes, what: str) -> dict[str, Any]:
    """An object with a known format number. Raises `MapError`."""
    if len(data) > MAX_BYTES:
        raise MapError(f"the {what} has {len(data):,} bytes, more than {MAX_BYTES:,}")
    try:
        values = json_text.loads(data)
    except ValueError as error:
        raise MapError(f"the {what} cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise MapError(f"the {what} cannot be read: it is no object")
    found = values.get("format")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise MapError(f"the {what} cannot be read: it has no format number")
    if found > FORMAT:
        raise MapError(f"the {what} has format {found}, and this version reads up to {FORMAT}: upgrade it")
    return values


def read_node(entry: Any) -> NodeInfo:
    """A node out of a list of its fields. Raises ValueError or TypeError."""
    node_id, host, port, version, *more = some(entry, 5)
    listeners = some(more[0], MAX_LISTENERS) if more else []
    address = Address(text(host), number(port, 1, 65_535))
    return NodeInfo(
        number(node_id, 0, INT32_MAX), *address, text(version), tuple(map(_read_listener, listeners))
    )


def in_rack(node: NodeInfo, rack: Any) -> NodeInfo:
    """The node in a rack that another one wrote. Raises ValueError."""
    return node._replace(rack=None if rack is None else text(rack))


def _read_listener(entry: Any) -> NamedAddress:
    name, host, port = some(entry, 3)
    return NamedAddress(text(name), Address(text(host), number(port, 1, 65_535)))


def number(value: Any, low: int, high: int = INT64_MAX) -> int:
    """A whole number within these bounds. Raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{value!r:.40} is no number from {low} to {high}")
    return value


def text(value: Any) -> str:
    """A text that is not too long. Raises ValueError."""
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARACTERS:
        raise ValueError(f"{value!r:.40} is no text of up to {MAX_TEXT_CHARACTERS} characters")
    return value


def some(value: Any, most: int) -> list[Any]:
    """A list that is not too long. Raises ValueError."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"{value!r:.40} is no list of up to {most} entries")
    return value

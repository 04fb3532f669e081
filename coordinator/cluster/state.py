"""The metadata of a member of the nodes' group at each join: its identity, the partitions that it serves, its
wishes.

A node has all of it. The command line is a member for a moment, without a node: it brings wishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ringleader.coordinator.cluster.map import (
    MAX_PARTITIONS,
    PLAIN_FORMAT,
    ClusterMap,
    MapError,
    NodeInfo,
    in_rack,
    number,
    read_json,
    read_node,
    some,
    write_json,
)
from ringleader.protocol.wire import INT32_MAX

MAX_WISHES = 1_000


class Drain(NamedTuple):
    """A node is to own nothing; or it may again."""

    node_id: int
    drained: bool


class Pin(NamedTuple):
    """A partition is to be on this node."""

    partition: int
    node_id: int


@dataclass(frozen=True, slots=True)
class MemberState:
    """One member as of its last join."""

    node: NodeInfo | None = None
    """None: it is no node, and only wishes."""
    known: ClusterMap | None = None
    """The newest map that it knows."""
    loads: Mapping[int, int] = field(default_factory=dict)
    """The partitions that it serves, and what each costs: members and commits per second."""
    leaving: bool = False
    """It wants to hand over everything."""
    drains: tuple[Drain, ...] = ()
    pins: tuple[Pin, ...] = ()
    unable: frozenset[int] = frozenset()
    """The partitions that it could not serve, whether they are its own or not."""
    wary: bool = False
    """It is to be given nothing more for now."""

    def encode(self) -> bytes:
        """As the nodes' group carries it. Its leader may be of an older version than the makers of the
        map."""
        known = None if self.known is None else self.known.plainly().encode().decode()
        return write_json(
            {
                "format": PLAIN_FORMAT if self.node is None else self.node.format,
                "node": None if self.node is None else self.node.to_json(),
                "rack": None if self.node is None else self.node.rack,
                "known": known,
                "loads": sorted(self.loads.items()),
                "leaving": self.leaving,
                "drains": self.drains,
                "pins": self.pins,
                "unable": sorted(self.unable),
                "wary": self.wary,
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> MemberState:
        """The state in these bytes. Raises `MapError`."""
        values = read_json(data, "state of a node")
        try:
            node, known = values["node"], values["known"]
            return cls(
                node=None if node is None else in_rack(read_node(node), values.get("rack")),
                known=None if known is None else ClusterMap.decode(str(known).encode()),
                loads={
                    number(partition, 0, MAX_PARTITIONS): number(load, 0)
                    for partition, load in some(values["loads"], MAX_PARTITIONS)
                },
                leaving=values["leaving"] is True,
                drains=tuple(
                    Drain(number(node_id, 0, INT32_MAX), drained is True)
                    for node_id, drained in some(values["drains"], MAX_WISHES)
                ),
                pins=tuple(
                    Pin(number(partition, 0, MAX_PARTITIONS), number(node_id, 0, INT32_MAX))
                    for partition, node_id in some(values["pins"], MAX_WISHES)
                ),
                # Older versions do not tell these.
                unable=frozenset(
                    number(partition, 0, MAX_PARTITIONS)
                    for partition in some(values.get("unable", []), MAX_PARTITIONS)
                ),
                wary=values.get("wary") is True,
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, MapError):
                raise
            raise MapError(f"the state of a node cannot be read: {error!r}") from None

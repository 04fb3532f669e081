"""The links of a run: between clients and nodes, between nodes, and between each node and each broker, every
one of which can be spoiled by itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.links import Link, Links
from tests.support.ports import free_ports

HOST = "127.0.0.1"
LISTENER = "NODE"
"""Brokers have a listener for each node, so that each gets its own ways to them."""


class Network:
    """Made for each run; `links` runs it."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self.fronts: dict[int, Link] = {}
        """Clients come to a node through these."""
        self.insides: dict[int, Link] = {}
        """The other nodes come to a node through these."""
        self.brokers: dict[tuple[int, int], Link] = {}
        """From a node to a broker."""

    def advertise(self, broker: int, listener: str, port: int) -> int:
        """The port of the way to a broker's listener."""
        node = int(listener.removeprefix(LISTENER))
        self.brokers[node, broker] = link = self._links.to(HOST, port)
        return link.port

    def bootstrap(self, node: int) -> str:
        """All brokers, for that node."""
        return ",".join(link.address for (of, _), link in sorted(self.brokers.items()) if of == node)

    def front(self, node: int, port: int) -> Link:
        """A new way from clients to a node that listens on that port."""
        self.fronts[node] = self._links.to(HOST, port)
        return self.fronts[node]

    def inside(self, node: int, port: int) -> Link:
        """A new way from nodes to a node that listens on that port."""
        self.insides[node] = self._links.to(HOST, port)
        return self.insides[node]


def listeners(nodes: Sequence[int]) -> dict[str, str]:
    """The listeners that brokers have for these nodes."""
    return {f"{LISTENER}{node}": "PLAINTEXT" for node in nodes}


class LinkedNode(Daemon):
    """``ringleader serve --cluster``, reached and reaching others through links only. A traceback does not
    end the run."""

    def __init__(self, directory: Path, node_id: int, options: Sequence[str], network: Network) -> None:
        super().__init__(directory, options=options)
        self.tracebacks_expected = True
        self.node_id, self._network = node_id, network
        self.move()

    def move(self) -> None:
        """Its next start is at another address."""
        self.port, self._inside = free_ports(2)
        self._front = self._network.front(self.node_id, self.port)
        self._within = self._network.inside(self.node_id, self._inside)

    def command(self) -> list[str]:
        """Of the next start."""
        return [
            *(sys.executable, "-m", "ringleader", "serve"),
            *("--listeners", f"PLAINTEXT://{self.bootstrap},INSIDE://{HOST}:{self._inside}"),
            "--advertised-listeners",
            f"PLAINTEXT://{self._front.address},INSIDE://{self._within.address}",
            *("--listener-security-protocol-map", "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"),
            *("--inter-broker-listener-name", "INSIDE", "--node-id", str(self.node_id)),
            *("--cluster", self._network.bootstrap(self.node_id), *self._options),
        ]

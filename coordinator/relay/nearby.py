"""Followers in this node's rack, as leaders name them (KIP-392): consumers of the rack read from them.

A choice that one consumer's Fetch taught counts for all consumers of the rack that come to this node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from ringleader.clients.model import Node
from ringleader.coordinator.bounded import BoundedCache
from ringleader.coordinator.relay.topology import Topology
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode

FOLLOWER_S = 300.0
"""Time for which a follower is asked before its leader is asked again: as with Java's consumer, whose
`metadata.max.age.ms` is 5 minutes."""
LEADER_S = 30.0
"""Time for which the leader serves partitions that a follower could not."""
MAX_BYTES = 16 * 1024 * 1024
"""Memory for the choices."""
LEADER = -1
"""In place of a follower: the leader, which is not asked for one."""

Topics = dict[str, list[kafka.FetchRequestFetchPartition]]


class _Chosen(NamedTuple):
    broker: int
    until_s: float


class Nearby:
    """See the module."""

    def __init__(self, topology: Topology, rack: str) -> None:
        """`rack`: of this node, "" without one."""
        self._topology = topology
        self._rack = rack
        self._chosen: BoundedCache[tuple[str, int], _Chosen] = BoundedCache(MAX_BYTES)
        self._now_s = asyncio.get_running_loop().time

    def serves(self, request: kafka.FetchRequest) -> bool:
        """Whether it comes from a consumer of this rack."""
        return bool(self._rack) and request.rack_id == self._rack

    def parts(self, parts: Mapping[Node, Topics]) -> dict[Node, Topics]:
        """The partitions that leaders would be asked about, by the broker that is asked."""
        found: dict[Node, Topics] = {}
        for leader, topics in parts.items():
            for name, entries in topics.items():
                for entry in entries:
                    chosen = self._broker(name, entry.partition)
                    broker = leader if chosen is None else self._topology.brokers.get(chosen, leader)
                    found.setdefault(broker, {}).setdefault(name, []).append(entry)
        return found

    def rack(self, request: kafka.FetchRequest, topics: Topics) -> str:
        """The rack in a request to a broker, which then names a follower for all of its partitions; "": for
        none."""
        alone = any(
            self._broker(name, entry.partition) == LEADER
            for name, entries in topics.items()
            for entry in entries
        )
        return self._rack if self.serves(request) and not alone else ""

    def learn(self, broker: Node, message: kafka.FetchRequest, response: kafka.FetchResponse) -> bool:
        """Note the follower that a leader names, and give up one that refuses. Returns whether the answer was
        changed: only a leader's error counts, and the client asks once more."""
        changed = False
        for topic in response.responses:
            for one in topic.partitions:
                key = topic.topic, one.partition_index
                preferred = one.preferred_read_replica
                if one.error_code:
                    if self._give_up(broker, *key):
                        changed = True
                        one.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif message.rack_id and preferred != LEADER and not one.records:
                    known = preferred in self._topology.brokers and preferred != broker.node_id
                    self._choose(*key, preferred if known else LEADER)
        return changed

    def failed(self, broker: Node, topics: Topics) -> None:
        """The broker does not answer: where it is a follower it is given up."""
        for name, entries in topics.items():
            for entry in entries:
                self._give_up(broker, name, entry.partition)

    def _broker(self, topic: str, partition: int) -> int | None:
        """None: no leader named one lately."""
        chosen = self._chosen.get((topic, partition))
        return None if chosen is None or chosen.until_s <= self._now_s() else chosen.broker

    def _choose(self, topic: str, partition: int, broker: int) -> None:
        lapse_s = LEADER_S if broker == LEADER else FOLLOWER_S
        self._chosen.remember((topic, partition), _Chosen(broker, self._now_s() + lapse_s), topic)

    def _give_up(self, broker: Node, topic: str, partition: int) -> bool:
        """Whether it was the follower."""
        chosen = self._chosen.get((topic, partition))
        if chosen is None or chosen.broker != broker.node_id:
            return False
        self._choose(topic, partition, LEADER)
        return True

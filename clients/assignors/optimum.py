"""From a good assignment to the best there is: the most even loads, and under these the fewest moves.

A member gives up a partition of one topic, another one takes it and gives up one of another topic for it,
and so on: such a chain can even out two members that share no topic. The search is for chains and rings that
cost less than nothing (minimum-cost flow, by cancelling negative cycles): first in the sum of the squares of
the loads, which is least when the loads are as even as can be, then in partitions that leave their owner.
Only how many partitions of a topic a member has counts here, so the search grows with the subscriptions and
not with the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

Counts = list[dict[int, int]]
"""Topic number -> member number -> how many partitions of the topic; members that have none are left out."""

EFFORT = 2_000_000
"""How often a subscription of a member to a topic may be looked at: some tenths of a second."""

_NONE = -1


class Optimum:
    """The search. `held` and `loads` are changed to the result, `changed` are the topics it differs in.

    `owned`: how many of a topic's partitions members own. `subscribers`: of each topic.
    """

    def __init__(
        self, held: Counts, owned: Counts, subscribers: Sequence[Sequence[int]], loads: list[int]
    ) -> None:
        self._held, self._owned, self._subscribers, self._loads = held, owned, subscribers, loads
        self.changed: set[int] = set()
        self._hub = len(loads) + len(held)
        """Nodes are members, then topics, then the hub, over which a chain closes to a ring: it leads to
        the member that ends with one less, from the one that ends with one more."""
        self._edges = sum(map(len, subscribers))
        self._effort = EFFORT
        self._evenness = 2 * sum(loads) + 1  # more than all moves together

    def run(self) -> None:
        """Until nothing is left that costs less than nothing, or `EFFORT` is spent."""
        while rings := self._rings():
            for ring in rings:
                self._go_round(ring)

    @property
    def found(self) -> bool:
        """Whether the result is known to be the best; if not, the search ended early."""
        return self._effort > 0

    # ---- the search (Bellman and Ford) ----

    def _rings(self) -> list[list[int]]:
        cost = [0] * (self._hub + 1)
        before = [_NONE] * (self._hub + 1)
        while self._effort > 0 and self._relax(cost, before):
            self._effort -= self._edges
            if rings := _rings_of(before):
                return rings
        return []

    def _relax(self, cost: list[int], before: list[int]) -> bool:
        """One step along every edge; whether anything became cheaper."""
        hub, evenness, better = self._hub, self._evenness, False
        for member, load in enumerate(self._loads):
            if load and (now := cost[hub] - evenness * (2 * load - 1)) < cost[member]:
                cost[member], before[member], better = now, hub, True
        for topic, held in enumerate(self._held):
            owned, node = self._owned[topic], len(self._loads) + topic
            least = cost[node]
            for member, count in held.items():
                now = cost[member] + (count <= owned.get(member, 0))
                if now < least:
                    least, before[node], better = now, member, True
            cost[node] = least
            for member in self._subscribers[topic]:
                # Is cheaper only for a member that owns some that it does not have.
                if least <= cost[member]:
                    now = least - (held.get(member, 0) < owned.get(member, 0))
                    if now < cost[member]:
                        cost[member], before[member], better = now, node, True
        least = cost[hub]
        for member, load in enumerate(self._loads):
            if (now := cost[member] + evenness * (2 * load + 1)) < least:
                least, before[hub], better = now, member, True
        cost[hub] = least
        return better

    # ---- the change ----

    def _go_round(self, ring: list[int]) -> None:
        members = len(self._loads)
        for node, following in zip(ring, [*ring[1:], ring[0]], strict=True):
            if node == self._hub:
                self._loads[following] -= 1
            elif following == self._hub:
                self._loads[node] += 1
            elif node < members:
                self._add(following - members, node, -1)
            else:
                self._add(node - members, following, 1)

    def _add(self, topic: int, member: int, more: int) -> None:
        held = self._held[topic]
        held[member] = held.get(member, 0) + more
        if not held[member]:
            del held[member]
        self.changed.add(topic)


def _rings_of(before: Sequence[int]) -> list[list[int]]:
    """The rings among the edges before -> node, each in its direction."""
    rings, seen = [], [_NONE] * len(before)
    for start in range(len(before)):
        node = start
        while node != _NONE and seen[node] == _NONE:
            seen[node] = start
            node = before[node]
        if node != _NONE and seen[node] == start:
            ring, other = [node], before[node]
            while other != node:
                ring.append(other)
                other = before[other]
            rings.append(ring[::-1])
    return rings

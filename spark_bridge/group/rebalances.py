"""Log lines about rebalances: one for each, for the query as a whole."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from ringleader.clients.model import TopicPartition

logger = logging.getLogger("ringleader.spark")


class Rebalances:
    """Collects what the query's members hear, and tells it when the last of them has its assignment; of
    members that are not assigned ``together`` (in the consumer protocol), as it comes.

    Thread-safe: each member calls from its own thread.
    """

    def __init__(self, group: str, member_count: int, together: bool = True) -> None:
        self._group = group
        self._together = together
        self._lock = threading.Lock()
        self._assignments: list[tuple[int, frozenset[TopicPartition]]] = [(-1, frozenset())] * member_count
        self._had: frozenset[TopicPartition] = frozenset()
        self._waited_s = 0.0
        self._reasons: list[str] = []

    def grow(self, member_count: int) -> None:
        """Take over the number of the query's members."""
        with self._lock:
            self._assignments += [(-1, frozenset())] * (member_count - len(self._assignments))

    def revoked(self, reason: str) -> None:
        """A member is asked to give something up."""
        with self._lock:
            if reason not in self._reasons:
                self._reasons.append(reason)

    def waited(self, seconds: float) -> None:
        """How long it held what it was asked for, for the batch in flight."""
        with self._lock:
            self._waited_s = max(self._waited_s, seconds)

    def lost(self, index: int, partitions: Iterable[TopicPartition], reason: str) -> None:
        """Partitions went without asking."""
        taken = frozenset(partitions)
        with self._lock:
            generation, owned = self._assignments[index]
            self._assignments[index] = (generation, owned - taken)
        logger.warning(
            "group %s took %s away without waiting for the batch in flight: %s",
            self._group,
            listed(taken),
            reason,
        )

    def assigned(
        self, index: int, generation: int, protocol: str, leads: bool, partitions: frozenset[TopicPartition]
    ) -> None:
        """A member has its assignment."""
        with self._lock:
            self._assignments[index] = (generation, partitions)
            if self._together and any(found != generation for found, _ in self._assignments):
                return
            now = frozenset().union(*(owned for _, owned in self._assignments))
            added, removed = now - self._had, self._had - now
            waited_s, reasons = self._waited_s, self._reasons
            self._had, self._waited_s, self._reasons = now, 0.0, []
            assignments = [owned for _, owned in self._assignments]
        held = f" after {waited_s:.1f} s for the batch in flight" if waited_s else ""
        logger.info(
            "group %s, generation %d (%s%s): owns %s%s; came: %s; went: %s%s%s",
            self._group,
            generation,
            protocol,
            ", led by this query" if leads else "",
            listed(now),
            ""
            if len(assignments) == 1
            else f" as {len(assignments)} members ({' | '.join(map(listed, assignments))})",
            listed(added),
            listed(removed),
            held,
            f" ({'; '.join(reasons)})" if reasons else "",
        )


def listed(partitions: Iterable[TopicPartition]) -> str:
    """``a-0,2 b-1``: short enough for a log line."""
    topics: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(str(number))
    return " ".join(f"{topic}-{','.join(numbers)}" for topic, numbers in topics.items()) or "nothing"

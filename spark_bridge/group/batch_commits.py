"""The batch in flight: from the call that planned it to the commit by the group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.group.membership import CommitRefusedError, Group, Holdings, Tenure
from ringleader.spark_bridge.group.positions import Outage, Places, commit_parts, ranges_text
from ringleader.spark_bridge.values import OffsetRange

logger = logging.getLogger("ringleader.spark")

MOVED = "the partitions moved on before the batch was over"


@dataclass
class Flight:
    """One batch. ``commits``: what is to be committed once it is durable, and as whose; it shrinks as the
    group takes them."""

    document: OffsetDocument
    reads: Mapping[TopicPartition, OffsetRange]
    commits: dict[Tenure, int]
    began_ms: int
    _taken: set[TopicPartition] = field(default_factory=set)

    def committed(self, tenure: Tenure) -> int:
        """The group took this one; up to which offset."""
        self._taken.add(tenure.partition)
        return self.commits.pop(tenure)

    def uncommitted(self) -> dict[TopicPartition, OffsetRange]:
        """What it reads and this query did not commit."""
        return {tp: found for tp, found in self.reads.items() if tp not in self._taken}

    def ranges(self, tenures: Iterable[Tenure]) -> dict[TopicPartition, OffsetRange]:
        """What it reads of these."""
        return {tenure.partition: self.reads[tenure.partition] for tenure in tenures}


class Settlement:
    """Commits batches that are durable. Counts what the group did not take."""

    def __init__(self, group: Group, holdings: Holdings, places: Places) -> None:
        self._group = group
        self._holdings = holdings
        self._places = places
        self._outage = Outage()
        self.unknown_topic = False
        """Whether the last try failed for a topic that the coordinator does not know."""
        self.refused_commits = 0
        self.refused_rows = 0

    def settle(self, flight: Flight) -> bool:
        """Commit what is ours of it. False: some of it has to be tried again.

        A refusal counts only when the partition is not ours any more: a member that joins again is between
        two generations for a moment, and keeps what it has.
        """
        self.unknown_topic = False
        gone = [tenure for tenure in flight.commits if not self._holdings.holds(tenure)]
        if gone:
            self._refused(flight, gone)
        token = flight.document.token
        for part, outcome in commit_parts(self._group, self._holdings, flight.commits, token):
            tenures = [t for t in flight.commits if t.slot == part.slot and t.partition in part.offsets]
            if outcome is None:
                for tenure in tenures:
                    self._places.advance(tenure, flight.committed(tenure))
                self._holdings.end(tenures)
            elif isinstance(outcome, CommitRefusedError):
                logger.debug("the commit of a finished batch waits for the rebalance: %s", outcome)
            else:
                self.unknown_topic = self.unknown_topic or outcome.unknown_topic
                self._outage.told("the commit of a finished batch waits for the coordinator: %s", outcome)
        if flight.commits:
            return False
        self._outage.over()
        return True

    def give_up(self, flight: Flight, gone: Iterable[Tenure], why: str) -> None:
        """These cannot be committed at all."""
        self._refused(flight, list(gone), why)

    def _refused(self, flight: Flight, gone: list[Tenure], why: str = MOVED) -> None:
        lost = flight.ranges(gone)
        for tenure in gone:
            del flight.commits[tenure]
        self._holdings.end(gone)
        rows = sum(found.rows for found in lost.values())
        self.refused_commits += 1
        self.refused_rows += rows
        logger.warning(
            "group %s did not take the commit of a finished batch (%s): up to %d rows of %d partitions may "
            "be processed twice: %s",
            flight.document.group,
            why,
            rows,
            len(lost),
            ranges_text(lost),
        )

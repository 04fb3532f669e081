"""The batch in flight: from the call that planned it to the commit by the group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.group.membership import CommitRefusedError, Group, OwnedPartition, Ownership
from ringleader.spark_bridge.group.positions import Outage, Positions, commit_parts, ranges_text
from ringleader.spark_bridge.values import OffsetRange

logger = logging.getLogger("ringleader.spark")

MOVED = "the partitions moved on before the batch was over"


@dataclass
class PlannedBatch:
    """One batch. ``commits``: what is to be committed once it is durable, and as whose; it shrinks as the
    group takes them."""

    document: OffsetDocument
    reads: Mapping[TopicPartition, OffsetRange]
    commits: dict[OwnedPartition, int]
    began_ms: int
    _taken: set[TopicPartition] = field(default_factory=set)

    def committed(self, own: OwnedPartition) -> int:
        """The group took this one; up to which offset."""
        self._taken.add(own.partition)
        return self.commits.pop(own)

    def uncommitted(self) -> dict[TopicPartition, OffsetRange]:
        """The ranges that it reads and this query did not commit."""
        return {tp: found for tp, found in self.reads.items() if tp not in self._taken}

    def ranges(self, owned: Iterable[OwnedPartition]) -> dict[TopicPartition, OffsetRange]:
        """The ranges that it reads of these."""
        return {own.partition: self.reads[own.partition] for own in owned}


class BatchCommits:
    """Commits batches that are durable. Counts what the group did not take."""

    def __init__(self, group: Group, ownership: Ownership, positions: Positions) -> None:
        self._group = group
        self._ownership = ownership
        self._positions = positions
        self._outage = Outage()
        self.unknown_topic = False
        """Whether the last try failed for a topic that the coordinator does not know."""
        self.refused_commits = 0
        self.refused_rows = 0

    def commit(self, batch: PlannedBatch) -> bool:
        """Commit what is ours of it. False: some of it has to be tried again.

        A refusal counts only when the partition is not ours any more: a member that joins again is between
        two generations for a moment, and keeps what it has.
        """
        self.unknown_topic = False
        moved = [own for own in batch.commits if not self._ownership.holds(own)]
        if moved:
            self._refused(batch, moved)
        token = batch.document.token
        for part, outcome in commit_parts(self._group, self._ownership, batch.commits, token):
            owned = [t for t in batch.commits if t.index == part.index and t.partition in part.offsets]
            if outcome is None:
                for own in owned:
                    self._positions.advance(own, batch.committed(own))
                self._ownership.end(owned)
            elif isinstance(outcome, CommitRefusedError):
                logger.debug("the commit of a finished batch waits for the rebalance: %s", outcome)
            else:
                self.unknown_topic = self.unknown_topic or outcome.unknown_topic
                self._outage.report("the commit of a finished batch waits for the coordinator: %s", outcome)
        if batch.commits:
            return False
        self._outage.over()
        return True

    def give_up(self, batch: PlannedBatch, owned: Iterable[OwnedPartition], why: str) -> None:
        """These cannot be committed at all."""
        self._refused(batch, list(owned), why)

    def _refused(self, batch: PlannedBatch, owned: list[OwnedPartition], why: str = MOVED) -> None:
        lost = batch.ranges(owned)
        for own in owned:
            del batch.commits[own]
        self._ownership.end(owned)
        rows = sum(found.rows for found in lost.values())
        self.refused_commits += 1
        self.refused_rows += rows
        logger.warning(
            "group %s did not take the commit of a finished batch (%s): up to %d rows of %d partitions may "
            "be processed twice: %s",
            batch.document.group,
            why,
            rows,
            len(lost),
            ranges_text(lost),
        )

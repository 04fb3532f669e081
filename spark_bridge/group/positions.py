"""Where each partition of the query goes on, from the moment it is gained to the moment it is given up."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ringleader.clients.model import EARLIEST, LATEST, TopicPartition
from ringleader.protocol.schema import ZERO_UUID
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.batch.resume import Finished, Reason, resume
from ringleader.spark_bridge.batch.starting import first_positions, listed
from ringleader.spark_bridge.errors import DataLossError
from ringleader.spark_bridge.group.membership import (
    CommitRefusedError,
    Group,
    GroupUnavailableError,
    MemberCommit,
    OwnedPartition,
    Ownership,
)
from ringleader.spark_bridge.network.ports import Log
from ringleader.spark_bridge.values import Committed, CommitToken, OffsetRange

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions

logger = logging.getLogger("ringleader.spark")


class Outage:
    """One line for an outage, not one for each try."""

    def __init__(self) -> None:
        self._reported = False

    def report(self, message: str, error: Exception) -> None:
        """It goes on."""
        if not self._reported:
            self._reported = True
            logger.warning(message, error)

    def over(self) -> None:
        """It works again."""
        self._reported = False


class Positions:
    """The next offset to read of each owned partition. Partitions that stay keep their own without asking the
    group."""

    def __init__(
        self, options: StreamOptions, group: Group, ownership: Ownership, log: Log, missing_s: float
    ) -> None:
        self._options = options
        self._group = group
        self._ownership = ownership
        self._log = log
        self._missing_s = missing_s
        self._at: dict[OwnedPartition, int] = {}
        self._topic_ids: dict[OwnedPartition, bytes] = {}
        """Of the topics that those positions are in."""
        self._former_ids: set[bytes] = set()
        self._missing_since: dict[TopicPartition, float] = {}
        self._outage = Outage()
        self.unseen: frozenset[TopicPartition] = frozenset()
        """The partitions that startingOffsets is for, with any owner: all there were when the query began."""
        self.first: dict[TopicPartition, int] = {}
        """First offsets of those without an offset of the group then, until the checkpoint holds them. A
        partition in neither is newer than the query."""
        self.finished: dict[TopicPartition, Finished] = {}
        """Ranges that the sink and Spark's commit log hold, but perhaps not the group."""
        self.token = CommitToken("", 0)
        """The newest batch of this query that is done, by the checkpoint or by what it committed before."""

    def resolve(
        self, owned: Mapping[TopicPartition, OwnedPartition], document: OffsetDocument
    ) -> dict[TopicPartition, int]:
        """The positions of what is owned; what could not be placed now is left out.

        Raises DataLossError, SourceError.
        """
        self._note(document.token)
        held = set(owned.values())
        self._at = {own: position for own, position in self._at.items() if own in held}
        self._topic_ids = {own: topic_id for own, topic_id in self._topic_ids.items() if own in held}
        gained = [own for own in owned.values() if own not in self._at]
        if gained or self.unseen:
            try:
                self._gain(gained, document)
            except CommitRefusedError as error:
                logger.debug("the positions of new partitions wait for the rebalance: %s", error)
            except GroupUnavailableError as error:
                self._outage.report("the positions of new partitions wait for the coordinator: %s", error)
            else:
                self._outage.over()
        return {tp: self._at[own] for tp, own in owned.items() if own in self._at}

    def note_committed(self, committed: Mapping[TopicPartition, Committed]) -> None:
        """The group's offsets. With asynchronous progress tracking they may be of later batches than the
        checkpoint's last one: numbers must not come twice."""
        for found in committed.values():
            if found.token is not None and found.token.query == self.token.query:
                self._note(found.token)

    def note_finished(self, ranges: Mapping[TopicPartition, OffsetRange], batch: CommitToken) -> None:
        """The sink and Spark's commit log hold these ranges of that batch."""
        self.finished.update({tp: Finished(found, batch) for tp, found in ranges.items()})

    def advance(self, own: OwnedPartition, position: int) -> None:
        """A batch up to there has been committed."""
        if own in self._at:
            self._at[own] = position

    def checked(
        self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """The positions, those corrected that the log does not have any more; partitions that are gone are
        left out. Raises DataLossError when that must not pass."""
        now = {tp: position for tp, position in positions.items() if tp in ends}
        self._note_missing(positions.keys() - ends.keys())
        again = {tp: now[tp] for tp in self._made_again() if tp in now}
        short = {tp: position for tp, position in now.items() if ends[tp] < position and tp not in again}
        if not short and not again:
            return now
        fixed = self._from_start(again) | self._within_log(short)
        # Kept: a log that stays empty would be logged at every look.
        self._at |= {own: fixed[own.partition] for own in self._at if own.partition in fixed}
        return now | fixed

    def complete(self, owned: Mapping[TopicPartition, OwnedPartition]) -> bool:
        """Whether everything that is owned has a position, and none is missing that may only be late."""
        waiting = any(since_s >= 0 for since_s in self._missing_since.values())
        return not waiting and all(own in self._at for own in owned.values())

    def _note(self, token: CommitToken) -> None:
        if token.number > self.token.number:
            self.token = CommitToken(self.token.query, token.number)

    # -- partitions gained

    def _gain(self, gained: Iterable[OwnedPartition], document: OffsetDocument) -> None:
        by_partition = {own.partition: own for own in gained}
        committed = self._group.committed(self.unseen | by_partition.keys())
        self.note_committed(committed)
        self._look(committed.keys() | document.positions.keys())
        positions: dict[TopicPartition, int] = {}
        commits: dict[TopicPartition, int] = {}
        fresh: list[TopicPartition] = []
        reasons: dict[Reason, dict[TopicPartition, int]] = {}
        for tp in sorted(by_partition):
            found = resume(
                committed.get(tp), self.finished.get(tp), document.positions.get(tp), self.token.query
            )
            if found.position is None:
                fresh.append(tp)
                continue
            positions[tp] = found.position
            if found.commit:
                commits[tp] = found.position
            reasons.setdefault(found.reason, {})[tp] = found.position
        reasons[Reason.STARTING] = {tp: self.first[tp] for tp in fresh if tp in self.first}
        if new := {tp: EARLIEST for tp in fresh if tp not in self.first}:
            why = Reason.STARTING if self._options.starts_at_earliest else Reason.NEW
            reasons[why] = self._log.offsets(new)
        _tell(reasons)
        for first in (reasons[Reason.STARTING], reasons.get(Reason.NEW, {})):
            commits.update(first)
            positions.update(first)
        positions.update(self._within_log(positions))
        self._pin({by_partition[tp]: positions[tp] for tp in commits})
        for tp, position in positions.items():
            self._at[by_partition[tp]] = position
            self._topic_ids[by_partition[tp]] = self._log.topic_id(tp[0])
            self.finished.pop(tp, None)

    def _look(self, known: Collection[TopicPartition]) -> None:
        """See where the query begins, also in what others own: they may never commit, and a later look would
        miss what has come meanwhile."""
        unknown = sorted(tp for tp in self.unseen if tp not in known)
        self.first |= first_positions(self._options, unknown, self._log) if unknown else {}
        self.unseen = frozenset()

    def _pin(self, commits: Mapping[OwnedPartition, int]) -> None:
        """Commit first positions, so that they are resolved one time only."""
        left = {own.partition for own in commits}
        for part, outcome in commit_parts(self._group, self._ownership, commits, self.token):
            if outcome is not None:
                logger.debug("positions of %s are not pinned yet: %s", part.offsets, outcome)
                raise outcome
            left -= part.offsets.keys()
        if left:
            raise CommitRefusedError(f"{listed(left)} moved on before a position was pinned")

    # -- what is gone

    def _note_missing(self, missing: Iterable[TopicPartition]) -> None:
        """Partitions that are ours and that the cluster does not know: a topic was deleted, unless a broker
        is late to learn of it."""
        now_s = time.monotonic()
        before, self._missing_since = self._missing_since, {}
        for tp in sorted(missing):
            since_s = self._missing_since[tp] = before.get(tp, now_s)
            if now_s - since_s < self._missing_s or since_s < 0:
                continue
            text = f"{tp[0]}-{tp[1]} does not exist any more"
            if self._options.fail_on_data_loss:
                raise DataLossError(
                    f"{text}: its topic was deleted, with what was not read of it. Set failOnDataLoss=false "
                    "to go on without it."
                )
            logger.warning("%s; going on without it (failOnDataLoss=false)", text)
            self._missing_since[tp] = -1.0

    def _made_again(self) -> list[TopicPartition]:
        """Partitions whose topic is another one, under its name, than when they were gained. A broker may be
        late, and tell of a former one."""
        found = []
        for own, known in self._topic_ids.items():
            now = self._log.topic_id(own.partition[0])
            if now in (known, ZERO_UUID) or now in self._former_ids:
                continue
            self._topic_ids[own] = now
            if known != ZERO_UUID:
                found.append(own.partition)
                self._former_ids.add(known)
        return sorted(found)

    def _from_start(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where logs begin whose topics were made again: an offset of the former one says nothing. Raises
        DataLossError when that must not pass."""
        starts = self._log.offsets(dict.fromkeys(positions, EARLIEST))
        for tp, position in positions.items():
            text = f"the topic of {tp[0]}-{tp[1]}, read up to offset {position}, was deleted and made again"
            if self._options.fail_on_data_loss:
                raise DataLossError(
                    f"{text}: what was not read of it is gone. Set failOnDataLoss=false to read the new one "
                    "from its start."
                )
            start = starts.get(tp, 0)
            logger.warning("%s; going on at %d of the new one (failOnDataLoss=false)", text, start)
        return {tp: starts.get(tp, 0) for tp in positions}

    def _within_log(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Corrections for positions outside the log: the records between are lost.

        Raises DataLossError when that must not pass.
        """
        starts = self._log.offsets(dict.fromkeys(positions, EARLIEST))
        ends = self._log.offsets(dict.fromkeys(positions, LATEST))
        fixed: dict[TopicPartition, int] = {}
        for tp, position in positions.items():
            start, end = starts.get(tp, position), ends.get(tp, position)
            if start <= position <= end:
                continue
            text = f"{tp[0]}-{tp[1]} should go on at offset {position}, but the log holds {start} to {end}"
            if self._options.fail_on_data_loss:
                raise DataLossError(
                    f"{text}. Records were deleted, or the topic was made again. Set failOnDataLoss=false "
                    "to go on from what is there."
                )
            logger.warning("%s; going on at %d (failOnDataLoss=false)", text, start)
            fixed[tp] = start
        return fixed


Outcome = CommitRefusedError | GroupUnavailableError | None


def commit_parts(
    group: Group, ownership: Ownership, commits: Mapping[OwnedPartition, int], token: CommitToken
) -> list[tuple[MemberCommit, Outcome]]:
    """Commit each position by the member that has the partition, as of its present generation; nothing of
    partitions that are gone."""
    parts = ownership.commits_of(commits, token)
    return list(zip(parts, group.commit(parts), strict=True)) if parts else []


def _tell(reasons: Mapping[Reason, Mapping[TopicPartition, int]], most: int = 50) -> None:
    """One line for each reason but the usual one."""
    for reason, positions in reasons.items():
        if reason is Reason.COMMITTED or not positions:
            continue
        texts = [f"{topic}-{number} at {position}" for (topic, number), position in sorted(positions.items())]
        more = f" and {len(texts) - most} more" if len(texts) > most else ""
        logger.info("%s%s: %s", ", ".join(texts[:most]), more, reason.value)


def ranges_text(ranges: Mapping[TopicPartition, OffsetRange], most: int = 50) -> str:
    """``t-0[100,150) t-1[7,9)``; the first ``most`` of them."""
    texts = [f"{topic}-{number}[{start},{end})" for (topic, number), (start, end) in sorted(ranges.items())]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return " ".join(texts[:most]) + more

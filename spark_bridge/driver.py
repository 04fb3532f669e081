"""The mind of the streaming source, without Spark: which batch comes next, and when it is committed.

Spark's calls come in this order: ``latest(start)`` for each trigger; it returns a new end when there is
something to read; then ``slices(end)``; the tasks; the sink; Spark's commit log; and ``latest(end)``
again. That last call is the commit signal: with ``start == end`` Spark has logged the batch. After a
restart the first call is either ``latest`` (the last batch is logged: repair its group commit if that
was lost) or ``slices`` (the last batch runs again: replay).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ringleader.spark_bridge.errors import DataLossError, SourceError
from ringleader.spark_bridge.membership import CommitRefusedError, Group, GroupUnavailableError, Hold, Share
from ringleader.spark_bridge.offsets import (
    EARLIEST,
    LATEST,
    OffsetDocument,
    OffsetRange,
    TopicPartition,
    by_topic,
)
from ringleader.spark_bridge.options import StreamOptions
from ringleader.spark_bridge.planning import SliceRange, cut_slices, plan_ranges
from ringleader.spark_bridge.resume import Reason, commit_after_replay, replay, resume

logger = logging.getLogger("ringleader.spark")

# A share is waited for so long before a trigger goes by empty; a first join takes Kafka's initial delay.
FIRST_SHARE_WAIT_S = 30.0
SHARE_WAIT_S = 2.0
# Spark polls an idle source 90 times a second; blocking keeps both processes quiet.
IDLE_WAIT_S = 0.25
IDLE_POLL_S = 0.05
# Batches that take so much of the rebalance timeout are about to lose their partitions.
SLOW_BATCH_PART = 0.7


class Log(Protocol):
    """What the source asks of the topics. Partitions that do not exist are left out of answers."""

    def partitions(self, topics: tuple[str, ...]) -> list[TopicPartition]:
        """All partitions of these topics."""

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets by ListOffsets timestamp: -2 the log's start, -1 its end, uncommitted records included."""

    def ends(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How far the query may read: the log's end, or the last stable offset under read_committed."""

    def close(self) -> None:
        """Close connections."""


@dataclass(frozen=True)
class Timing:
    """How long calls may block, in seconds."""

    first_share_wait_s: float = FIRST_SHARE_WAIT_S
    share_wait_s: float = SHARE_WAIT_S
    idle_wait_s: float = IDLE_WAIT_S
    idle_poll_s: float = IDLE_POLL_S


@dataclass(frozen=True)
class _Flight:
    """The batch between the call that planned it and the call that says it is durable."""

    document: OffsetDocument
    generation: int | None
    reads: Mapping[TopicPartition, OffsetRange]
    commits: Mapping[TopicPartition, int]
    began_s: float


class SourceDriver:
    """Plans batches over the share of one member. Calls come from one thread."""

    def __init__(self, options: StreamOptions, group: Group, log: Log, timing: Timing | None = None) -> None:
        self._options = options
        self._group = group
        self._log = log
        self._timing = timing or Timing()
        self._hold = Hold()
        self._started = False
        self._had_share = False
        self._flight: _Flight | None = None
        # Ranges that the sink and Spark's commit log hold, but perhaps not the group.
        self._finished: dict[TopicPartition, OffsetRange] = {}
        self._seen_first = False
        self._generation: int | None = None
        self._positions: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._targets: dict[TopicPartition, int] | None = None
        self._warned_slow = False
        self._complained = False
        self.refused_commits = 0

    # -- what Spark calls, by way of the reader

    def prepare_available_now(self) -> None:
        """Fix the log ends of the whole subscription as targets: nothing newer is read."""
        wanted = self._log.partitions(self._options.subscribe)
        self._targets = self._log.ends(wanted)

    def latest(self, start: Any, max_rows: int | None) -> Any:
        """The end of the next batch, or ``start`` itself when there is nothing to read.

        That Spark calls this says that every batch up to ``start`` is in its commit log.
        """
        document = OffsetDocument.from_json(start, self._options.group_id)
        self._start()
        self._note_durable(document)
        deadline = time.monotonic() + self._timing.idle_wait_s
        while True:
            share = self._wait_share() if self._settle() else None
            if share is not None and self._position(share, document):
                found = self._plan(share, document, max_rows)
                if found is not None:
                    return found.to_json()
                if self._targets is not None and self._hold.holds(share.generation):
                    return start
            if self._targets is None and time.monotonic() >= deadline:
                return start
            self._hold.wait_change(self._timing.idle_poll_s)

    def slices(self, end: Any) -> list[list[SliceRange]]:
        """The tasks of the batch that ends at ``end``: as planned, or replayed from the checkpoint."""
        document = OffsetDocument.from_json(end, self._options.group_id)
        self._start()
        if self._flight is None or self._flight.document != document:
            self._flight = self._replay(document)
        return cut_slices(self._flight.reads, self._options.parallelism, self._options.min_partitions)

    def report(self) -> dict[str, Any] | None:
        """Log ends, lag and generation as of the last plan, for Spark's progress."""
        if self._generation is None:
            return None
        lag = sum(max(0, end - self._positions.get(tp, end)) for tp, end in self._ends.items())
        return {"ends": by_topic(self._ends), "generation": self._generation, "lag": lag}

    def stop(self) -> None:
        """Leave the group at once. The batch in flight stays uncommitted: only Spark knows its fate."""
        self._hold.end()
        try:
            self._group.leave("the query stopped")
        finally:
            self._log.close()

    # -- the commit signal

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        known = {topic for topic, _ in self._log.partitions(self._options.subscribe)}
        if missing := [topic for topic in self._options.subscribe if topic not in known]:
            logger.warning("no such topic (yet): %s; the query waits for it", ", ".join(missing))
        self._group.start(self._hold)

    def _note_durable(self, document: OffsetDocument) -> None:
        """Everything in ``document`` is in Spark's commit log."""
        if not self._seen_first and self._flight is None:
            # First call after a (re)start: the group commit of that batch may have been lost.
            self._finished.update(document.ranges)
        self._seen_first = True
        if self._flight is not None and self._flight.document != document:
            logger.warning("Spark dropped a planned batch of group %s; planning it anew", document.group)
            self._drop_flight()

    def _drop_flight(self) -> None:
        self._flight = None
        self._generation = None
        self._hold.end()

    def _settle(self) -> bool:
        """Commit the batch in flight, which is durable now. False when the group cannot be reached.

        This comes before any waiting for a share: a revocation may be waiting for the commit.
        """
        flight = self._flight
        if flight is None:
            return True
        self._warn_if_slow(flight)
        if flight.generation is not None and self._hold.holds(flight.generation):
            try:
                if flight.commits:
                    self._group.commit(flight.commits, flight.generation)
            except GroupUnavailableError as error:
                self._complain("the commit of a finished batch waits for the coordinator: %s", error)
                return False
            except CommitRefusedError as error:
                self._refused(flight, str(error))
            else:
                self._complained = False
                self._positions.update(flight.commits)
        else:
            self._refused(flight, "the partitions moved on before the batch was over")
        self._flight = None
        self._hold.end()
        return True

    def _complain(self, message: str, error: Exception) -> None:
        """One line for an outage, not one for each try."""
        if not self._complained:
            self._complained = True
            logger.warning(message, error)

    def _refused(self, flight: _Flight, why: str) -> None:
        self.refused_commits += 1
        self._generation = None
        self._finished.update({tp: flight.reads[tp] for tp in flight.commits})
        rows = sum(flight.reads[tp].rows for tp in flight.commits)
        logger.warning(
            "group %s did not take the commit of a finished batch (%s): up to %d rows of %d partitions "
            "may be "
            "processed twice",
            flight.document.group,
            why,
            rows,
            len(flight.commits),
        )

    def _warn_if_slow(self, flight: _Flight) -> None:
        took_ms = int((time.monotonic() - flight.began_s) * 1000)
        limit_ms = self._options.rebalance_timeout_ms
        if took_ms > limit_ms * SLOW_BATCH_PART and not self._warned_slow:
            self._warned_slow = True
            logger.warning(
                "a batch took %d ms from plan to commit; kafka.max.poll.interval.ms is %d: a rebalance "
                "would take the "
                "partitions away before the commit. Raise it, or make batches smaller "
                "(maxOffsetsPerTrigger).",
                took_ms,
                limit_ms,
            )

    # -- the share and its positions

    def _wait_share(self) -> Share | None:
        """The current share; None when the group gave none in good time."""
        timing = self._timing
        if self._targets is not None:
            # Returning ``start`` would end the query, so wait; the bound turns a deadlock into a sentence.
            wait_s = self._options.rebalance_timeout_ms / 1000 + 60
        else:
            wait_s = timing.share_wait_s if self._had_share else timing.first_share_wait_s
        share = self._hold.wait_share(wait_s)
        if share is not None:
            self._had_share = True
        elif self._targets is not None:
            raise SourceError(
                f"group {self._options.group_id} gave this query no assignment within {wait_s:.0f} s: a "
                f"rebalance does "
                "not end (a member holds it up, or the coordinator is away)"
            )
        return share

    def _position(self, share: Share, document: OffsetDocument) -> bool:
        """Make positions fit the share. False when the group cannot be reached."""
        if self._generation == share.generation:
            return True
        try:
            self._positions = self._resolve(share, document)
        except (GroupUnavailableError, CommitRefusedError) as error:
            self._complain("the positions of the partitions wait for the coordinator: %s", error)
            return False
        self._complained = False
        self._generation = share.generation
        self._ends = {}
        for tp in share.partitions:
            self._finished.pop(tp, None)
        return True

    def _resolve(self, share: Share, document: OffsetDocument) -> dict[TopicPartition, int]:
        if not share.partitions:
            return {}
        committed = self._group.committed(share.partitions)
        positions: dict[TopicPartition, int] = {}
        commits: dict[TopicPartition, int] = {}
        fresh: list[TopicPartition] = []
        for tp in sorted(share.partitions):
            found = resume(committed.get(tp), self._finished.get(tp), document.positions.get(tp))
            if found.position is None:
                fresh.append(tp)
                continue
            positions[tp] = found.position
            if found.commit:
                commits[tp] = found.position
            if found.reason is not Reason.COMMITTED:
                logger.info("%s-%d starts at %d: %s", *tp, found.position, found.reason.value)
        first = self._first_positions(fresh)
        for tp, position in first.items():
            logger.info("%s-%d starts at %d: %s", *tp, position, Reason.STARTING.value)
        commits.update(first)
        positions.update(first)
        positions.update(self._within_log(positions))
        if commits:
            self._group.commit(commits, share.generation)
        return positions

    def _first_positions(self, fresh: list[TopicPartition]) -> dict[TopicPartition, int]:
        """What startingOffsets says for partitions that the group has no offset of."""
        starting = self._options.starting_offsets
        exact: dict[TopicPartition, int] = {}
        asked: dict[TopicPartition, int] = {}
        for tp in fresh:
            if isinstance(starting, dict):
                if tp not in starting:
                    raise SourceError(
                        f"startingOffsets does not name {tp[0]}-{tp[1]}, of which the group has no "
                        f"offset: it must name "
                        "every partition of the subscription"
                    )
                value = starting[tp]
                if value >= 0:
                    exact[tp] = value
                    continue
                asked[tp] = value
            else:
                asked[tp] = LATEST if starting == "latest" else EARLIEST
        return exact | (self._log.offsets(asked) if asked else {})

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
            said = f"{tp[0]}-{tp[1]} should go on at offset {position}, but the log holds {start} to {end}"
            if self._options.fail_on_data_loss:
                raise DataLossError(
                    f"{said}. Records were deleted, or the topic was made anew. Set failOnDataLoss=false "
                    f"to go on from "
                    "what is there."
                )
            logger.warning("%s; going on at %d (failOnDataLoss=false)", said, start)
            fixed[tp] = start
        return fixed

    # -- planning

    def _plan(self, share: Share, document: OffsetDocument, max_rows: int | None) -> OffsetDocument | None:
        if not share.partitions:
            return None
        self._ends = self._log.ends(share.partitions)
        ends = self._ends
        if self._targets is not None:
            ends = {tp: min(end, self._targets.get(tp, 0)) for tp, end in ends.items()}
        ranges = plan_ranges(self._positions, ends, max_rows)
        if not ranges or not self._hold.begin(share.generation):
            return None
        finish = {tp: found.end for tp, found in ranges.items()}
        planned = OffsetDocument(document.group, ranges, {**document.positions, **self._positions, **finish})
        self._flight = _Flight(planned, share.generation, ranges, finish, time.monotonic())
        return planned

    def _replay(self, document: OffsetDocument) -> _Flight:
        """A batch from the checkpoint that Spark runs again."""
        self._seen_first = True
        if not document.ranges:
            return _Flight(document, None, {}, {}, time.monotonic())
        while True:
            share = self._hold.wait_share(self._options.rebalance_timeout_ms / 1000 + 60)
            if share is None:
                raise SourceError(
                    f"group {document.group} gave this query no assignment, so a batch from the "
                    f"checkpoint cannot be "
                    "run again: a rebalance does not end, or the coordinator is away"
                )
            ours = share.partitions & document.ranges.keys()
            try:
                committed = self._group.committed(frozenset(document.ranges))
            except GroupUnavailableError as error:
                self._complain("a replay waits for the coordinator: %s", error)
                self._hold.wait_change(self._timing.idle_poll_s)
                continue
            if self._hold.begin(share.generation):
                break
        reads: dict[TopicPartition, OffsetRange] = {}
        commits: dict[TopicPartition, int] = {}
        for tp, logged in document.ranges.items():
            part = replay(logged, committed.get(tp), self._options.replay_policy)
            if part is not None:
                reads[tp] = part
                if commit_after_replay(logged, tp in ours, committed.get(tp)):
                    commits[tp] = logged.end
        logger.info(
            "a batch from the checkpoint runs again (%s): %d of %d rows, %d of %d partitions",
            self._options.replay_policy.value,
            sum(part.rows for part in reads.values()),
            sum(part.rows for part in document.ranges.values()),
            len(reads),
            len(document.ranges),
        )
        return _Flight(document, share.generation, reads, commits, time.monotonic())

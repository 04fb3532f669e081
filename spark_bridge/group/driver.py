"""The mind of the streaming source, without Spark: which batch comes next, and when it is committed.

Spark's calls come in this order: ``latest(start)`` for each trigger; it returns a new end when there is
something to read; then ``slices(end)``; the tasks; the sink; Spark's commit log; and ``latest(end)``
again. That last call is the commit signal: with ``start == end`` Spark has logged the batch. After a
restart the first call is either ``latest`` (the last batch is logged: repair its group commit if that
was lost) or ``slices`` (the last batch runs again: replay).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.batch.first_look import not_looked_at, tell_passed_over
from ringleader.spark_bridge.batch.planning import cut_slices, plan_ranges
from ringleader.spark_bridge.batch.resume import commit_after_replay, replay
from ringleader.spark_bridge.batch.topics import Topics
from ringleader.spark_bridge.errors import DataLossError, SourceError
from ringleader.spark_bridge.group.batch_commits import BatchCommits, PlannedBatch
from ringleader.spark_bridge.group.membership import Group, GroupUnavailableError, OwnedPartition, Ownership
from ringleader.spark_bridge.group.other_members import OtherMembers
from ringleader.spark_bridge.group.positions import Outage, Positions, ranges_text
from ringleader.spark_bridge.group.rebalances import listed
from ringleader.spark_bridge.group.triggers import Idle, Threshold, Triggers
from ringleader.spark_bridge.network.ports import Log
from ringleader.spark_bridge.values import Committed, CommitToken, OffsetRange, SliceRange, by_topic

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions

logger = logging.getLogger("ringleader.spark")

# How long a trigger waits for an assignment before it ends empty; the first takes Kafka's initial delay.
FIRST_ASSIGNMENT_WAIT_S = 30.0
ASSIGNMENT_WAIT_S = 2.0
# The longest time that an idle source blocks a call of Spark's.
IDLE_WAIT_S = 0.25
IDLE_POLL_S = 0.05
# A partition that the cluster does not know counts as deleted after this time, not at a broker's first word.
MISSING_S = 10.0
# A topic that was just created may not be known to the broker that is asked.
NO_TOPIC_S = 2.0
# `members` is auto: more than this many members cost more threads than they bring partitions.
MOST_MEMBERS = 16


@dataclass(frozen=True)
class Timing:
    """How long calls may block, in seconds; ``missing_s`` and ``no_topic_s``: see MISSING_S, NO_TOPIC_S."""

    first_assignment_wait_s: float = FIRST_ASSIGNMENT_WAIT_S
    assignment_wait_s: float = ASSIGNMENT_WAIT_S
    idle_wait_s: float = IDLE_WAIT_S
    idle_poll_s: float = IDLE_POLL_S
    missing_s: float = MISSING_S
    no_topic_s: float = NO_TOPIC_S


class SourceDriver:
    """Plans batches over what the query's members are assigned. Calls come from one thread."""

    def __init__(self, options: StreamOptions, group: Group, log: Log, timing: Timing | None = None) -> None:
        self._options = options
        self._subscription = options.subscription.ordered()
        self._group = group
        self._log = log
        self._timing = timing or Timing()
        self._ownership = Ownership()
        self._build()
        # Partitions that the option assigns stay, however long a batch holds them.
        self._triggers = Triggers(2**63 if options.assign else options.rebalance_timeout_ms)
        self._topics = Topics(options, log, self._timing.missing_s)
        self._idle = Idle(self._timing.idle_wait_s)
        self._threshold = Threshold(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
        self._other_members = OtherMembers(options, group)
        self._outage = Outage()
        self._started = False
        self._had_assignment = False
        self._batch: PlannedBatch | None = None
        self._seen_first = False
        self._ends: dict[TopicPartition, int] = {}
        self._next_offsets: dict[TopicPartition, int] = {}
        self._targets: dict[TopicPartition, int] | None = None
        self._read_all = False
        self._members = 1
        self._growing_until_s: float | None = None

    @property
    def refused_commits(self) -> int:
        """Batches of which the group did not take the commit, or not all of it."""
        return self._batch_commits.refused_commits

    # -- what Spark calls, by way of the reader

    def prepare_available_now(self) -> None:
        """Fix the log ends of the whole subscription as targets: nothing newer is read."""
        self._targets = self._log.ends(self._topics.ask())

    def latest(self, start: Any, max_rows: int | None) -> Any:
        """The end of the next batch, or ``start`` itself when there is nothing to read.

        That Spark calls this says that every batch up to ``start`` is in the sink, and in Spark's commit log
        unless that is written asynchronously. Raises SourceError, DataLossError.
        """
        document = OffsetDocument.from_json(start, self._options.group_id)
        if self._read_all:
            return start
        self._start(document)
        self._triggers.called(_now_ms())
        self._note_durable(document)
        if self._batch is not None:
            self._triggers.batch_committed(_now_ms() - self._batch.began_ms)
        now_s = time.monotonic()
        deadline = now_s + self._idle.wait_s(now_s)
        while True:
            self._ownership.check()
            joined = self._growing_until_s is None or self._group.stable()
            if self._commit_batch() and self._wait_assigned():
                found = self._plan(document, max_rows)
                if found is not None:
                    self._triggers.forget()
                    self._idle.over()
                    return found.to_json()
                if self._targets is not None and self._finished_all():
                    return self._remember(document) or start
            if joined:
                self._growing_until_s = None
            left_s = max(deadline, self._growing_until_s or 0.0) - time.monotonic()
            if self._targets is None and left_s <= 0:
                self._idle.answered(time.monotonic())
                if self._had_assignment:
                    self._all_join()
                return self._remember(document) or start
            poll_s = self._timing.idle_poll_s
            self._ownership.wait_change(poll_s if self._targets is not None else min(poll_s, left_s))

    def slices(self, end: Any) -> list[list[SliceRange]]:
        """The tasks of the batch that ends at ``end``: as planned, or replayed from the checkpoint."""
        document = OffsetDocument.from_json(end, self._options.group_id)
        self._start(document)
        if self._batch is None or self._batch.document != document:
            self._batch = self._replay(document)
        self._all_join()
        options = self._options
        return cut_slices(
            self._batch.reads, options.parallelism, options.min_partitions, options.max_records_per_partition
        )

    def note_commit(self, end: Any) -> None:
        """Spark's own commit call: of no use as a signal, but it tells something about the query."""
        self._other_members.batch_done(end)

    def report(self) -> dict[str, Any] | None:
        """Log ends, lag, what is owned by which member, for Spark's progress.

        The lag is what the batch that was just planned leaves, as Spark's Kafka connector counts it.
        """
        members = self._ownership.members()
        if not members:
            return None
        behind = {tp: max(0, end - self._next_offsets.get(tp, end)) for tp, end in self._ends.items()}
        lags = list(behind.values()) or [0]
        return {
            "avgOffsetsBehindLatest": sum(lags) / len(lags),
            "ends": by_topic(self._ends),
            "generation": self._group.newest_generation(),
            "lag": sum(behind.values()),
            "lagByPartition": by_topic(behind),
            "maxOffsetsBehindLatest": max(lags),
            "members": {
                member: [f"{topic}-{number}" for topic, number in owned]
                for member, owned in sorted(members.items())
            },
            "minOffsetsBehindLatest": min(lags),
            "refusedCommits": self._batch_commits.refused_commits,
            "refusedRows": self._batch_commits.refused_rows,
            # Spark describes a Python source by the name of a Java class.
            "source": f"ringleader[{self._options.subscription}, group {self._options.group_id}]",
        }

    def stop(self) -> None:
        """Leave the group at once. The batch in flight stays uncommitted: only Spark knows its fate."""
        batch = self._batch
        if batch is not None and batch.commits:
            logger.warning(
                "the query stops with a batch in flight: if Spark finished it, up to %d rows may be "
                "processed twice, by other members: %s",
                sum(found.rows for found in batch.ranges(batch.commits).values()),
                ranges_text(batch.ranges(batch.commits)),
            )
        self._ownership.end()
        try:
            self._other_members.close()
            self._group.leave("the query stopped")
        finally:
            self._log.close()

    # -- the commit signal

    def _build(self) -> None:
        """Settings that depend on the number of members."""
        self._positions = Positions(
            self._options, self._group, self._ownership, self._log, self._timing.missing_s
        )
        self._batch_commits = BatchCommits(self._group, self._ownership, self._positions)

    def _start(self, document: OffsetDocument) -> None:
        if self._started:
            return
        self._started = True
        timing = self._timing
        self._topics.first(
            document.positions,
            timing.no_topic_s,
            lambda: self._ownership.wait_change(timing.idle_poll_s),
            "the query waits for it" if self._targets is None else "what is there is read",
        )
        self._members = self._member_count()
        self._ownership = Ownership(1 if self._joins_first_alone() else self._members)
        self._build()
        self._positions.unseen = not_looked_at(self._options, document, self._topics.partitions)
        if document.number and not self._positions.unseen:
            tell_passed_over(self._options)
        self._positions.token = CommitToken(document.query or secrets.token_hex(8), document.number)
        self._other_members.start()
        alone = self._members == 1 and (self._targets is not None or not self._options.shared_group)
        self._group.start(self._ownership, alone)

    def _member_count(self) -> int:
        given, partitions = self._options.member_count, len(self._topics.partitions)
        if self._options.members != "auto":
            return given or 1
        if self._targets is not None or not self._options.shared_group:
            # No other member to divide with, or none for long: more members would only take longer to join.
            return 1
        # More members than partitions would never get one, and would keep other consumers from theirs.
        return max(1, min(given or partitions, partitions, MOST_MEMBERS))

    def _joins_first_alone(self) -> bool:
        """Whether one member joins before the others: a coordinator holds the first rebalance of an empty
        group up for group.initial.rebalance.delay.ms, and again when a second member comes meanwhile."""
        # The ids of static members are those of their number.
        if self._members == 1 or self._options.group_instance_id is not None:
            return False
        try:
            return self._group.empty()
        except GroupUnavailableError:
            return False

    def _all_join(self) -> None:
        """There is a batch, or nothing to read: the members that would have held it up join."""
        if self._members <= self._ownership.member_count:
            return
        self._group.grow(self._members)
        if not self._ends or any(end > self._next_offsets.get(tp, end) for tp, end in self._ends.items()):
            # While a partition moves between members none reads it: "nothing to read" may not be true.
            self._growing_until_s = time.monotonic() + self._timing.first_assignment_wait_s

    def _follow_topics(self) -> None:
        """Partitions that have come are dealt out at once, to more members where there are too few."""
        if self._targets is not None or not (come := self._topics.look()):
            return
        count = self._member_count()
        # The ids of static members are those of their number.
        if count > self._ownership.member_count and self._options.group_instance_id is None:
            self._members = count
            self._group.grow(count)
        else:
            self._group.rebalance(f"{listed(come)} came into being")

    def _note_durable(self, document: OffsetDocument) -> None:
        """Everything in ``document`` is in Spark's commit log."""
        if not self._seen_first and self._batch is None:
            # First call after a (re)start: the group commit of that batch may have been lost.
            self._positions.note_finished(document.ranges, document.token)
        self._seen_first = True
        if document.subscription == self._subscription:
            self._positions.first = {}
        if self._batch is not None and self._batch.document != document:
            logger.warning("Spark dropped a planned batch of group %s; planning it again", document.group)
            self._batch = None
            self._ownership.end()

    def _commit_batch(self) -> bool:
        """Commit the batch in flight, which is durable now. False when some of it is still to be done.

        This comes before any waiting for an assignment: a revocation may be waiting for the commit.
        """
        batch = self._batch
        if batch is None:
            return True
        if not self._batch_commits.commit(batch):
            if self._batch_commits.unknown_topic:
                self._without_deleted(batch)
            return False
        # Also of partitions of other members: the next owner may skip rows that no other query wrote.
        self._positions.note_finished(batch.uncommitted(), batch.document.token)
        self._batch = None
        self._ownership.end()
        return True

    def _without_deleted(self, batch: PlannedBatch) -> None:
        """Kafka takes no commit for a topic that is deleted; waiting for it would be waiting forever."""
        known = set(self._topics.ask())
        deleted = [own for own in batch.commits if own.partition not in known]
        if not deleted:
            return
        if self._options.fail_on_data_loss:
            names = ranges_text(batch.ranges(deleted))
            raise DataLossError(
                f"the topic of {names} was deleted before its batch could be committed. Set "
                "failOnDataLoss=false to go on without it."
            )
        self._batch_commits.give_up(batch, deleted, "its topic was deleted")

    # -- the assignment

    def _wait_assigned(self) -> bool:
        """Whether a member has an assignment. The first time all of them are waited for."""
        timing = self._timing
        wait_s = timing.assignment_wait_s if self._had_assignment else timing.first_assignment_wait_s
        if self._targets is not None:
            # Returning ``start`` would end the query, so wait; the bound turns a deadlock into a sentence.
            wait_s = self._patience_s()
        if not self._had_assignment:
            # This call takes as long as the join does: it says nothing about the trigger interval.
            self._triggers.forget()
        if self._ownership.wait_assigned(wait_s, everybody=not self._had_assignment):
            self._had_assignment = True
            return True
        if self._targets is not None:
            raise SourceError(
                f"group {self._options.group_id} gave this query no assignment within {wait_s:.0f} s: a "
                "rebalance does not end (a member holds it up, or the coordinator is away)"
            )
        return False

    def _patience_s(self) -> float:
        return self._options.rebalance_timeout_ms / 1000 + 60

    def _finished_all(self) -> bool:
        """AvailableNow: whether what is assigned is read up to the targets. Then others get it at once."""
        targets = self._targets or {}
        if any(position < targets.get(tp, 0) for tp, position in self._next_offsets.items()):
            return False
        if not self._group.stable():
            return False
        # Only now: what came while that was asked has no position yet, and is still to be read.
        owned = {tp: own for tp, own in self._ownership.owned().items() if tp in targets}
        if not self._positions.complete(owned):
            return False
        self._read_all = True
        self._group.leave("everything that was there is read", for_good=True)
        return True

    # -- planning

    def _plan(self, document: OffsetDocument, max_rows: int | None) -> OffsetDocument | None:
        if not self._other_members.look(self._group.newest_generation()):
            return None
        self._follow_topics()
        owned = self._ownership.owned()
        positions = self._positions.resolve(owned, document)
        self._ends = self._log.ends(positions) if positions else {}
        self._next_offsets = positions = self._positions.checked(positions, self._ends)
        ends = self._ends
        if self._targets is not None:
            ends = {tp: min(end, self._targets.get(tp, 0)) for tp, end in ends.items()}
        else:
            backlog = sum(max(0, end - positions[tp]) for tp, end in ends.items() if tp in positions)
            if not self._threshold.reached(backlog, _now_ms()):
                return None
        planned = plan_ranges(positions, ends, max_rows)
        begun = self._ownership.begin(owned[tp] for tp in planned)
        ranges = {tp: found for tp, found in planned.items() if owned[tp] in begun}
        if not ranges:
            return None
        self._threshold.planned(_now_ms())
        finish = {tp: found.end for tp, found in ranges.items()}
        self._next_offsets = {**positions, **finish}
        made = self._next_document(document, ranges, positions | finish)
        self._batch = PlannedBatch(made, ranges, {owned[tp]: end for tp, end in finish.items()}, _now_ms())
        return made

    def _next_document(
        self,
        document: OffsetDocument,
        ranges: Mapping[TopicPartition, OffsetRange],
        positions: Mapping[TopicPartition, int],
    ) -> OffsetDocument:
        kept = self._topics.remembered({**self._positions.first, **document.positions})
        # A topic that is made again has nothing to do with what was written of the former one.
        self._positions.finished = self._topics.remembered(self._positions.finished)
        token = self._positions.token
        return OffsetDocument(
            document.group,
            ranges,
            {**kept, **positions},
            token.query,
            token.number + 1,
            self._subscription,
        )

    def _remember(self, document: OffsetDocument) -> Any:
        """A batch without rows when the checkpoint does not say yet where the query began; None otherwise.
        (Spark runs one first in any case.)"""
        if (
            self._options.starts_at_earliest
            or document.subscription == self._subscription
            or self._positions.unseen
            or not self._had_assignment
            or self._batch is not None
        ):
            return None
        made = self._next_document(document, {}, self._next_offsets)
        self._batch = PlannedBatch(made, {}, {}, _now_ms())
        return made.to_json()

    # -- replay

    def _replay(self, document: OffsetDocument) -> PlannedBatch:
        """A batch from the checkpoint that Spark runs again."""
        self._seen_first = True
        if not document.ranges:
            return PlannedBatch(document, {}, {}, _now_ms())
        committed, owned = self._wait_to_replay(document)
        reads: dict[TopicPartition, OffsetRange] = {}
        commits: dict[OwnedPartition, int] = {}
        for tp, logged in document.ranges.items():
            at = committed[tp].offset if tp in committed else None
            part = replay(logged, at, self._options.replay_policy)
            if part is None:
                continue
            reads[tp] = part
            if commit_after_replay(logged, tp in owned, at):
                commits[owned[tp]] = logged.end
        rest = owned.keys() - {own.partition for own in commits}
        self._ownership.end(owned[tp] for tp in rest)
        logger.info(
            "a batch from the checkpoint runs again (%s): %d of %d rows, %d of %d partitions: %s",
            self._options.replay_policy.value,
            sum(part.rows for part in reads.values()),
            sum(part.rows for part in document.ranges.values()),
            len(reads),
            len(document.ranges),
            ranges_text(reads),
        )
        return PlannedBatch(document, reads, commits, _now_ms())

    def _wait_to_replay(
        self, document: OffsetDocument
    ) -> tuple[Mapping[TopicPartition, Committed], dict[TopicPartition, OwnedPartition]]:
        """The group's offsets, and what is ours of the batch and kept until it is over."""
        while True:
            if not self._ownership.wait_assigned(self._patience_s(), everybody=True):
                raise SourceError(
                    f"group {document.group} gave this query no assignment, so a batch from the "
                    "checkpoint cannot be run again: a rebalance does not end, or the coordinator is away"
                )
            owned = self._ownership.owned()
            begun = self._ownership.begin(owned[tp] for tp in owned.keys() & document.ranges.keys())
            try:
                committed = self._group.committed(frozenset(document.ranges))
            except GroupUnavailableError as error:
                self._ownership.end(begun)
                self._outage.report("a replay waits for the coordinator: %s", error)
                self._ownership.wait_change(self._timing.idle_poll_s)
                continue
            self._outage.over()
            self._positions.note_committed(committed)
            return committed, {own.partition: own for own in begun}


def _now_ms() -> int:
    return int(time.monotonic() * 1000)

"""Records and polls become history: inference in between, with its snapshots in the same transaction as its
conclusions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ringleader.insight.feed.tail import Data
from ringleader.insight.history import History, HistoryError, Position
from ringleader.insight.history.history import Output
from ringleader.insight.inference.engine import Inference
from ringleader.insight.inference.facts import Fact
from ringleader.insight.model import Commit, Event, Lag, TopicPartition

LATER_S = 5.0
"""Commits, positions and snapshots are written so late: of busy groups all would be new each second."""
FLUSH_RECORDS = 50_000
"""In a backlog: what is read again at most after a kill."""
PRUNE_EVERY_S = 30.0
SECONDARY = (Commit, Lag)

T = TypeVar("T")


class Recorder:
    """Belongs to one event loop, and to one task of it: what `flush` waits for it does in a thread."""

    def __init__(self, history: History, *, exact: bool) -> None:
        """`exact`: Ringleader's journal tells of the groups. Raises HistoryError where the history's
        snapshots are of a newer version."""
        self.history = history
        self.inference = Inference(exact=exact)
        self.records = 0
        """Given to inference, and not in the history yet."""
        self._kept: list[Output] = []
        self._newest_ms = history.newest_ms or 0
        self._written_s = time.monotonic()
        self._pruned_s = 0.0
        try:
            self.inference.restore(history.snapshots())
        except ValueError as error:
            raise HistoryError(
                f"{history.path} was written by another version ({error}): name another file"
            ) from error

    def read(
        self, partition: int, offsets: Sequence[int], times: Sequence[int], keys: Data, values: Data
    ) -> None:
        """Records of `__consumer_offsets`."""
        self.records += len(offsets)
        self._newest_ms = max(self._newest_ms, times[-1])
        record = self.inference.record
        for offset, at_ms, key, value in zip(offsets, times, keys, values, strict=True):
            record(partition, offset, at_ms, key, value)

    def tell(self, fact: Fact) -> None:
        """A record of another topic."""
        self.records += 1
        self._newest_ms = max(self._newest_ms, fact.at_ms)
        self.inference.tell(fact)

    def add(self, outputs: Iterable[Output]) -> None:
        """Take outputs that need no inference."""
        self._kept += outputs

    async def flush(
        self, positions: Mapping[TopicPartition, Position], *, now_ms: int | None, at_once: bool = False
    ) -> bool:
        """Write the conclusions; whether positions and snapshots were written, too: that is done every few
        seconds, and `at_once`. `positions`: all records before them were read. `now_ms`: Unix time if all
        records that are there were read, else None. Raises HistoryError."""
        if now_ms is not None:
            self.inference.tick(now_ms)
            self._newest_ms = max(self._newest_ms, now_ms)
        self._kept += self.inference.drain()
        now_s = time.monotonic()
        whole = (
            at_once
            or self.records >= FLUSH_RECORDS
            or now_s - self._written_s >= LATER_S
            # An event of a poll would be seen again, at another time, after a kill.
            or any(isinstance(one, Event) for one in self._kept)
        )
        if not whole and all(isinstance(one, SECONDARY) for one in self._kept):
            return False
        outputs, self._kept = self._kept, []
        read_ms = self._newest_ms or None
        if not whole:
            # A process that is killed now reads the records again, with the same conclusions.
            await as_a_whole(self.history.record, outputs, read_ms=read_ms)
            return False
        groups, commits = self.inference.dirty()
        snapshots = {group: self.inference.snapshot(group) for group in groups}
        newest = {group: self.inference.commits_snapshot(group) for group in commits}
        self.records, self._written_s = 0, now_s
        await as_a_whole(
            self.history.record,
            outputs,
            positions=positions,
            snapshots=snapshots,
            commits=newest,
            read_ms=read_ms,
        )
        if now_ms is not None and now_s - self._pruned_s >= PRUNE_EVERY_S:
            forgotten = await as_a_whole(self.history.prune, now_ms)
            # A bit at a time, but as fast as it comes.
            self._pruned_s = 0.0 if forgotten else now_s
        return True


async def as_a_whole(work: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """The result of work on a history, done in a thread. Cancelled, it ends when the work has ended: what is
    written is not lost, and the history's connection is free for what comes next. Raises the work's error in
    place of CancelledError."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **named))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        working.result()
        raise

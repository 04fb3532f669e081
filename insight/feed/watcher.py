"""`Watcher`: reads a cluster, and writes its history."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from ringleader.clients.checks import seconds
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.errors import AuthenticationError, ClientError, RetriableError
from ringleader.clients.model import EARLIEST, LATEST
from ringleader.host.clock import wall_ms
from ringleader.insight.feed.polls import NODES_TOPIC, Polls
from ringleader.insight.feed.recorder import Recorder, as_a_whole
from ringleader.insight.feed.reports import Reports
from ringleader.insight.feed.tail import Data, Gap, Tail
from ringleader.insight.history import Away, History, HistoryError, Position, default_path
from ringleader.insight.history.history import MAX_AGE_MS, MAX_BYTES
from ringleader.insight.inference import journal
from ringleader.insight.inference.facts import Fact
from ringleader.insight.model import Event, EventKind, GroupState, Rebalance, TopicPartition
from ringleader.protocol.errors import MalformedError

JOURNAL_TOPIC = "__ringleader_journal"
CLIENT_ID = "ringleader-watch"
START_TIMEOUT_S = 10.0
FLUSH_S = 1.0
"""Conclusions are in the history this late."""
GROUPS_EVERY_S = 1.0
TOPICS_EVERY_S = 10.0
LAGS_EVERY_S = 10.0
REPORTS_EVERY_S = 5.0
"""Clients tell of themselves once a minute."""
AGAIN_S = 1.0
"""A cluster that is away is asked again after that."""


class Progress(NamedTuple):
    """How far the backlog is read that was there at the start, in offsets."""

    read: int
    total: int


class Watcher:
    """`async with Watcher("prod:9092") as watcher`: reads and writes until the block ends. Belongs to the
    event loop it is started in.

    Sources: `__ringleader_journal` where the cluster has it, else `__consumer_offsets` by inference (of nodes
    the topic of their groups). A history that another watcher began goes on where that one was.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        history: Path | str | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        from_start: bool = True,
        poll: bool = True,
        max_age_ms: int = MAX_AGE_MS,
        max_bytes: int = MAX_BYTES,
        reports: Reports | None = None,
        on_notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """`history`: the file; default: that of the cluster in the user's data directory. `from_start`: a new
        history begins with what the cluster's topics still have, else now. `poll=False`: only reads topics.
        `reports`: of clients about themselves, from nodes, which have no journal; with one they stand in it.
        `on_notice` gets sentences for people: that the cluster is away, that it is back. Raises ValueError
        for addresses that are none."""
        self._cluster = Cluster(bootstrap, client_id=CLIENT_ID, tls=tls, sasl=sasl)
        self._wanted_path = None if history is None else Path(history)
        self._from_start = from_start
        self._polling = poll
        self._bounds = max_age_ms, max_bytes
        self._reports = reports
        self._on_notice = on_notice
        self._polls = Polls(self._cluster, self._tell, wall_ms)
        self._tail = Tail(self._cluster, self._read_records, self._gap)
        self._seen: list[Fact] = []
        """Before the history was open."""
        self._recorder: Recorder | None = None
        self._moving = False
        """Groups moved when they were looked at last."""
        self._topics: tuple[str, ...] = ()
        self._target: dict[TopicPartition, int] = {}
        """The ends when it began."""
        self._backlog = 0
        self._ahead = asyncio.Event()
        """The backlog is read."""
        self._resumed = False
        self._written: dict[TopicPartition, int] = {}
        """All before these offsets is in the history."""
        self._flushed = asyncio.Condition()
        self._at_once = False
        """Somebody waits for what was read."""
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._away: Away | None = None
        """The cluster does not answer."""

    # ---- its life ----

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    async def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Connect, open the history, begin to read.

        Raises ConnectionLostError when the cluster is not reached in that time, AuthenticationError,
        BrokerError where its topics may not be read, HistoryError (HistoryLockedError: another watches it).
        """
        try:
            await self._cluster.ready(seconds(timeout_s))
            await self._polls.topics()
            self._topics = (self._polls.offsets_topic,)
            if self._polls.partitions(JOURNAL_TOPIC) and not self._polls.of_nodes:
                self._topics += (JOURNAL_TOPIC,)
            await self._polls.session_timeouts()
            await self._open()
            for fact in self._seen:
                self._tell(fact)
            self._tail.start()
            await self._begin()
        except BaseException:
            await self._close()
            raise
        works = [self._read()]
        if self._polling:
            works += [
                self._every(TOPICS_EVERY_S, self._look_at_topics),
                self._every(GROUPS_EVERY_S, self._look_at_groups),
                self._every(LAGS_EVERY_S, self._look_at_lags),
            ]
        if self._reports is not None:
            if self.exact:
                self._on_notice("nodes are not asked what clients told: it stands in the cluster's journal")
            elif self._reports.wants_hosts and not self._polls.of_nodes:
                self._on_notice("nobody is asked what clients told: these are no nodes of Ringleader")
            else:
                works.append(self._hear(self._reports))
        self._tasks = [asyncio.create_task(self._guard(work), name="watcher") for work in works]

    async def stop(self) -> None:
        """End; what was read is written. May be called more than once. Raises HistoryError where it cannot be
        written."""
        tasks, self._tasks = self._tasks, []
        known = self._failure
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            if self._failure is not None and self._failure is not known:
                raise self._failure
            if tasks and known is None:
                await self._recording.flush(self._tail.positions, now_ms=None, at_once=True)
        finally:
            await self._close()

    async def _open(self) -> None:
        cluster_id = self._polls.cluster_id or ""
        path = self._wanted_path or default_path(cluster_id, of_nodes=self._polls.of_nodes)
        host, port = self._cluster.bootstrap[0]
        max_age_ms, max_bytes = self._bounds
        history = await asyncio.to_thread(
            History.open,
            path,
            cluster_id=cluster_id,
            address=f"{host}:{port}",
            max_age_ms=max_age_ms,
            max_bytes=max_bytes,
        )
        try:
            self._fits(history)
            history.tell_away(None)  # of a watcher before this one
            retention_ms = await self._polls.retention_ms()
            if retention_ms is not None:
                history.tell_retention(retention_ms)
            self._recorder = Recorder(history, exact=self.exact)
        except BaseException:
            history.close()
            raise

    def _fits(self, history: History) -> None:
        """Nodes have the id of the cluster behind them, whose own groups are others. Raises HistoryError."""
        known = {topic for topic, _ in history.positions()} - {*self._topics, JOURNAL_TOPIC}
        if known:
            raise HistoryError(
                f"{history.path} is the history of the groups in {', '.join(sorted(known))}, and not of "
                f"those in {self._polls.offsets_topic}: name another file"
            )
        if not self._polls.of_nodes and self._polls.partitions(NODES_TOPIC):
            self._on_notice(
                f"groups of Ringleader's nodes ({NODES_TOPIC}) are not watched here: give the address of a "
                "node, and a user that may describe the settings of the cluster"
            )

    async def _begin(self) -> None:
        """Go on where the history is, or begin."""
        known = self._recording.history.positions()
        self._resumed = bool(known)
        await self._add_partitions(known, EARLIEST if self._from_start else LATEST)
        self._written = {tp: one.next_offset for tp, one in self._tail.positions.items() if tp in known}
        self._target = await self._ends()
        self._backlog = self._tail.left(self._target)

    async def _close(self) -> None:
        await self._tail.close()
        if self._recorder is not None:
            self._recorder.history.close()

    # ---- what it tells ----

    @property
    def path(self) -> Path:
        """The history's file."""
        return self._recording.history.path

    @property
    def history(self) -> History:
        """The history that is written, for reading only."""
        return self._recording.history

    @property
    def cluster_id(self) -> str:
        """The cluster's id; "" for one that does not say."""
        return self._polls.cluster_id or ""

    @property
    def exact(self) -> bool:
        """Whether the cluster is Ringleader's, whose journal tells the causes."""
        return JOURNAL_TOPIC in self._topics

    @property
    def progress(self) -> Progress:
        """Of the backlog."""
        return Progress(max(0, self._backlog - self._tail.left(self._target)), self._backlog)

    async def caught_up(self, timeout_s: float) -> None:
        """Wait until all that is there now is in the history. Raises RetriableError when time is over, and
        what ended the watcher."""
        ends = None
        try:
            async with asyncio.timeout(seconds(timeout_s)):
                ends = await self._ends()
                async with self._flushed:
                    while not all(self._written.get(tp, -1) >= end for tp, end in ends.items()):
                        self._check()
                        self._at_once = self._tail.is_past(ends)
                        await self._flushed.wait()
        except TimeoutError:
            left = "" if ends is None else f": {self._tail.left(ends)} records are left"
            raise RetriableError(f"the history is not up to date within {timeout_s:g} s{left}") from None

    def note(self, events: Iterable[Event]) -> None:
        """Put what another observer saw into the history; `outputs` has it, too."""
        self._recording.add(events)

    async def outputs(self, after: int | None = None) -> AsyncIterator[Rebalance | Event | GroupState]:
        """Entries of the history as they come; of several states of a group the last. `after`: a cursor
        of `History.changes`; default: from now on. Raises what ended the watcher."""
        history = self._recording.history
        cursor = history.cursor if after is None else after
        while True:
            async with self._flushed:
                self._check()
                later, found = history.changes(cursor)
                if not found:
                    await self._flushed.wait()
            cursor = later
            for one in found:
                yield one

    # ---- reading ----

    async def _read(self) -> None:
        flushed_s = time.monotonic()
        away: Away | None = None
        while True:
            if self._away != away:
                away = self._away
                await as_a_whole(self._recording.history.tell_away, away)
            try:
                await self._tail.read(FLUSH_S / 2)
            except RetriableError:
                await asyncio.sleep(FLUSH_S)  # the reader looks for the leaders meanwhile
            if not self._ahead.is_set() and self._tail.is_past(self._target):
                self._ahead.set()
                self._say_holes()
            if time.monotonic() - flushed_s >= FLUSH_S or self._at_once:
                at_once, self._at_once = self._at_once, False
                complete_ms = wall_ms() if self._ahead.is_set() else None
                positions = self._tail.positions
                if await self._recording.flush(positions, now_ms=complete_ms, at_once=at_once):
                    self._written = {tp: position.next_offset for tp, position in positions.items()}
                flushed_s = time.monotonic()
                async with self._flushed:
                    self._flushed.notify_all()

    def _read_records(
        self,
        topic: str,
        partition: int,
        offsets: Sequence[int],
        times: Sequence[int],
        keys: Data,
        values: Data,
    ) -> None:
        if topic == self._polls.offsets_topic:
            self._recording.read(partition, offsets, times, keys, values)
            return
        for offset, at_ms, key, value in zip(offsets, times, keys, values, strict=True):
            try:
                entry = journal.decode(partition, offset, at_ms, key, value)
            except MalformedError as error:
                text = f"offset {offset} of {topic} cannot be read ({error}): the history leaves it out"
                self._recording.add([Event(f"odd-{topic}-{offset}", "", at_ms, EventKind.HISTORY_GAP, text)])
            else:
                if entry is not None:
                    self._recording.tell(entry)

    def _tell(self, fact: Fact) -> None:
        if self._recorder is None:
            self._seen.append(fact)
        else:
            self._recorder.inference.tell(fact)

    def _gap(self, gap: Gap) -> None:
        lost = f"{max(0, gap.found - gap.wanted)} records" if gap.found > gap.wanted else "records"
        text = (
            f"{lost} of {gap.topic}-{gap.partition} from offset {gap.wanted} on are gone: {gap.why}; "
            f"the history goes on at {gap.found}"
        )
        self._say(f"gap-{gap.topic}-{gap.partition}-{gap.wanted}", text)

    def _say_holes(self) -> None:
        """Of what was read after a time without a watcher, compaction may have taken something."""
        if self._resumed and self._tail.holes:
            text = (
                f"{self._tail.holes} records were compacted away while nobody watched: of groups that "
                "rebalanced more than once in that time, earlier rebalances are not known"
            )
            first = min(self._target.items(), default=(("", 0), 0))
            self._say(f"holes-{first[0][1]}-{first[1]}-{self._tail.holes}", text)

    def _say(self, event_id: str, text: str) -> None:
        self._recording.add([Event(event_id, "", wall_ms(), EventKind.HISTORY_GAP, text)])

    async def _add_partitions(self, known: Mapping[TopicPartition, Position], begin: int) -> None:
        """Read what is there and not read yet: from where it is known, else from `begin`."""
        reading = self._tail.positions
        there = [
            (topic, partition)
            for topic in self._topics
            for partition in range(self._polls.partitions(topic))
            if (topic, partition) not in reading
        ]
        new = {tp: begin for tp in there if tp not in known}
        found = await self._tail.offsets(new) if new else {}
        at = {tp: known[tp] if tp in known else Position(found[tp], found[tp]) for tp in there}
        if at:
            self._tail.add(at)

    async def _ends(self) -> dict[TopicPartition, int]:
        reading = self._tail.positions
        return await self._tail.offsets(dict.fromkeys(reading, LATEST)) if reading else {}

    # ---- asking ----

    async def _look_at_topics(self) -> None:
        await self._polls.topics()
        # A partition that was not there before is read from its start.
        await self._add_partitions({}, EARLIEST)

    async def _look_at_groups(self) -> None:
        await self._ahead.wait()
        moving = self._recording.inference.moving()
        await self._polls.moving(moving)
        # A topic that comes or goes makes groups move.
        if self._polls.all_away or bool(moving) != self._moving:
            self._moving = bool(moving)
            await self._look_at_topics()

    async def _look_at_lags(self) -> None:
        await self._ahead.wait()
        inference = self._recording.inference
        self._recording.add(await self._polls.lags(inference.committed()))
        self._recording.add(await self._polls.share_lags(inference.share_groups()))

    async def _hear(self, reports: Reports) -> None:
        await self._ahead.wait()
        while True:
            if reports.wants_hosts:
                reports.know(self._polls.hosts)
            for report in await reports.read():
                self._tell(report)
            await asyncio.sleep(REPORTS_EVERY_S)

    async def _every(self, every_s: float, look: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Look at that interval; a cluster that is away is reported, and waited for."""
        loop = asyncio.get_running_loop()
        while True:
            next_s = loop.time() + every_s
            try:
                await look()
            except AuthenticationError:
                raise
            except ClientError as error:
                next_s = min(next_s, loop.time() + AGAIN_S)
                self._polls.lost()
                if self._away is None:
                    self._away = Away(wall_ms(), str(error))
                    self._on_notice(f"the cluster does not answer ({error}); waiting for it")
            else:
                if self._away is not None and not self._polls.all_away:
                    away_s = (wall_ms() - self._away.since_ms) / 1000
                    self._away = None
                    self._on_notice(f"the cluster answers again, after {away_s:.0f} s")
            await asyncio.sleep(max(0.0, next_s - loop.time()))

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """An error of the work ends the watcher."""
        try:
            await work
        except Exception as error:
            async with self._flushed:
                self._failure = self._failure or error
                self._flushed.notify_all()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    @property
    def _recording(self) -> Recorder:
        assert self._recorder is not None, "the watcher was not started"
        return self._recorder

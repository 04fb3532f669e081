"""`GroupConsumer`: reads Kafka topics as a member of a group, with cooperative rebalancing, for asyncio.

The membership is a `GroupMember` with a thread of its own; records are fetched ahead in the application's
loop. What is in the application's hands counts as processed when it asks for more.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.errors import AuthenticationError, ClientError, MembershipError
from ringleader.clients.fetch.errors import ConsumerClosedError
from ringleader.clients.fetch.feed import EARLIEST, LATEST
from ringleader.clients.fetch.model import Batch, ConsumerMetrics, ConsumerSettings
from ringleader.clients.fetch.progress import Made, Progress
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.clients.model import (
    Assigned,
    Lost,
    OffsetAndMetadata,
    Offsets,
    Revoked,
    TopicPartition,
    checked,
)

logger = logging.getLogger("ringleader.clients.consumer")

TURN_S = 0.001
"""An application that never waits lets the loop do its other work so often."""
POLLED_EVERY_S = 0.1
LOOKUP_TIMEOUT_S = 30.0
COMMIT_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0

OnPartitions = Callable[[list[TopicPartition]], Any]


class GroupConsumer:
    """A consumer of topics in a group: `async with GroupConsumer(...) as consumer`, then
    `async for batch in consumer`.

    One task asks for records at a time; the other methods may be called from any task of the same loop.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        group_id: str,
        topics: Iterable[str] | str | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        assignors: Sequence[str] = ("cooperative-sticky",),
        on_assigned: OnPartitions | None = None,
        on_revoked: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
        group_instance_id: str | None = None,
        client_id: str = "ringleader-consumer",
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        rebalance_timeout_ms: int | None = None,
        settings: ConsumerSettings | None = None,
        **options: Any,
    ) -> None:
        """Does not connect yet. Raises ValueError for what cannot work.

        `topics` or `pattern` (a whole topic name has to match). `options`: the fields of `ConsumerSettings`,
        then those of `GroupMember`. `on_assigned`, `on_revoked` and `on_lost` get the partitions that come
        and go, and may be coroutine functions; see docs/consumer.md for what holds in them. The rebalance
        timeout is `max_poll_interval_ms` if it is not given.
        """
        own = {name: options.pop(name) for name in list(options) if name in ConsumerSettings.__slots__}
        self.settings = ConsumerSettings(**own) if settings is None else settings
        if settings is not None and own:
            raise ValueError(f"either settings or {', '.join(own)}")
        self._on_assigned, self._on_revoked, self._on_lost = on_assigned, on_revoked, on_lost
        self._bootstrap = bootstrap
        self._client_id, self._tls, self._sasl = client_id, tls, sasl
        self.group_id = group_id
        self.member = consumer_member(
            bootstrap,
            group_id,
            topics,
            pattern=pattern,
            assignors=assignors,
            rack=self.settings.client_rack,
            auto_offset_reset=self.settings.auto_offset_reset,
            metadata_max_age_ms=self.settings.metadata_max_age_ms,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
            on_failed=self._failed,
            group_instance_id=group_instance_id,
            client_id=client_id,
            tls=tls,
            sasl=sasl,
            request_timeout_ms=self.settings.request_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms or self.settings.max_poll_interval_ms,
            max_poll_interval_ms=self.settings.max_poll_interval_ms,
            auto_commit_interval_ms=(
                self.settings.auto_commit_interval_ms if self.settings.auto_commit else None
            ),
            **options,
        )
        self._reader: Reader | None = None
        self._progress: Progress | None = None
        self._stopping = False
        self._asker: asyncio.Task[Any] | None = None
        self._asking = False
        self._in_callback: asyncio.Task[Any] | None = None
        self._last_turn_s = self._last_polled_s = 0.0

    # ---- its life ----

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Begin to join the group; does not wait for partitions."""
        if self._reader is not None:
            raise MembershipError(f"group {self.group_id!r}: this consumer was started before")
        cluster = Cluster(
            self._bootstrap,
            client_id=self._client_id,
            request_timeout_ms=self.settings.request_timeout_ms,
            tls=self._tls,
            sasl=self._sasl,
        )
        reader = self._reader = Reader(cluster, self.settings, self.member.committed)
        self._progress = Progress(self.member, reader.feeds, reader.hands, self.settings.auto_commit)
        reader.start()
        await self.member.start()

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Commit what is processed (with `auto_commit`), leave the group, close the connections.

        A batch in hand does not count as processed: `commit` before, if it is. May be called more than once.
        """
        reader, again = self._reader, self._stopping
        if reader is None:
            return
        self._stopping = True
        reader.hands.put_down()
        reader.something.set()
        try:
            await self.member.stop(timeout_s=timeout_s)
        finally:
            if not again:
                await reader.close()

    async def wait_assigned(self, timeout_s: float | None = None) -> list[TopicPartition]:
        """Wait until the group has settled; the partitions. Raises TimeoutError, and what ended the
        membership."""
        await self.member.wait_assigned(timeout_s)
        return self.assignment()

    # ---- records ----

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        """The next batch of one partition, up to `max_poll_records`; partitions take turns. The batch before
        counts as processed. Ends when the consumer is stopped; raises what `getmany` raises."""
        batch = await self._ask(self.settings.max_poll_records, None)
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def getone(self, timeout_s: float | None = None) -> Batch | None:
        """A batch of one record (`batch.record`); None when time is over. What was handed out before counts
        as processed. Raises what `getmany` raises."""
        batch = await self._ask(1, timeout_s)
        if batch is None and self._stopping:
            raise self._closed()
        return batch

    async def getmany(self, max_records: int | None = None, timeout_s: float | None = None) -> list[Batch]:
        """Batches of several partitions with up to `max_records` (`max_poll_records`) together, as soon as
        there are any; [] when time is over (None: waits as long as it takes; 0: what is there). What was
        handed out before counts as processed.

        Raises PartitionError (CorruptRecordError, OffsetGoneError, NoOffsetError, ...) about one partition,
        MembershipError when the membership is over, ConsumerClosedError.
        """
        left = self.settings.max_poll_records if max_records is None else max_records
        first = await self._ask(left, timeout_s)
        if first is None:
            if self._stopping:
                raise self._closed()
            return []
        batches, left = [first], left - len(first)
        while left > 0 and (more := self._running().pick_now(left)) is not None:
            batches.append(more)
            left -= len(more)
        return batches

    async def _ask(self, limit: int, timeout_s: float | None) -> Batch | None:
        if limit <= 0:
            raise ValueError("the number of records has to be above 0")
        if self._in_callback is not None and asyncio.current_task() is self._in_callback:
            raise RuntimeError("a callback cannot ask for records: what is in hand would count as processed")
        if self._asking:
            raise RuntimeError("another task is asking this consumer for records")
        reader = self._running()
        self._asking, self._asker = True, asyncio.current_task()
        try:
            self._made_so_far().settle()
            return await self._wait_for_records(reader, limit, timeout_s)
        finally:
            self._asking = False

    async def _wait_for_records(self, reader: Reader, limit: int, timeout_s: float | None) -> Batch | None:
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        deadline_s = None if timeout_s is None else now_s + timeout_s
        if now_s - self._last_turn_s > TURN_S:
            await asyncio.sleep(0)
        keep_s = self.settings.max_poll_interval_ms / 3000
        while True:
            self._last_turn_s = loop.time()
            self._polled(self._last_turn_s)
            reader.something.clear()
            if self._stopping:
                return None
            self._check(reader)
            batch = await reader.pick(limit)
            if batch is not None:
                return batch
            left_s = None if deadline_s is None else deadline_s - loop.time()
            if left_s is not None and left_s <= 0:
                return None
            try:
                async with asyncio.timeout(keep_s if left_s is None else min(left_s, keep_s)):
                    await reader.something.wait()
            except TimeoutError:
                pass

    def _polled(self, now_s: float) -> None:
        if now_s - self._last_polled_s >= POLLED_EVERY_S:
            self._last_polled_s = now_s
            self.member.polled()

    def _check(self, reader: Reader) -> None:
        if self.member.error is not None:
            raise self.member.error
        if isinstance(reader.broken, AuthenticationError):
            raise reader.broken
        if reader.broken is not None:
            raise ConsumerClosedError(f"group {self.group_id!r}: the consumer broke") from reader.broken

    def _running(self) -> Reader:
        if self._reader is None:
            raise self._closed()
        return self._reader

    def _made_so_far(self) -> Progress:
        if self._progress is None:
            raise self._closed()
        return self._progress

    def _closed(self) -> ConsumerClosedError:
        why = "was not started" if self._reader is None else "has been stopped"
        return ConsumerClosedError(f"group {self.group_id!r}: this consumer {why}")

    # ---- positions ----

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer reads now, sorted."""
        return [] if self._reader is None else sorted(self._reader.feeds)

    async def position(self, place: TopicPartition) -> int:
        """Offset of the next record to be handed out. Waits until it is known; raises NotAssignedError,
        PartitionError."""
        while True:
            feed = self._running().feed(place)
            if feed.position is not None:
                return feed.position
            if feed.error is not None:
                raise feed.error
            await asyncio.sleep(0.01)

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Read on at that offset. What was fetched or is on its way for the position before is never handed
        out. A batch of it that is in hand is not counted as processed any more. Raises NotAssignedError."""
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        self._running().seek(place, offset)

    def seek_to_beginning(self, *places: TopicPartition) -> None:
        """Read on at the first record there is; all partitions when none is named."""
        for place in places or self.assignment():
            self._running().seek_by_time(place, EARLIEST)

    def seek_to_end(self, *places: TopicPartition) -> None:
        """Read on behind the last record there is; all partitions when none is named."""
        for place in places or self.assignment():
            self._running().seek_by_time(place, LATEST)

    def pause(self, *places: TopicPartition) -> None:
        """Hand out nothing of these until `resume`. What has been fetched is kept."""
        for place in places:
            self._running().pause(place)

    def resume(self, *places: TopicPartition) -> None:
        """Go on with these."""
        for place in places:
            self._running().resume(place)

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused, sorted."""
        feeds = {} if self._reader is None else self._reader.feeds
        return sorted(place for place, feed in feeds.items() if feed.paused)

    async def lag(self, *, timeout_s: float = LOOKUP_TIMEOUT_S) -> dict[TopicPartition, int]:
        """Offsets between the position and the end of the log as of now, of each partition whose position is
        known. Raises BrokerError, RetriableError."""
        feeds = self._running().feeds
        positions = {place: feed.position for place, feed in feeds.items() if feed.position is not None}
        ends = await self.end_offsets(positions, timeout_s=timeout_s)
        return {place: max(0, ends[place] - position) for place, position in positions.items()}

    async def beginning_offsets(
        self, places: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """First offsets of any partitions. Raises BrokerError, RetriableError."""
        return await self._bounds(places, EARLIEST, timeout_s)

    async def end_offsets(
        self, places: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """Offsets of the next records of any partitions; with `read_committed` those of the first open
        transaction. Raises BrokerError, RetriableError."""
        return await self._bounds(places, LATEST, timeout_s)

    async def _bounds(
        self, places: Iterable[TopicPartition], time: int, timeout_s: float
    ) -> dict[TopicPartition, int]:
        found = await self._running().offsets(dict.fromkeys(places, time), timeout_s)
        return {place: offset for place, (offset, _) in found.items()}

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, tuple[int, int] | None]:
        """(offset, timestamp) of the first record at or after a time, in ms since 1970; None: there is none.
        Raises BrokerError, RetriableError."""
        found = await self._running().offsets(times, timeout_s)
        return {place: None if at[0] < 0 else at for place, at in found.items()}

    # ---- commits ----

    async def commit(self, offsets: Offsets | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """Commit these offsets, or all progress.

        Without `offsets` and from the task that asks for records: what it has in hand is processed now, and
        committed. From another task, or in a callback: what it has come back from. Raises as
        `GroupMember.commit`, and ConsumerClosedError after `stop`; a commit that a rebalance crosses is
        repeated if the partitions stayed.
        """
        progress = self._made_so_far()
        wanted = self._made(progress) if offsets is None else checked(offsets)
        if wanted:
            await progress.commit(wanted, timeout_s)
        elif self._stopping and asyncio.current_task() is not self._in_callback:
            raise self._closed()

    def commit_nowait(
        self,
        offsets: Offsets | None = None,
        *,
        on_done: Callable[[ClientError | None], None] | None = None,
    ) -> None:
        """As `commit`, but does not wait and does not repeat. `on_done` gets the error or None; without it a
        failure is a line in the log."""
        progress = self._made_so_far()
        wanted = self._made(progress) if offsets is None else checked(offsets)
        if wanted:
            progress.commit_nowait(wanted, on_done)

    async def committed(
        self, places: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets: of these partitions, or of all; those without one are left out."""
        return await self.member.committed(places, timeout_s=timeout_s)

    def _made(self, progress: Progress) -> Made:
        # Whoever asked for records has processed them when it commits. Others cannot know: a callback, a task
        # that commits now and then. (`asyncio.wait_for` asks in a task that has ended by now.)
        task, asker = asyncio.current_task(), self._asker
        if (
            not self._asking
            and task is not self._in_callback
            and (task is asker or asker is None or asker.done())
        ):
            progress.settle()
        return progress.made()

    def metrics(self) -> ConsumerMetrics:
        """Counters as of now."""
        reader = self._running()
        fetcher = reader.fetcher
        lags = {place: feed.lag for place, feed in reader.feeds.items()}
        return ConsumerMetrics(
            records=reader.records,
            batches=reader.batches,
            fetches=fetcher.fetches,
            failed_fetches=fetcher.failed_fetches,
            fetched_bytes=fetcher.fetched_bytes,
            buffered_bytes=fetcher.buffered_bytes,
            lags={place: lag for place, lag in lags.items() if lag is not None},
            member=self.member.metrics(),
        )

    # ---- rebalances: in the application's loop, one after the other ----

    async def _assigned(self, assigned: Assigned) -> None:
        reader = self._running()
        places = set(partitions_of(assigned))
        reader.drop([place for place in reader.feeds if place not in places])
        added = sorted(places - set(reader.feeds))
        self._made_so_far().given(assigned.generation)
        reader.add(added)
        try:
            await self._call(self._on_assigned, added)
        finally:
            reader.release(added)

    async def _revoked(self, revoked: Revoked) -> None:
        """What is in hand is waited for; the member sets the bound, and tells the loss when it is over."""
        reader = self._running()
        places = [place for place in _places(revoked) if place in reader.feeds]
        reader.hold(places)
        await reader.hands.without(places)
        if places:
            await self._call(self._on_revoked, places)
        self._gone(places, revoked)

    async def _lost(self, lost: Lost) -> None:
        places = [place for place in _places(lost) if place in self._running().feeds]
        self._gone(places, lost)
        if places:
            await self._call(self._on_lost, places)

    def _gone(self, places: list[TopicPartition], change: Revoked | Lost) -> None:
        reader = self._running()
        reader.drop(places)
        self._made_so_far().gone(places, change.generation if change.partial else None)

    def _failed(self, _error: MembershipError) -> None:
        self._running().something.set()

    async def _call(self, callback: OnPartitions | None, places: list[TopicPartition]) -> None:
        if callback is None:
            return
        self._in_callback = asyncio.current_task()
        try:
            result = callback(places)
            if inspect.isawaitable(result):
                await result
        finally:
            self._in_callback = None


def _places(change: Revoked | Lost) -> list[TopicPartition]:
    return partitions_of(Assigned(change.generation, change.member_id, "", "", change.assignment))

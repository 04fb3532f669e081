"""Reads assigned partitions: what is fetched becomes batches, one partition after the other.

Knows nothing of groups: partitions are added and dropped by whoever owns the reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import AuthenticationError, BrokerError, RetriableError
from ringleader.clients.fetch.buffer import Part, heavy
from ringleader.clients.fetch.errors import NotAssignedError, PartitionError
from ringleader.clients.fetch.feed import Feed
from ringleader.clients.fetch.fetcher import Fetcher
from ringleader.clients.fetch.leaders import MOVED, Leaders
from ringleader.clients.fetch.model import Batch, ConsumerSettings
from ringleader.clients.fetch.positions import Committed, Placer
from ringleader.clients.model import TopicPartition
from ringleader.protocol.columns import BatchRows
from ringleader.protocol.errors import KafkaError, MalformedError, error_name

logger = logging.getLogger("ringleader.clients.consumer")


class Reader:
    """Belongs to the event loop it is made in. `start` it, `close` it."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings, committed: Committed) -> None:
        self._cluster = cluster
        self._settings = settings
        self.in_hand: dict[TopicPartition, Feed] = {}
        """What the application was given records of and has not come back from."""
        self._put_down = asyncio.Event()
        self._left_alone = False
        self.something = asyncio.Event()
        """Set when there may be something to hand out, or to tell."""
        self.broken: BaseException | None = None
        self.records = self.batches = 0
        self._leaders = Leaders(cluster, self._changed, self._refused, settings.metadata_max_age_ms)
        self.fetcher = Fetcher(
            cluster, self._leaders, settings.fetching(), self._on_ready, self._on_out_of_range
        )
        self.feeds = self.fetcher.feeds
        self._placer = Placer(
            self.feeds,
            self._leaders,
            committed,
            settings.auto_offset_reset,
            settings.committed_only,
            self._placed,
        )
        self._moved = asyncio.Event()
        self._ready: dict[TopicPartition, Feed] = {}
        """Partitions with something to hand out, in the order of their turns."""
        self._open: Feed | None = None
        """The one with an inflated batch of which there is more."""
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin."""
        works = [self._leaders.run(), self.fetcher.run(), *self._placer.runs()]
        self._tasks = [asyncio.create_task(self._guard(work), name="consumer") for work in works]

    async def close(self) -> None:
        """End, with all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._cluster.close()

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            trace = None if isinstance(error, AuthenticationError) else error
            logger.error("the consumer cannot go on: %s", error, exc_info=trace)
            self.broken = error
            self.something.set()
            self._tell_moved()

    # ---- partitions come and go ----

    def add(self, places: Iterable[TopicPartition]) -> None:
        """Partitions from now on; nothing is fetched before `release`."""
        for place in places:
            self.feeds[place] = Feed(place)
        self._leaders.watch({topic for topic, _ in self.feeds})
        self._placer.kick()

    def release(self, places: Iterable[TopicPartition]) -> None:
        """Fetch and hand out."""
        for place in places:
            if (feed := self.feeds.get(place)) is not None:
                feed.held = False
                self._placed(feed)
        self._placer.kick()

    def hold(self, places: Iterable[TopicPartition]) -> None:
        """Neither fetch nor hand out any more."""
        for place in places:
            if (feed := self.feeds.get(place)) is not None:
                feed.held = True
                self._ready.pop(place, None)

    def drop(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, Feed]:
        """These are not read any more; what was fetched is forgotten. What they were."""
        dropped = {}
        for place in places:
            self._ready.pop(place, None)
            if (feed := self.feeds.pop(place, None)) is not None:
                dropped[place] = feed
        self._leaders.watch({topic for topic, _ in self.feeds})
        self.fetcher.kick()
        self._tell_moved()
        return dropped

    def feed(self, place: TopicPartition) -> Feed:
        """Raises NotAssignedError."""
        feed = self.feeds.get(place)
        if feed is None:
            raise NotAssignedError(f"{place[0]}-{place[1]} is not assigned to this consumer now")
        return feed

    # ---- what the application has in hand ----

    def processed(self) -> None:
        """The application has come back: what it had in hand is processed."""
        if self.in_hand:
            for feed in self.in_hand.values():
                feed.processed()
            self._empty_hands()

    def leave_alone(self) -> None:
        """The application is leaving: nothing in its hands counts as processed, and nothing is waited for."""
        self._left_alone = True
        self._empty_hands()
        self.something.set()
        self._tell_moved()

    def _empty_hands(self) -> None:
        self.in_hand.clear()
        put_down, self._put_down = self._put_down, asyncio.Event()
        put_down.set()

    async def until_processed(self, places: Iterable[TopicPartition]) -> None:
        """Wait until nothing of these is in hand."""
        wanted = set(places)
        while not self._left_alone and not wanted.isdisjoint(self.in_hand):
            await self._put_down.wait()

    # ---- where to read ----

    def position_of(self, place: TopicPartition) -> int | None:
        """Offset of the next record to be handed out; None: not known yet. Raises NotAssignedError,
        PartitionError."""
        feed = self.feed(place)
        if feed.position is None and feed.error is not None:
            raise feed.error
        return feed.position

    async def moved(self) -> None:
        """Wait until a position may have become known."""
        await self._moved.wait()

    def _tell_moved(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Go on there; what was fetched is dropped, and an answer under way is not taken."""
        self.feed(place).place_at(offset)
        self._ready.pop(place, None)
        self._placed(self.feeds[place])

    def seek_by_time(self, place: TopicPartition, time: int) -> None:
        """Go on at the beginning or the end of the log (EARLIEST, LATEST), as of when it is looked up."""
        self.feed(place).unplace(time)
        self._ready.pop(place, None)
        self._placer.kick()

    def pause(self, place: TopicPartition) -> None:
        """Hand nothing out; what was fetched is kept."""
        self.feed(place).paused = True
        self._ready.pop(place, None)

    def resume(self, place: TopicPartition) -> None:
        """The end of `pause`."""
        self.feed(place).paused = False
        self._placed(self.feeds[place])

    async def offsets(
        self, times: Mapping[TopicPartition, int], timeout_s: float
    ) -> dict[TopicPartition, tuple[int, int]]:
        """(offset, timestamp in ms) of the first record at or after each time; (-1, -1) for none.

        Raises BrokerError, and RetriableError when time is over.
        """
        self._leaders.also({topic for topic, _ in times})
        found: dict[TopicPartition, tuple[int, int]] = {}
        left = dict(times)
        why = "no leader"
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    answers, errors = await self._leaders.list_offsets(left, self._settings.committed_only)
                    found |= {place: answer[:2] for place, answer in answers.items()}
                    left = {place: time for place, time in left.items() if place not in found}
                    if not left:
                        return found
                    for (topic, partition), code in errors.items():
                        why = error_name(code)
                        if code not in MOVED and not KafkaError(code).retriable:
                            raise BrokerError(f"cannot tell offsets of {topic}-{partition}: {why}", code)
                    await self._leaders.looked()
        except TimeoutError:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in left)
            raise RetriableError(f"offsets of {names} not known within {timeout_s:g} s: {why}") from None

    # ---- what the parts tell ----

    def _changed(self, place: TopicPartition, epoch_changed: bool, another_topic: bool) -> None:
        feed = self.feeds.get(place)
        if feed is None:
            return
        if another_topic and feed.position is not None:
            self._ready.pop(place, None)
            self._placer.made_anew(feed)
        elif epoch_changed and feed.position is not None and feed.fetch_epoch >= 0:
            feed.validate = True
        if feed.position is None or feed.validate:
            self._placer.kick()
        self.fetcher.want(feed)
        self.fetcher.kick()

    def _refused(self, topic: str, code: int) -> None:
        for feed in self.feeds.values():
            if feed.topic == topic and feed.error is None:
                why = f"the cluster does not show this topic: {error_name(code)}"
                feed.fail(PartitionError(*feed.place, feed.position, why, code))
                self._on_ready(feed)

    def _placed(self, feed: Feed) -> None:
        self._tell_moved()
        if feed.position is None or feed.validate:
            self._placer.kick()
        self.fetcher.want(feed)
        if feed.ready:
            self._on_ready(feed)

    def _on_ready(self, feed: Feed) -> None:
        if feed.ready and self.feeds.get(feed.place) is feed:
            self._ready.setdefault(feed.place, feed)
            self.something.set()

    def _on_out_of_range(self, feed: Feed) -> None:
        self._placer.out_of_range(feed)
        self.fetcher.want(feed)

    # ---- handing out ----

    async def pick(self, limit: int) -> Batch | None:
        """The next partition's batch, now in the application's hands; None when there is nothing. Raises
        PartitionError. Nothing is awaited after records were taken: a cancelled call loses none."""
        while self._ready:
            feed = self._turn()
            rows = feed.advance(self._settings.check_crcs)
            if rows is not None and heavy(rows):
                await self._open_aside(feed, rows)
                continue
            batch = self._take(feed, limit)
            if batch is not None:
                return batch
            if feed.error is not None and not feed.held and not feed.paused:
                raise feed.error
        return None

    def pick_now(self, limit: int) -> Batch | None:
        """As `pick`, of what takes no thread to open; errors wait for their next turn."""
        while (
            feed := next((feed for feed in self._ready.values() if self._at_once(feed)), None)
        ) is not None:
            batch = self._take(feed, limit)
            if batch is not None:
                return batch
        return None

    def _at_once(self, feed: Feed) -> bool:
        rows = feed.advance(self._settings.check_crcs)
        return rows is not None and not heavy(rows)

    def _turn(self) -> Feed:
        """The partition with an inflated batch keeps its turn until all of it is handed out: there are no two
        in memory."""
        feed, now = self._open, next(iter(self._ready.values()))
        if feed is None or feed is now:
            return now
        if self._ready.get(feed.place) is feed and feed.buffer.inflated_bytes:
            return feed
        feed.buffer.close()  # it was paused, or is not ours any more
        self._open = None
        return now

    def _take(self, feed: Feed, limit: int) -> Batch | None:
        """Records out of the buffer, from one or more of its batches; then it is another partition's turn."""
        parts: list[Part] = []
        left = limit
        while left and (rows := feed.advance(self._settings.check_crcs)) is not None and not heavy(rows):
            try:
                part = feed.take(rows, left)
            except MalformedError as error:
                feed.unreadable(rows, error)
                break
            if part is not None:
                parts.append(part)
                left -= part.length
        self._open = feed if feed.buffer.inflated_bytes else None
        self._ready.pop(feed.place, None)
        self._on_ready(feed)
        self.fetcher.taken(feed)
        if not parts:
            return None
        self.in_hand[feed.place] = feed
        self.batches += 1
        self.records += limit - left
        return Batch(
            *feed.place,
            parts,
            feed.position or 0,
            feed.high_watermark,
            feed.lag or 0,
            self._settings.key_deserializer,
            self._settings.value_deserializer,
        )

    async def _open_aside(self, feed: Feed, rows: BatchRows) -> None:
        """Inflate in a thread, so that the loop goes on; of no use if the feed has moved on meanwhile."""
        try:
            await asyncio.to_thread(rows.open)
        except MalformedError as error:
            if feed.buffer.rows is rows:
                feed.unreadable(rows, error)
            return
        if feed.buffer.rows is rows:
            self._open = feed

"""Where a partition is read from: the committed offset, the beginning or end of the log, and whether the log
still holds what was read."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Literal

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.errors import ClientError, MembershipError
from ringleader.clients.fetch.errors import (
    LogTruncatedError,
    NoOffsetError,
    OffsetGoneError,
    PartitionError,
)
from ringleader.clients.fetch.feed import COMMITTED, Feed
from ringleader.clients.fetch.leaders import MOVED, Leaders
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.clients.offsets.list_offsets import EARLIEST, LATEST
from ringleader.protocol.errors import KafkaError, error_name

logger = logging.getLogger("ringleader.clients.consumer")

Reset = Literal["earliest", "latest", "none"]
WISHES: Mapping[str, int] = {"earliest": EARLIEST, "latest": LATEST}
Committed = Callable[[Iterable[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata]]]

_Seats = Mapping[TopicPartition, tuple[Feed, int]]
"""Partitions that something is asked for, and the position of each that it is asked for."""


class Placer:
    """Gives feeds their positions. `runs` do the work, each its kind of it: a slow coordinator does not keep
    other partitions from finding their place in the log. `kick` says that there is some.

    `on_placed(feed)`: it may be fetched, or has an error to tell.
    """

    def __init__(
        self,
        feeds: Mapping[TopicPartition, Feed],
        leaders: Leaders,
        committed: Committed,
        reset: Reset,
        committed_only: bool,
        on_placed: Callable[[Feed], None],
    ) -> None:
        self._feeds = feeds
        self._leaders = leaders
        self._committed = committed
        self._reset = reset
        self._committed_only = committed_only
        self._on_placed = on_placed
        self._wakes: list[asyncio.Event] = []

    def kick(self) -> None:
        """Somebody has no position, or must validate it."""
        for wake in self._wakes:
            wake.set()

    def out_of_range(self, feed: Feed) -> None:
        """The leader says that the log does not hold what was asked for."""
        asked, position = feed.fetch_offset, feed.position
        if position is not None and asked != position:
            # What is buffered was there a moment ago: it is handed out first.
            feed.not_before_s = asyncio.get_running_loop().time() + 0.1
            if not feed.ready:
                feed.refetch()
            return
        self._start_over(feed, "the log does not hold this offset")

    def made_anew(self, feed: Feed) -> None:
        """The topic was deleted and created again: the position means nothing any more."""
        self._start_over(feed, "the topic was created anew")

    def _start_over(self, feed: Feed, why: str) -> None:
        at = feed.position
        if self._reset == "none":
            feed.unplace(COMMITTED)
            feed.fail(OffsetGoneError(*feed.place, at, f"{why}, and auto_offset_reset is 'none'"))
            self._on_placed(feed)
            return
        name = f"{feed.topic}-{feed.partition}"
        logger.warning("%s at offset %s: %s; going on at the %s", name, at, why, self._reset)
        feed.unplace(WISHES[self._reset])
        self.kick()

    def runs(self) -> list[Coroutine[Any, Any, None]]:
        """Until cancelled."""
        return [
            self._run(self._place_committed, lambda feed: feed.position is None and feed.wish == COMMITTED),
            self._run(self._place_by_time, lambda feed: feed.position is None and feed.wish != COMMITTED),
            self._run(self._validate, lambda feed: feed.position is not None and feed.validate),
        ]

    async def _run(
        self,
        work: Callable[[_Seats], Coroutine[Any, Any, None]],
        wanted: Callable[[Feed], bool],
    ) -> None:
        backoff = Backoff(100, 1_000, random.random)
        wake = asyncio.Event()
        self._wakes.append(wake)
        while True:
            wake.clear()
            if seats := self._seats(wanted):
                await work(seats)
            if self._seats(wanted):
                await asyncio.sleep(backoff.next_ms() / 1000)
            else:
                backoff.reset()
                await wake.wait()

    @staticmethod
    def _open(feed: Feed) -> bool:
        """Whether there is something to do for it."""
        return feed.error is None and (feed.position is None or feed.validate)

    def _seats(self, wanted: Callable[[Feed], bool]) -> _Seats:
        return {
            place: (feed, feed.seat)
            for place, feed in self._feeds.items()
            if self._open(feed) and wanted(feed)
        }

    def _still(self, feed: Feed, seat: int) -> bool:
        return feed.seat == seat and self._feeds.get(feed.place) is feed

    async def _place_committed(self, seats: _Seats) -> None:
        try:
            offsets = await self._committed(list(seats))
        except MembershipError:
            return  # the application hears of it otherwise
        except ClientError as error:
            logger.warning("committed offsets cannot be fetched, trying again: %s", error)
            return
        for place, (feed, seat) in seats.items():
            if not self._still(feed, seat):
                continue
            if (found := offsets.get(place)) is not None:
                feed.place_at(found.offset, found.leader_epoch)
                feed.committed = found.offset
                feed.validate = found.leader_epoch >= 0
                if not feed.validate:
                    self._on_placed(feed)
            elif self._reset == "none":
                why = "the group has no committed offset, and auto_offset_reset is 'none'"
                feed.fail(NoOffsetError(*place, None, why))
                self._on_placed(feed)
            else:
                feed.wish = WISHES[self._reset]
        self.kick()

    async def _place_by_time(self, seats: _Seats) -> None:
        times = {place: feed.wish for place, (feed, _) in seats.items()}
        found, errors = await self._leaders.list_offsets(times, self._committed_only)
        for place, (offset, _, epoch) in found.items():
            feed, seat = seats[place]
            if self._still(feed, seat) and feed.wish == times[place]:
                feed.place_at(offset, epoch)
                self._on_placed(feed)
        self._refuse(seats, errors)

    async def _validate(self, seats: _Seats) -> None:
        """KIP-320: after a change of leader, is what was read still in the log?"""
        # An answer under way would move what is to be validated.
        epochs = {place: feed.fetch_epoch for place, (feed, _) in seats.items() if not feed.asked}
        found, errors = await self._leaders.epoch_ends(epochs)
        for place, end in found.items():
            feed, seat = seats[place]
            if self._still(feed, seat) and feed.fetch_epoch == epochs[place]:
                feed.validate = False
                self._validated(feed, end)
        self._refuse(seats, errors)

    def _validated(self, feed: Feed, end: int) -> None:
        position = feed.position
        assert position is not None
        if end < 0 or feed.fetch_offset <= end:
            # A leader that does not know the epoch cannot tell; out of range will be noticed anyway.
            self._on_placed(feed)
            return
        name = f"{feed.topic}-{feed.partition}"
        if position <= end:
            logger.warning("%s: records after offset %d are gone, they are fetched again", name, end)
            feed.refetch()
        elif self._reset == "none":
            feed.fail(LogTruncatedError(*feed.place, position, end))
        else:
            logger.warning(
                "%s: the log was truncated below position %d: going on at %d, where the histories part",
                name,
                position,
                end,
            )
            feed.place_at(end)
        self._on_placed(feed)

    def _refuse(self, seats: _Seats, errors: Mapping[TopicPartition, int]) -> None:
        for place, code in errors.items():
            feed, seat = seats[place]
            if not self._still(feed, seat) or code in MOVED or KafkaError(code).retriable:
                continue
            why = f"the broker does not tell its offsets: {error_name(code)}"
            feed.fail(PartitionError(*place, feed.position, why, code))
            self._on_placed(feed)

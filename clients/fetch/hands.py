"""What an application has in its hands: batches that it was given and has not yet come back from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ringleader.clients.fetch.feed import Feed
from ringleader.clients.model import TopicPartition


class Hands:
    """Filled when a batch is handed out, emptied when the application asks for the next."""

    def __init__(self) -> None:
        self._held: dict[TopicPartition, tuple[Feed, int, int, int]] = {}
        self._passed: dict[TopicPartition, tuple[Feed, int]] = {}
        self._emptied = asyncio.Event()
        self._open = False

    def __contains__(self, place: TopicPartition) -> bool:
        return place in self._held

    def feed(self, place: TopicPartition) -> Feed | None:
        """Where the batch of that partition that is in hand comes from; None when there is none."""
        held = self._held.get(place)
        return None if held is None else held[0]

    def take(self, feed: Feed) -> None:
        """The application gets what is before the feed's position."""
        assert feed.position is not None
        self._held[feed.place] = (feed, feed.seat, feed.position, feed.epoch)

    def passed(self, feed: Feed) -> None:
        """The feed stands elsewhere without the application: it was placed, or has got past offsets that are
        not for the application."""
        self._passed[feed.place] = (feed, feed.seat)

    def settle(self) -> list[Feed]:
        """What was in hand is processed: the feeds that got further. Not those that were placed elsewhere
        meanwhile."""
        settled = [feed for feed, seat in self._passed.values() if feed.seat == seat]
        self._passed.clear()
        for feed, seat, next_offset, epoch in self._held.values():
            if feed.seat == seat:
                feed.settled(next_offset, epoch)
                settled.append(feed)
        if self._held:
            self._drop()
        return settled

    def put_down(self) -> None:
        """From now on nothing is waited for: the application is leaving. Nothing counts as processed."""
        self._open = True
        self._drop()

    def _drop(self) -> None:
        self._held.clear()
        emptied, self._emptied = self._emptied, asyncio.Event()
        emptied.set()

    async def without(self, places: Iterable[TopicPartition]) -> None:
        """Wait until nothing of these is in hand."""
        wanted = list(places)
        while not self._open and any(place in self._held for place in wanted):
            await self._emptied.wait()

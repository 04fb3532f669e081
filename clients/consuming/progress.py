"""How far the application is, and telling the group: stored for auto-commit, or committed at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from ringleader.clients.consuming.feed import Feed
from ringleader.clients.consuming.hands import Hands
from ringleader.clients.errors import ClientError, CommitFailedError, MembershipError
from ringleader.clients.membership import GroupMember
from ringleader.clients.model import OffsetAndMetadata, Offsets, TopicPartition

SHARE_WAIT_S = 2.0
"""How long a commit that crossed a rebalance waits to hear of the new share."""

Made = dict[TopicPartition, int | OffsetAndMetadata]


class Progress:
    """Of the partitions in `feeds`.

    A commit belongs to the generation that the application knows of: what it has may be somebody else's in a
    later one. What stayed through a rebalance goes on under the next.
    """

    def __init__(
        self, member: GroupMember, feeds: Mapping[TopicPartition, Feed], hands: Hands, auto_commit: bool
    ) -> None:
        self._member = member
        self._feeds = feeds
        self._hands = hands
        self._auto_commit = auto_commit
        self._generation = self._share = -1
        self._changed = asyncio.Event()
        self._unstored: dict[TopicPartition, Feed] = {}
        """What auto-commit has not been told yet."""

    # ---- the share ----

    def given(self, generation: int) -> None:
        """There is a share of that generation."""
        self._generation = self._share = generation
        self._tell_change()
        self._store()

    def shrinking(self, generation: int) -> None:
        """The group is in that generation already, and the share is about to lose a part: until then the
        whole of it is committed under the new generation, and stored under the one it was given in."""
        self._generation = generation
        self._tell_change()

    def gone(self, places: Iterable[TopicPartition], all_of_it: bool) -> None:
        """These partitions are gone."""
        if all_of_it:
            self._generation = self._share = -1
        for place in places:
            self._unstored.pop(place, None)
        self._tell_change()

    def _tell_change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # ---- auto-commit ----

    def settle(self) -> None:
        """The application has come back: what it had is processed."""
        for feed in self._hands.settle():
            self._unstored[feed.place] = feed
        if self._unstored:
            self._store()

    def _store(self) -> None:
        feeds = self._feeds
        made: Made = {
            place: feed.progress
            for place, feed in self._unstored.items()
            if feeds.get(place) is feed and feed.progress is not None
        }
        if made and self._auto_commit:
            try:
                self._member.store(made, generation=self._share)
            except (CommitFailedError, MembershipError):
                # The group has gone on: what stays here is stored under the next share, the rest is lost.
                self._unstored = {place: feeds[place] for place in made}
                return
        self._unstored.clear()

    # ---- commits ----

    def made(self) -> Made:
        """Everything processed that is not known to be committed."""
        return {
            place: feed.progress
            for place, feed in self._feeds.items()
            if feed.progress is not None and feed.consumed != feed.committed
        }

    async def commit(self, offsets: Offsets, timeout_s: float) -> None:
        """Commit, and again if only a rebalance came between and the partitions stayed."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        feeds = {place: self._feeds.get(place) for place in offsets}
        while True:
            generation, changed = self._generation, self._changed
            left_s = max(0.001, deadline_s - asyncio.get_running_loop().time())
            try:
                await self._member.commit(offsets, generation=generation, timeout_s=left_s)
                break
            except CommitFailedError:
                if not await self._stayed(feeds, generation, changed):
                    raise
        for place, value in offsets.items():
            if (feed := feeds[place]) is not None:
                feed.committed = value.offset if isinstance(value, OffsetAndMetadata) else value

    def commit_nowait(self, offsets: Offsets, on_done: Callable[[ClientError | None], None] | None) -> None:
        """One try."""
        self._member.commit_nowait(offsets, generation=self._generation, on_done=on_done)

    async def _stayed(
        self, feeds: Mapping[TopicPartition, Feed | None], generation: int, changed: asyncio.Event
    ) -> bool:
        """Whether the group has gone on with these partitions still here."""
        if self._generation == generation:
            try:
                async with asyncio.timeout(SHARE_WAIT_S):
                    await changed.wait()
            except TimeoutError:
                return False
        return self._generation not in (-1, generation) and all(
            feed is not None and self._feeds.get(place) is feed for place, feed in feeds.items()
        )

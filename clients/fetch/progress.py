"""How far the application is, and telling the group: stored for auto-commit, or committed at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from ringleader.clients.errors import ClientError, CommitFailedError, MembershipError
from ringleader.clients.fetch.feed import Feed
from ringleader.clients.fetch.hands import Hands
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.model import OffsetAndMetadata, Offsets, TopicPartition

logger = logging.getLogger("ringleader.clients.consumer")

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

    def gone(self, places: Iterable[TopicPartition], generation: int | None) -> None:
        """These partitions are gone; the rest of the share goes on as of that generation (None: all is gone).
        The feeds of these have to be dropped before."""
        if generation is None:
            self._generation = self._share = -1
        else:
            self._generation = generation
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
        feeds = self._feeds_of(offsets)
        while True:
            generation = self._generation
            left_s = max(0.001, deadline_s - asyncio.get_running_loop().time())
            try:
                await self._member.commit(offsets, generation=generation, timeout_s=left_s)
                break
            except CommitFailedError:
                if not await self._stayed(feeds, generation):
                    raise
        for place, value in offsets.items():
            feeds[place].committed = value.offset if isinstance(value, OffsetAndMetadata) else value

    def commit_nowait(self, offsets: Offsets, on_done: Callable[[ClientError | None], None] | None) -> None:
        """One try."""
        try:
            self._feeds_of(offsets)
        except CommitFailedError as error:
            asyncio.get_running_loop().call_soon(_warn if on_done is None else on_done, error)
            return
        self._member.commit_nowait(offsets, generation=self._generation, on_done=on_done)

    def _feeds_of(self, offsets: Offsets) -> dict[TopicPartition, Feed]:
        """Raises CommitFailedError for what this consumer does not have: somebody else commits that. A batch
        in hand may be from before its partition went away and came back: others have read on since."""
        found = {}
        for place in offsets:
            feed, in_hand = self._feeds.get(place), self._hands.feed(place)
            if feed is None or in_hand not in (None, feed):
                topic, partition = place
                why = "is not this consumer's now" if feed is None else "was not kept since it was read"
                raise CommitFailedError(f"{topic}-{partition} {why}: what is not committed of it comes again")
            found[place] = feed
        return found

    async def _stayed(self, feeds: Mapping[TopicPartition, Feed], generation: int) -> bool:
        """Whether the group has gone on with these partitions still here."""
        try:
            async with asyncio.timeout(SHARE_WAIT_S):
                while self._generation == generation:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return self._generation != -1 and all(self._feeds.get(place) is feed for place, feed in feeds.items())


def _warn(error: ClientError | None) -> None:
    logger.warning("a commit failed: %s", error)

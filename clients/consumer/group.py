"""`GroupConsumer`: reads Kafka topics as a member of a group, with cooperative rebalancing, for asyncio.

The membership is a `GroupMember` with a thread of its own; records are fetched ahead in the application's
loop. What is in the application's hands counts as processed when it asks for more.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Unpack

from ringleader.clients.checks import seconds
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.consumer.base import (
    CLIENT_ID,
    STOP_TIMEOUT_S,
    BaseConsumer,
    consumer_settings,
)
from ringleader.clients.errors import ClientError, MembershipError, MembershipOverError
from ringleader.clients.fetch.errors import ConsumerClosedError
from ringleader.clients.fetch.model import ConsumerMetrics, ConsumerSettings
from ringleader.clients.fetch.positions import Committed
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import group_member, partitions_of
from ringleader.clients.model import (
    Assigned,
    Lost,
    OffsetAndMetadata,
    Offsets,
    Revoked,
    TopicPartition,
    checked,
)
from ringleader.clients.offsets.consumed import ConsumedOffsets
from ringleader.clients.options import ConsumerOptions, OnPartitions, check_call

logger = logging.getLogger("ringleader.clients.consumer")

POLLED_EVERY_S = 0.1
COMMIT_TIMEOUT_S = 30.0

_callback: ContextVar[object] = ContextVar("callback of a consumer", default=None)
"""Tasks and threads that a callback begins are inside of it, too, as long as it runs."""


class GroupConsumer(BaseConsumer):
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
        settings: ConsumerSettings | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        """Does not connect yet. Raises TypeError for an option that there is not, ValueError for values that
        cannot work.

        `topics` or `pattern` (a whole topic name has to match). `options`: see `ConsumerOptions`,
        `ConsumerSettings` for what they mean, and then `MemberSettings`. `on_assigned`, `on_revoked` and
        `on_lost` get the partitions that come and go, and may be coroutine functions; see docs/consumer.md
        for what holds in them. The rebalance timeout is `max_poll_interval_ms` if it is not given.
        """
        call = "GroupConsumer()"
        check_call(call, bootstrap, group_id, options, ConsumerOptions)
        settings, rest = consumer_settings(call, settings, options)
        self._on_assigned: OnPartitions | None = rest.pop("on_assigned", None)
        self._on_revoked: OnPartitions | None = rest.pop("on_revoked", None)
        self._on_lost: OnPartitions | None = rest.pop("on_lost", None)
        rest.setdefault("client_id", CLIENT_ID)
        rest.setdefault("rebalance_timeout_ms", settings.max_poll_interval_ms)
        super().__init__(f"group {group_id!r}", bootstrap, settings, options)
        self.group_id = group_id
        self._consumed = ConsumedOffsets()
        self._callback: object | None = None
        self._last_polled_s = 0.0
        rest |= {
            "rack": settings.client_rack,
            "auto_offset_reset": settings.auto_offset_reset,
            "metadata_max_age_ms": settings.metadata_max_age_ms,
            "on_assigned": self._assigned,
            "on_revoked": self._revoked,
            "on_lost": self._lost,
            "on_failed": self._failed,
            "request_timeout_ms": settings.request_timeout_ms,
            "max_poll_interval_ms": settings.max_poll_interval_ms,
            "auto_commit_interval_ms": settings.auto_commit_interval_ms if settings.auto_commit else None,
        }
        self.member = group_member(call, GroupMember, bootstrap, group_id, topics, rest, self._consumed)

    # ---- its life ----

    def _committed(self) -> Committed:
        return self.member.committed

    async def _begin(self, cluster: Cluster, reader: Reader) -> None:
        self._consumed.of(reader)
        await self.member.start()

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Commit what is processed (with `auto_commit`), leave the group, close the connections.

        A batch in hand does not count as processed: `commit` before, if it is. May be called more than once.
        """
        await super().stop(timeout_s=timeout_s)

    async def _end(self, timeout_s: float) -> None:
        await self.member.stop(timeout_s=timeout_s)

    def _polled(self, now_s: float) -> None:
        if now_s - self._last_polled_s >= POLLED_EVERY_S:
            self._last_polled_s = now_s
            self.member.polled()

    def _over(self) -> ClientError | None:
        if self.member.error is not None:
            return self.member.error
        if self.member.ended and not self._stopping:
            return MembershipOverError(f"{self._name}: this consumer's member has left the group")
        return None

    def _in_callback(self) -> bool:
        return self._callback is not None and _callback.get() is self._callback

    async def subscribe(
        self, topics: Iterable[str] | str | None = None, *, pattern: str | re.Pattern[str] | None = None
    ) -> None:
        """Subscribe to these topics, or to what matches, instead of those before: the group rebalances, and
        `on_revoked` and `on_assigned` tell what goes and comes. Does not wait for it. Raises ValueError."""
        assert self.member.subscription is not None
        if self._loop is not None:
            self._running()
        self.member.subscription.change(topics, pattern)
        await self.member.rejoin("another subscription")

    async def wait_assigned(self, timeout_s: float | None = None) -> list[TopicPartition]:
        """Wait until the group has settled; the partitions. Raises TimeoutError, and what ended the
        membership."""
        await self.member.wait_assigned(timeout_s)
        return self.assignment()

    # ---- commits ----

    async def commit(self, offsets: Offsets | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """Commit these offsets, or all progress.

        Without `offsets` and from the task that asks for records: what it has in hand is processed now, and
        committed. From another task, or in a callback: what it has come back from. Raises as
        `GroupMember.commit`, and ConsumerClosedError after `stop`; a commit that a rebalance crosses is
        repeated if the partitions stayed.
        """
        self._running()
        seconds(timeout_s)
        if wanted := self._made() if offsets is None else checked(offsets):
            await self._consumed.commit(self.member, wanted, timeout_s)

    def commit_nowait(
        self,
        offsets: Offsets | None = None,
        *,
        on_done: Callable[[ClientError | None], None] | None = None,
    ) -> None:
        """As `commit`, but does not wait and does not repeat. `on_done` gets the error or None; without it a
        failure is a line in the log."""
        self._running()
        if wanted := self._made() if offsets is None else checked(offsets):
            self._consumed.commit_nowait(self.member, wanted, on_done)

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets: of these partitions, or of all; those without one are left out."""
        self._running()
        return await self.member.committed(partitions, timeout_s=seconds(timeout_s))

    def _made(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        # Whoever asked for records has processed them when it commits. Others cannot know: a callback, a task
        # that commits now and then.
        if self._asked_here() and not self._asking and not self._in_callback() and self._reader is not None:
            self._reader.processed()
        return self._consumed.uncommitted().offsets

    def _asked_here(self) -> bool:
        # `asyncio.wait_for` asks in a task that has ended by now.
        return self._asker is None or self._asker is asyncio.current_task() or self._asker.done()

    def metrics(self) -> ConsumerMetrics:
        """Counters as of now."""
        return ConsumerMetrics(**self._figures(), member=self.member.metrics())

    # ---- rebalances: in the application's loop, one after the other ----

    async def _assigned(self, assigned: Assigned) -> None:
        reader, partitions = self._read(), set(partitions_of(assigned))
        reader.drop([tp for tp in reader.states if tp not in partitions])
        added = sorted(partitions - set(reader.states))
        self._consumed.assigned(assigned.generation)
        reader.add(added)
        try:
            await self._call(self._on_assigned, added)
        finally:
            reader.release(added)

    async def _revoked(self, revoked: Revoked) -> None:
        """What is in hand is waited for; the member sets the bound, and tells the loss when it is over. Then
        it commits what is processed."""
        reader = self._read()
        partitions = [tp for tp in partitions_of(revoked) if tp in reader.states]
        reader.suspend(partitions)
        await reader.until_processed(partitions)
        if partitions:
            await self._call(self._on_revoked, partitions)
        self._consumed.revoked(reader.drop(partitions), revoked.generation)

    async def _lost(self, lost: Lost) -> None:
        reader = self._read()
        partitions = [tp for tp in partitions_of(lost) if tp in reader.states]
        self._consumed.lost(reader.drop(partitions), lost.generation)
        if partitions:
            await self._call(self._on_lost, partitions)

    def _failed(self, _error: MembershipError) -> None:
        self._read().something.set()

    def _read(self) -> Reader:
        assert self._reader is not None
        return self._reader

    async def _call(self, callback: OnPartitions | None, partitions: list[TopicPartition]) -> None:
        if callback is None:
            return
        self._callback = object()
        token = _callback.set(self._callback)
        try:
            result = callback(partitions)
            if inspect.isawaitable(result):
                await result
        except ConsumerClosedError:
            if not self._stopping:
                raise  # else it was waiting for a position, and is not needed any more
        finally:
            _callback.reset(token)
            self._callback = None

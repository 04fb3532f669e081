"""`GroupConsumer`: reads Kafka topics as a member of a group, with cooperative rebalancing, for asyncio.

The membership is a `GroupMember` with a thread of its own; records are fetched ahead in the application's
loop. Records in the application's hands count as processed when it asks for more.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Unpack

from ringleader.clients.checks import check, check_options, seconds
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.consumer.arguments import consumer_settings
from ringleader.clients.consumer.base import (
    CLIENT_ID,
    LOOKUP_TIMEOUT_S,
    BaseConsumer,
)
from ringleader.clients.errors import (
    CallbackFailedError,
    ClientError,
    MembershipError,
    MembershipOverError,
)
from ringleader.clients.fetch.errors import ConsumerClosedError
from ringleader.clients.fetch.model import Batch, ConsumerMetrics, ConsumerSettings, Processed, next_offsets
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.clients.fetch.positions import Committed
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.group.leading.matching import Choice
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import group_member, partitions_of
from ringleader.clients.in_loop import STOP_TIMEOUT_S
from ringleader.clients.model import (
    Assigned,
    GroupMetadata,
    Lost,
    OffsetAndMetadata,
    Offsets,
    Revoked,
    TopicPartition,
    TopicPattern,
    checked,
)
from ringleader.clients.offsets.consumed import ConsumedOffsets
from ringleader.clients.options import ConsumerOptions, OnPartitions, check_call
from ringleader.clients.process.processing import Handler, Processing, current_task, process_metrics
from ringleader.clients.process.settings import ProcessOptions, ProcessSettings

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

        `topics` or `pattern` (a whole topic name has to match; a `SubscriptionPattern` is matched by the
        coordinator of the consumer protocol). `options`: see `ConsumerOptions`,
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
        self._cluster: Cluster | None = None
        self._callback: object | None = None
        self._failures: list[tuple[CallbackFailedError, list[PartitionState]]] = []
        """Errors of callbacks not yet raised to the application, and the partitions held until they are."""
        self._last_polled_s = 0.0
        self._reported_left_out = False
        self._looked = True
        """At the topics of the subscription, as far as that is needed."""
        self._looking: asyncio.Task[None] | None = None
        self._processing: Processing | None = None
        self._processed: Counter[str] | None = None
        """The counts of `process`, of all its runs."""
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

    async def _begin(self, cluster: Cluster, reader: Reader, timeout_s: float) -> None:
        self._consumed.of(reader)
        self._cluster = cluster
        assert self.member.subscription is not None
        await self._look(self.member.subscription, timeout_s)
        await self.member.start()
        self._look_on(self.member.subscription)

    async def _look(self, choice: Choice, timeout_s: float) -> None:
        """The partitions there are now: later ones are new."""
        cluster = self._cluster
        if self.settings.auto_offset_reset != "latest" or cluster is None:
            return
        before, self._looked = self._looked, False
        try:
            await self._baseline.look(cluster, choice.names if choice.by_name else None, timeout_s)
        except ClientError as error:
            text = "%s: topics cannot be looked at; until they can, new partitions begin at their end: %s"
            logger.log(logging.WARNING if before else logging.DEBUG, text, self._name, error)
        else:
            self._looked = True

    def _look_on(self, choice: Choice) -> None:
        """Look again, until it has been possible."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if not self._looked:
            self._looking = asyncio.get_running_loop().create_task(
                self._keep_looking(choice), name="consumer's look at the topics"
            )

    async def _keep_looking(self, choice: Choice) -> None:
        backoff = Backoff(200, 10_000, random.random)
        while not self._looked:
            await asyncio.sleep(backoff.next_ms() / 1000)
            await self._look(choice, LOOKUP_TIMEOUT_S)

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Commit what is processed (with `auto_commit`), leave the group, close the connections.

        A batch in hand does not count as processed: `commit` before, if it is. Handlers of `process` come to
        their end first, within that time. May be called more than once. Raises RuntimeError in a handler.
        """
        if (processing := self._processing) is not None and self._at_home():
            self._check_outside(processing)
            self._check_loop()
            began_s, self._stopping = time.monotonic(), True
            await processing.drain(seconds(timeout_s))
            timeout_s = max(0.0, timeout_s - (time.monotonic() - began_s))
        await super().stop(timeout_s=timeout_s)

    @staticmethod
    def _check_outside(processing: Processing) -> None:
        if processing.inside():
            raise RuntimeError(
                "a handler cannot stop its consumer: raise, or end the task that called process()"
            )

    async def _end(self, timeout_s: float) -> None:
        if self._looking is not None:
            self._looking.cancel()
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
        self,
        topics: Iterable[str] | str | None = None,
        *,
        pattern: TopicPattern | None = None,
        timeout_s: float = LOOKUP_TIMEOUT_S,
    ) -> None:
        """Subscribe to these topics, or to what matches, instead of those before: the group rebalances, and
        `on_revoked` and `on_assigned` tell what goes and comes. Does not wait for it; with
        `auto_offset_reset="latest"` it looks at the topics first, at most `timeout_s`. Raises ValueError."""
        seconds(timeout_s)
        assert self.member.subscription is not None
        if self._loop is not None:
            self._running()
        chosen = Choice(topics, pattern, by_coordinator=self.member.subscription.by_coordinator)
        await self._look(chosen, timeout_s)
        # Nothing is waited for from here on: a call that is cancelled has changed all of it, or nothing.
        self.member.subscription.change(chosen.names if chosen.by_name else None, pattern)
        await self.member.rejoin("another subscription")
        if self._loop is not None:
            self._look_on(chosen)

    async def wait_assigned(self, timeout_s: float | None = None) -> list[TopicPartition]:
        """Wait until the group has settled; the partitions. Raises TimeoutError, and what ended the
        membership."""
        self._check_process()
        await self.member.wait_assigned(timeout_s)
        self._tell_failure()
        return self.assignment()

    # ---- records, each for itself ----

    async def process(self, handler: Handler, **options: Unpack[ProcessOptions]) -> None:
        """Call `handler(record)` for each record, many at a time, until the consumer is stopped.

        `handler` is a coroutine function, or a plain one, which runs in threads (or in `executor`).
        `options`: see `ProcessSettings`. A record is done when its handler returns, or when a policy of
        `failures` says so. The group commits (by itself with `auto_commit`, and by `commit()`) the offset
        before which everything is done; what is done beyond it stands in the commit's metadata, and
        `process` does not do it again. In a rebalance the handlers that run come to their end, as far as
        the rebalance timeout lets them, and the rest comes at its new owner.

        Raises what a handler raised, if no policy takes it: the record comes again. Else as `getmany`. Other
        calls that ask for records raise RuntimeError meanwhile.
        """
        check("handler", handler, Callable[..., object], "process()")
        check_options("process()", options, ProcessOptions)
        settings = ProcessSettings(**options)
        if settings.retry_topics and self.settings.auto_offset_reset not in ("earliest", "none"):
            # A restart before the first commit would not see what was written to them.
            raise ValueError('process(): retry topics need a consumer with auto_offset_reset="earliest"')
        reader = self._running()
        if self._processing is not None:
            raise RuntimeError(f"{self._name}: process() runs already")
        counts = self._processed = self._processed or Counter()
        processing = self._processing = Processing(self._name, reader, handler, settings, counts)
        self._only_asker = asyncio.current_task()

        async def ask(room: int) -> list[Batch]:
            return await self._ask(min(room, self.settings.max_poll_records), None, several=True)

        try:
            await processing.run(ask)
        finally:
            self._processing = self._only_asker = None

    # ---- commits ----

    async def commit(self, offsets: Processed | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """Commit these offsets, or these batches (one, or a list as `getmany` gives it), or all progress.

        Without `offsets`: all that the application has asked past. The task that `getmany` ran in has
        processed the records in hand when it commits, so they are committed, too; another task or a callback
        cannot know, and commits nothing of them. `asyncio.create_task` makes another task, and so does
        `asyncio.wait_for` before Python 3.12: `getmany(timeout_s=...)` does not. Raises as
        `GroupMember.commit`, ConsumerClosedError after `stop`, ValueError for offsets that no log has; a
        commit that a rebalance crosses is repeated if the partitions stayed.
        """
        await self._commit(offsets, timeout_s, self._holds_records())

    async def _commit(self, offsets: Processed | None, timeout_s: float, holds_records: bool) -> None:
        self._running()
        seconds(timeout_s)
        if wanted := self._made(holds_records) if offsets is None else checked(next_offsets(offsets)):
            await self._consumed.commit(self.member, wanted, timeout_s)

    def commit_nowait(
        self,
        offsets: Processed | None = None,
        *,
        on_done: Callable[[ClientError | None], None] | None = None,
    ) -> None:
        """As `commit`, but does not wait and does not repeat. `on_done` gets the error or None; without it a
        failure is a line in the log."""
        self._commit_nowait(offsets, on_done, self._holds_records())

    def _commit_nowait(
        self,
        offsets: Processed | None,
        on_done: Callable[[ClientError | None], None] | None,
        holds_records: bool,
    ) -> None:
        self._running()
        check("on_done", on_done, Callable[..., object] | None)
        if wanted := self._made(holds_records) if offsets is None else checked(next_offsets(offsets)):
            guarded = None if on_done is None else self._guarded(on_done)
            self._consumed.commit_nowait(self.member, wanted, guarded)

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets: of these partitions, or of all; those without one are left out."""
        self._running()
        return await self.member.committed(partitions, timeout_s=seconds(timeout_s))

    def group_metadata(self) -> GroupMetadata:
        """This consumer's place in its group, for a producer that commits its offsets in a transaction
        (`Producer.send_offsets_to_transaction`). Ask for it again in each transaction."""
        self._running()
        state, known = self.member.machine.state, self._consumed.generation
        generation, member_id = state.identity
        if not state.holds(known):
            generation = known
        return GroupMetadata(self.group_id, generation, member_id, self.member.settings.group_instance_id)

    def _begin_transaction(self) -> None:
        if self.settings.auto_commit:
            text = "a transaction commits the offsets: the consumer needs auto_commit=False"
            raise ValueError(f"{self._name}: {text}")
        self._running().begin_transaction()

    def _transaction_offsets(self) -> tuple[dict[TopicPartition, OffsetAndMetadata], GroupMetadata]:
        return self._running().transaction_offsets(), self.group_metadata()

    def _end_transaction(self, committed: Offsets | None) -> None:
        if self._reader is not None:
            self._reader.end_transaction(committed=committed is not None)
            self._consumed.committed(committed or {})

    def _made(self, holds_records: bool) -> Mapping[TopicPartition, OffsetAndMetadata]:
        reader = self._read()
        if self._processing is not None:
            self._processing.reach()
        elif not self._asking and not self._in_callback():
            if holds_records:
                reader.processed()
            elif reader.in_hand and not self._reported_left_out:
                self._reported_left_out = True
                logger.warning(
                    "%s: commit() leaves out the newest records (of %d partitions): another task or thread "
                    "asked for them, and they count as processed when more are asked for. commit(batches) "
                    "says which are. This is logged once",
                    self._name,
                    len(reader.in_hand),
                )
        return self._consumed.uncommitted()[1]

    def _holds_records(self) -> bool:
        return self._asker is not None and self._asker is current_task()

    def metrics(self) -> ConsumerMetrics:
        """The current counters."""
        processed = None
        if self._processing is not None:
            processed = self._processing.metrics()
        elif self._processed is not None:
            processed = process_metrics(self._processed)
        return ConsumerMetrics(**self._figures(), member=self.member.metrics(), processing=processed)

    # ---- rebalances: in the application's loop, one after the other ----

    async def _assigned(self, assigned: Assigned) -> None:
        reader, partitions = self._read(), set(partitions_of(assigned))
        reader.drop([tp for tp in reader.states if tp not in partitions])
        added = sorted(partitions - set(reader.states))
        self._consumed.assigned(assigned.generation)
        reader.add(added)
        states = [reader.states[partition] for partition in added]
        await self._call("on_assigned", self._on_assigned, added, states)
        if not any(held is states for _, held in self._failures):
            reader.release(added)

    async def _revoked(self, revoked: Revoked) -> None:
        """Records in hand are waited for; the member sets the bound, and reports the loss when it is over.
        Then it commits what is processed."""
        reader = self._read()
        partitions = [tp for tp in partitions_of(revoked) if tp in reader.states]
        reader.suspend(partitions)
        if self._processing is not None:
            self._processing.drop(partitions)
        for _, held in self._failures:
            held[:] = [state for state in held if state.topic_partition not in partitions]
        await reader.until_processed(partitions)
        if partitions:
            await self._call("on_revoked", self._on_revoked, partitions)
        if self._processing is not None:
            self._processing.reach()
        self._consumed.revoked(reader.drop(partitions), revoked.generation)

    async def _lost(self, lost: Lost) -> None:
        reader = self._read()
        partitions = [tp for tp in partitions_of(lost) if tp in reader.states]
        if self._processing is not None:
            self._processing.drop(partitions)
        self._consumed.lost(reader.drop(partitions), lost.generation)
        if partitions:
            await self._call("on_lost", self._on_lost, partitions)

    def _callback_failed(self, name: str, error: BaseException, held: list[PartitionState]) -> None:
        logger.error("%s: %s raised", self._name, name, exc_info=error)
        failed = CallbackFailedError(f"{self._name}: the callback {name} raised {error!r}", name)
        failed.__cause__ = error
        self._failures.append((failed, held))
        self._read().something.set()

    def _tell_failure(self) -> None:
        if self._processing is not None:
            self._processing.check()
        if not self._failures:
            return
        failed, held = self._failures.pop(0)
        reader = self._read()
        reader.release(
            state.topic_partition for state in held if reader.states.get(state.topic_partition) is state
        )
        raise failed

    def _guarded(self, on_done: Callable[[ClientError | None], Any]) -> Callable[[ClientError | None], Any]:
        def call(error: ClientError | None) -> Any:
            try:
                return on_done(error)
            except BaseException as raised:
                self._callback_failed("on_done", raised, [])

        return call

    def _failed(self, _error: MembershipError) -> None:
        self._read().something.set()

    def _read(self) -> Reader:
        assert self._reader is not None
        return self._reader

    async def _call(
        self,
        name: str,
        callback: OnPartitions | None,
        partitions: list[TopicPartition],
        held: list[PartitionState] | None = None,
    ) -> None:
        """Its exception is raised where the application asks next; `held` is not read before that."""
        if callback is None:
            return
        self._callback = object()
        token = _callback.set(self._callback)
        try:
            result = callback(partitions)
            if inspect.isawaitable(result):
                await result
        except (
            BaseException
        ) as error:  # sys.exit() in a callback, too: it would end the loop under all others
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            if not (isinstance(error, ConsumerClosedError) and self._stopping):
                self._callback_failed(name, error, held or [])
            # Else it was waiting for a position, and is not needed any more.
        finally:
            _callback.reset(token)
            self._callback = None

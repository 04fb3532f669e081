"""Consumers for code without an event loop: the same calls, which wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, cast

from ringleader.clients.consumer.arguments import deserialized
from ringleader.clients.consumer.base import LOOKUP_TIMEOUT_S, BaseConsumer
from ringleader.clients.consumer.group import COMMIT_TIMEOUT_S, GroupConsumer
from ringleader.clients.consumer.partitions import PartitionConsumer
from ringleader.clients.errors import ClientError
from ringleader.clients.fetch.errors import (
    CorruptRecordError,
    UnreadRecordError,
)
from ringleader.clients.fetch.model import (
    Batch,
    ConsumerMetrics,
    ConsumerSettings,
    FetchMetrics,
    Processed,
)
from ringleader.clients.in_loop import STOP_TIMEOUT_S
from ringleader.clients.in_thread import Call, InThread
from ringleader.clients.model import GroupMetadata, OffsetAndMetadata, TopicPartition, TopicPattern
from ringleader.clients.options import (
    ConsumerOptions,
    OnPartitions,
    PartitionConsumerOptions,
    check_call,
    check_client,
)
from ringleader.clients.process.processing import Handler
from ringleader.clients.process.settings import ProcessOptions

C = TypeVar("C", bound=BaseConsumer)


class _SyncConsumer(InThread[C]):
    """Runs a consumer in an event loop on a thread of its own.

    One thread asks for records at a time; the other methods may be called from any thread. A context manager:
    starts, and stops at the end. A signal handler may raise at any moment: no record is lost by that.
    """

    def __init__(self, consumer: C) -> None:
        super().__init__(consumer, "consumer")
        self._consumer = consumer
        self._asker: threading.Thread | None = None
        """The thread that is asking for records."""
        self._given: Call[list[Batch]] | None = None
        """The last question whose answer has reached the application."""
        self._asking: set[asyncio.Task[Any]] = set()
        """Questions on their way. Belongs to the loop's thread."""

    # ---- records ----

    def __iter__(self) -> Iterator[Batch]:
        """Batches of one partition, up to `max_poll_records`; the batch before counts as processed when the
        next is asked for. Ends when another thread stops the consumer; raises what `getmany` raises."""
        return self

    def __next__(self) -> Batch:
        batches = self._ask(self._consumer.settings.max_poll_records, None, several=False)
        if not batches:
            raise StopIteration
        return batches[0]

    def getone(self, timeout_s: float | None = None) -> Batch | None:
        """As `GroupConsumer.getone`."""
        batches = self._ask(1, timeout_s, several=False)
        if not batches and self._consumer._stopping:
            raise self._consumer._closed()
        return batches[0] if batches else None

    def getmany(self, max_records: int | None = None, timeout_s: float | None = None) -> list[Batch]:
        """As `GroupConsumer.getmany`."""
        limit = self._consumer.settings.max_poll_records if max_records is None else max_records
        batches = self._ask(limit, timeout_s, several=True)
        if not batches and self._consumer._stopping:
            raise self._consumer._closed()
        return batches

    def _ask(self, limit: int, timeout_s: float | None, *, several: bool) -> list[Batch]:
        me, consumer = threading.current_thread(), self._consumer
        if self._asker not in (None, me):
            raise RuntimeError("another thread is asking this consumer for records")
        self._asker = me
        try:
            given = self._given
            raw = not consumer.settings.awaits
            question: Call[list[Batch]] = Call(
                lambda: consumer._fetched(limit, timeout_s, several, question, given, raw=raw)
            )
            found = cast("list[Batch]", self._made(question, partial(self._begin, question)).result)
            question.result = None
            # Here, as a deserializer that does not wait may take long, or care which thread it is in.
            batches, refused = deserialized(found, consumer.settings) if raw else (found, [])
            raised = refused[0][1] if refused and not batches else None
            if refused:
                self._call(consumer._refuse, refused, raised)
            if raised is not None:
                raise raised
        finally:
            self._asker = None
        # Python lets a signal handler run when a function has been called. None is called from here on: the
        # caller has the records, or its answer was never handed out.
        self._given = question
        return batches

    # ---- in the loop's thread ----

    def _begin(self, question: Call[list[Batch]]) -> None:
        work, others = question.work, list(self._asking)

        async def ask() -> list[Batch]:
            # Those of calls that were interrupted.
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others)
            return await work()

        question.work = ask
        question.begin()
        assert question.task is not None
        self._asking.add(question.task)
        question.task.add_done_callback(self._asking.discard)

    # ---- positions ----

    def assignment(self) -> list[TopicPartition]:
        """As `GroupConsumer.assignment`."""
        return self._consumer.assignment()

    def position(self, partition: TopicPartition, *, timeout_s: float = LOOKUP_TIMEOUT_S) -> int:
        """As `GroupConsumer.position`."""
        return self._wait(lambda: self._consumer.position(partition, timeout_s=timeout_s))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """As `GroupConsumer.seek`."""
        self._call(self._consumer.seek, partition, offset)

    def skip(self, error: CorruptRecordError | UnreadRecordError) -> None:
        """As `GroupConsumer.skip`."""
        self._call(self._consumer.skip, error)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """As `GroupConsumer.seek_to_beginning`."""
        self._call(self._consumer.seek_to_beginning, *partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """As `GroupConsumer.seek_to_end`."""
        self._call(self._consumer.seek_to_end, *partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """As `GroupConsumer.pause`."""
        self._call(self._consumer.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """As `GroupConsumer.resume`."""
        self._call(self._consumer.resume, *partitions)

    def paused(self) -> list[TopicPartition]:
        """As `GroupConsumer.paused`."""
        return self._consumer.paused()

    def lag(self, *, timeout_s: float = LOOKUP_TIMEOUT_S) -> dict[TopicPartition, int]:
        """As `GroupConsumer.lag`."""
        return self._wait(lambda: self._consumer.lag(timeout_s=timeout_s))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """As `GroupConsumer.beginning_offsets`."""
        return self._wait(lambda: self._consumer.beginning_offsets(partitions, timeout_s=timeout_s))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """As `GroupConsumer.end_offsets`."""
        return self._wait(lambda: self._consumer.end_offsets(partitions, timeout_s=timeout_s))

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, tuple[int, int] | None]:
        """As `GroupConsumer.offsets_for_times`."""
        return self._wait(lambda: self._consumer.offsets_for_times(times, timeout_s=timeout_s))


class SyncPartitionConsumer(_SyncConsumer[PartitionConsumer]):
    """`PartitionConsumer` for code without an event loop. Takes the same arguments."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        partitions: Iterable[TopicPartition | str] = (),
        *,
        settings: ConsumerSettings | None = None,
        **options: Unpack[PartitionConsumerOptions],
    ) -> None:
        """As `PartitionConsumer`."""
        check_client("SyncPartitionConsumer()", bootstrap, options, PartitionConsumerOptions)
        super().__init__(PartitionConsumer(bootstrap, partitions, settings=settings, **options))

    def assign(
        self, partitions: Iterable[TopicPartition | str], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> None:
        """As `PartitionConsumer.assign`."""
        self._wait(lambda: self._consumer.assign(partitions, timeout_s=timeout_s))

    def metrics(self) -> FetchMetrics:
        """As `PartitionConsumer.metrics`."""
        return self._consumer.metrics()


class SyncGroupConsumer(_SyncConsumer[GroupConsumer]):
    """`GroupConsumer` for code without an event loop: `with SyncGroupConsumer(...) as consumer`, then
    `for batch in consumer`. Takes the same arguments.

    Callbacks run in a thread, one after the other, and may block; they may call the consumer.
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
        """As `GroupConsumer`."""
        check_call("SyncGroupConsumer()", bootstrap, group_id, options, ConsumerOptions)
        options["on_assigned"] = _in_thread(options.get("on_assigned"))
        options["on_revoked"] = _in_thread(options.get("on_revoked"))
        options["on_lost"] = _in_thread(options.get("on_lost"))
        super().__init__(GroupConsumer(bootstrap, group_id, topics, settings=settings, **options))

    def subscribe(
        self,
        topics: Iterable[str] | str | None = None,
        *,
        pattern: TopicPattern | None = None,
        timeout_s: float = LOOKUP_TIMEOUT_S,
    ) -> None:
        """As `GroupConsumer.subscribe`."""
        self._wait(lambda: self._consumer.subscribe(topics, pattern=pattern, timeout_s=timeout_s))

    def wait_assigned(self, timeout_s: float | None = None) -> list[TopicPartition]:
        """As `GroupConsumer.wait_assigned`."""
        return self._wait(lambda: self._consumer.wait_assigned(timeout_s))

    def process(self, handler: Handler, **options: Unpack[ProcessOptions]) -> None:
        """As `GroupConsumer.process`: `handler` is a plain function, which runs in threads (or in
        `executor`). Waits until another thread stops the consumer."""
        self._wait(lambda: self._consumer.process(handler, **options))

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `GroupConsumer.stop`; from any thread but a handler's, and more than once."""
        if (processing := self._consumer._processing) is not None:
            self._consumer._check_outside(processing)
        super().stop(timeout_s=timeout_s)

    def commit(self, offsets: Processed | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """As `GroupConsumer.commit`; the thread that was given the records in hand has processed them when it
        commits. Another thread or a callback commits nothing of them."""
        mine = self._mine()
        self._wait(lambda: self._consumer._commit(offsets, timeout_s, mine()))

    def commit_nowait(
        self, offsets: Processed | None = None, *, on_done: Callable[[ClientError | None], None] | None = None
    ) -> None:
        """As `GroupConsumer.commit_nowait`; `on_done` runs in the consumer's thread."""
        mine = self._mine()
        self._call(lambda: self._consumer._commit_nowait(offsets, on_done, mine()))

    def _mine(self) -> Callable[[], bool]:
        """Whether what is in hand was given to this thread; to be asked in the loop's."""
        given = self._given
        if given is None or given.thread is not threading.current_thread():
            return lambda: False
        return lambda: self._consumer._question is given

    def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `GroupConsumer.committed`."""
        return self._wait(lambda: self._consumer.committed(partitions, timeout_s=timeout_s))

    def group_metadata(self) -> GroupMetadata:
        """As `GroupConsumer.group_metadata`."""
        return self._call(self._consumer.group_metadata)

    def metrics(self) -> ConsumerMetrics:
        """As `GroupConsumer.metrics`."""
        return self._consumer.metrics()


def _in_thread(callback: OnPartitions | None) -> OnPartitions | None:
    if callback is None:
        return None

    def run(partitions: list[TopicPartition]) -> BaseException | None:
        try:
            callback(partitions)
        except BaseException as error:  # StopIteration, for one, is lost on its way between threads
            return error
        return None

    async def call(partitions: list[TopicPartition]) -> None:
        if (error := await asyncio.to_thread(run, partitions)) is not None:
            raise error

    return call

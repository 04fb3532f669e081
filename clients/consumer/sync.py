"""Consumers for code without an event loop: the same calls, which wait."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack

from ringleader.clients.consumer.base import (
    LOOKUP_TIMEOUT_S,
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    BaseConsumer,
)
from ringleader.clients.consumer.group import COMMIT_TIMEOUT_S, GroupConsumer
from ringleader.clients.consumer.partitions import PartitionConsumer
from ringleader.clients.errors import ClientError
from ringleader.clients.fetch.errors import ConsumerClosedError
from ringleader.clients.fetch.model import Batch, ConsumerMetrics, ConsumerSettings, FetchMetrics
from ringleader.clients.model import OffsetAndMetadata, Offsets, TopicPartition
from ringleader.clients.options import (
    ConsumerOptions,
    OnPartitions,
    PartitionConsumerOptions,
    check_call,
    check_client,
)

C = TypeVar("C", bound=BaseConsumer)
T = TypeVar("T")


class _SyncConsumer(Generic[C]):
    """Runs a consumer in an event loop on a thread of its own.

    One thread asks for records at a time; the other methods may be called from any thread. A context manager:
    starts, and stops at the end.
    """

    def __init__(self, consumer: C) -> None:
        self._consumer = consumer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._asked: Future[list[Batch]] | None = None
        """An answer to be taken: by the next to ask, if whoever asked was interrupted (Ctrl-C)."""
        self._task: asyncio.Task[list[Batch]] | None = None

    # ---- its life ----

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Connect, and begin; does not wait for records. Raises as `GroupConsumer.start`."""
        if self._thread is not None:
            raise ConsumerClosedError(f"{self._consumer._name}: this consumer was started before")
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="consumer", daemon=True)
        self._thread.start()
        ready.wait()
        try:
            self._wait(self._consumer.start(timeout_s=timeout_s))
        except BaseException:
            self._end_thread()
            self._thread = None
            raise

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `GroupConsumer.stop`; from any thread, and more than once."""
        if self._loop is None:
            return
        with contextlib.suppress(ConsumerClosedError):  # another thread was faster
            self._wait(self._consumer.stop(timeout_s=timeout_s))
        self._end_thread()

    def _run(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._loop.call_soon(ready.set)
            self._loop.run_forever()

    def _end_thread(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None and self._thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if (loop := self._loop) is None:
            work.close()
            raise self._consumer._closed()
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        async def call() -> T:
            return function(*args)

        return self._wait(call())

    # ---- records ----

    def __iter__(self) -> Iterator[Batch]:
        """Batches of one partition, up to `max_poll_records`; the batch before counts as processed when the
        next is asked for. Ends when another thread stops the consumer; raises what `getmany` raises."""
        return self

    def __next__(self) -> Batch:
        for batch in self._ask(self._next):
            return batch
        raise StopIteration

    async def _next(self) -> list[Batch]:
        batch = await anext(self._consumer, None)
        return [] if batch is None else [batch]

    def getone(self, timeout_s: float | None = None) -> Batch | None:
        """As `GroupConsumer.getone`."""

        async def one() -> list[Batch]:
            batch = await self._consumer.getone(timeout_s)
            return [] if batch is None else [batch]

        return next(iter(self._ask(one)), None)

    def getmany(self, max_records: int | None = None, timeout_s: float | None = None) -> list[Batch]:
        """As `GroupConsumer.getmany`."""
        return self._ask(lambda: self._consumer.getmany(max_records, timeout_s))

    def _ask(self, ask: Callable[[], Coroutine[Any, Any, list[Batch]]]) -> list[Batch]:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("another thread is asking this consumer for records")
        try:
            if self._asked is not None:
                with contextlib.suppress(CancelledError):
                    return self._take(self._asked)
            self._asked = self._begin(ask)
            return self._take(self._asked)
        finally:
            self._lock.release()

    def _take(self, asked: Future[list[Batch]]) -> list[Batch]:
        try:
            return asked.result()
        finally:
            if asked.done():
                self._asked = None
            elif self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _begin(self, ask: Callable[[], Coroutine[Any, Any, list[Batch]]]) -> Future[list[Batch]]:
        if (loop := self._loop) is None:
            raise self._consumer._closed()
        asked: Future[list[Batch]] = Future()

        def ended(task: asyncio.Task[list[Batch]]) -> None:
            if task.cancelled():
                asked.set_exception(CancelledError())
            elif (error := task.exception()) is not None:
                asked.set_exception(error)
            else:
                asked.set_result(task.result())

        def begin() -> None:
            self._task = loop.create_task(ask())
            self._task.add_done_callback(ended)

        loop.call_soon_threadsafe(begin)
        return asked

    # ---- positions ----

    def assignment(self) -> list[TopicPartition]:
        """As `GroupConsumer.assignment`."""
        return self._consumer.assignment()

    def position(self, partition: TopicPartition) -> int:
        """As `GroupConsumer.position`."""
        return self._wait(self._consumer.position(partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """As `GroupConsumer.seek`."""
        self._call(self._consumer.seek, partition, offset)

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
        return self._wait(self._consumer.lag(timeout_s=timeout_s))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """As `GroupConsumer.beginning_offsets`."""
        return self._wait(self._consumer.beginning_offsets(partitions, timeout_s=timeout_s))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """As `GroupConsumer.end_offsets`."""
        return self._wait(self._consumer.end_offsets(partitions, timeout_s=timeout_s))

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, tuple[int, int] | None]:
        """As `GroupConsumer.offsets_for_times`."""
        return self._wait(self._consumer.offsets_for_times(times, timeout_s=timeout_s))


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
        self._wait(self._consumer.assign(partitions, timeout_s=timeout_s))

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
        self, topics: Iterable[str] | str | None = None, *, pattern: str | re.Pattern[str] | None = None
    ) -> None:
        """As `GroupConsumer.subscribe`."""
        self._wait(self._consumer.subscribe(topics, pattern=pattern))

    def wait_assigned(self, timeout_s: float | None = None) -> list[TopicPartition]:
        """As `GroupConsumer.wait_assigned`."""
        return self._wait(self._consumer.wait_assigned(timeout_s))

    def commit(self, offsets: Offsets | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S) -> None:
        """As `GroupConsumer.commit`; the thread that asks for records has processed them when it commits, and
        other threads are taken for it while it is not asking."""
        self._wait(self._consumer.commit(offsets, timeout_s=timeout_s))

    def commit_nowait(
        self, offsets: Offsets | None = None, *, on_done: Callable[[ClientError | None], None] | None = None
    ) -> None:
        """As `GroupConsumer.commit_nowait`; `on_done` runs in the consumer's thread."""
        self._call(lambda: self._consumer.commit_nowait(offsets, on_done=on_done))

    def committed(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float = COMMIT_TIMEOUT_S
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """As `GroupConsumer.committed`."""
        return self._wait(self._consumer.committed(partitions, timeout_s=timeout_s))

    def metrics(self) -> ConsumerMetrics:
        """As `GroupConsumer.metrics`."""
        return self._consumer.metrics()


def _in_thread(callback: OnPartitions | None) -> OnPartitions | None:
    if callback is None:
        return None

    async def call(partitions: list[TopicPartition]) -> None:
        await asyncio.to_thread(callback, partitions)

    return call

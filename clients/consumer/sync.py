"""Consumers for code without an event loop: the same calls, which wait."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack, cast

from ringleader.clients.checks import seconds
from ringleader.clients.consumer.arguments import deserialized
from ringleader.clients.consumer.base import (
    LOOKUP_TIMEOUT_S,
    START_TIMEOUT_S,
    STOP_TIMEOUT_S,
    BaseConsumer,
)
from ringleader.clients.consumer.group import COMMIT_TIMEOUT_S, GroupConsumer
from ringleader.clients.consumer.partitions import PartitionConsumer
from ringleader.clients.errors import ClientError
from ringleader.clients.fetch.errors import (
    ConsumerClosedError,
    CorruptRecordError,
    RecordDeserializationError,
)
from ringleader.clients.fetch.model import (
    Batch,
    ConsumerMetrics,
    ConsumerSettings,
    FetchMetrics,
    Processed,
)
from ringleader.clients.group.callbacks.callers import LEAST_CLOSE_S
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.clients.options import (
    ConsumerOptions,
    OnPartitions,
    PartitionConsumerOptions,
    check_call,
    check_client,
)
from ringleader.clients.process.processing import Handler
from ringleader.clients.process.settings import ProcessOptions

logger = logging.getLogger("ringleader.clients.consumer")

LOOK_S = 1.0
"""A call that waits looks so often whether the loop's thread still runs."""

C = TypeVar("C", bound=BaseConsumer)
T = TypeVar("T")


class _Call(Generic[T]):
    """One call, on its way from the thread that makes it to the loop's and back.

    A signal handler may raise in the calling thread after any call of a function. So that thread takes no
    lock that the loop's thread needs: `concurrent.futures.Future` would.
    """

    __slots__ = ("_ended", "error", "result", "task", "thread", "work")

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self.work = work
        self.thread = threading.current_thread()
        self.task: asyncio.Task[None] | None = None
        self.result: T | None = None
        self.error: BaseException | None = None
        self._ended = threading.Lock()
        self._ended.acquire()

    # ---- in the loop's thread ----

    def begin(self) -> None:
        """Make it."""
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            # Not kept: it knows the question before, and that the one before it.
            work, self.work = self.work, _over
            self.result = await work()
        except BaseException as error:  # the loop has to go on, whatever it is
            self.error = error
        finally:
            self.task = None  # freed here: a signal handler that raised in its finalizer would be swallowed
            self._ended.release()

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        if self.task is not None:
            self.task.cancel()

    # ---- in the calling thread ----

    def wait(self, loop: asyncio.AbstractEventLoop, alive: Callable[[], bool]) -> bool:
        """Wait until it has ended. False: it never will, for the loop has."""
        try:
            while not self._ended.acquire(timeout=LOOK_S):
                if not alive():
                    return False
        except BaseException:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self.cancel)
            raise
        return True


async def _over() -> Any:
    raise AssertionError("a call is made once")


class _SyncConsumer(Generic[C]):
    """Runs a consumer in an event loop on a thread of its own.

    One thread asks for records at a time; the other methods may be called from any thread. A context manager:
    starts, and stops at the end. A signal handler may raise at any moment: no record is lost by that.
    """

    def __init__(self, consumer: C) -> None:
        self._consumer = consumer
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._asker: threading.Thread | None = None
        """The thread that is asking for records."""
        self._given: _Call[list[Batch]] | None = None
        """The last question whose answer has reached the application."""
        self._asking: set[asyncio.Task[Any]] = set()
        """Questions on their way. Belongs to the loop's thread."""

    # ---- its life ----

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._consumer._at_home():
            self.stop()

    def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Connect, and begin; does not wait for records. Raises as `GroupConsumer.start`."""
        self._consumer._check_process()
        if self._thread is not None:
            raise ConsumerClosedError(f"{self._consumer._name}: this consumer was started before")
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="consumer", daemon=True)
        try:
            self._thread.start()
            ready.wait()
            self._wait(lambda: self._consumer.start(timeout_s=timeout_s))
        except BaseException:
            self._end_thread(timeout_s)
            self._thread = None
            raise

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """As `GroupConsumer.stop`; from any thread, and more than once."""
        self._consumer._check_process()
        if self._loop is None:
            return
        deadline_s = time.monotonic() + seconds(timeout_s)
        with contextlib.suppress(ConsumerClosedError):  # another thread was faster
            self._wait(lambda: self._consumer.stop(timeout_s=timeout_s))
        self._end_thread(max(LEAST_CLOSE_S, deadline_s - time.monotonic()))

    def _run(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            self._loop = runner.get_loop()
            self._loop.call_soon(ready.set)
            self._loop.run_forever()

    def _end_thread(self, timeout_s: float) -> None:
        loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            with contextlib.suppress(RuntimeError):  # another thread was faster
                loop.call_soon_threadsafe(loop.stop)
            self._loop = None
            thread.join(timeout_s)
            if thread.is_alive():
                logger.warning("%s: a callback does not end: its thread is left behind", self._consumer._name)

    def _alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do it in the loop's thread."""
        return cast(T, self._made(_Call(work)).result)

    def _made(self, call: _Call[T], begin: Callable[[], None] | None = None) -> _Call[T]:
        """The call when it has ended well. Raises what it raised."""
        self._consumer._check_process()
        if (loop := self._loop) is None:
            raise self._consumer._closed()
        try:
            loop.call_soon_threadsafe(begin or call.begin)
        except RuntimeError:
            raise self._consumer._closed() from None
        if not call.wait(loop, self._alive):
            raise self._consumer._closed()
        if isinstance(call.error, asyncio.CancelledError):
            raise ConsumerClosedError(f"{self._consumer._name}: the call was cancelled") from call.error
        if call.error is not None:
            raise call.error
        return call

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        async def call() -> T:
            return function(*args)

        return self._wait(call)

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
            question: _Call[list[Batch]] = _Call(
                lambda: consumer._fetched(limit, timeout_s, several, question, given)
            )
            found = cast("list[Batch]", self._made(question, partial(self._begin, question)).result)
            question.result = None
            # Here, as a deserializer may take long, or care which thread it is in.
            batches, refused = deserialized(found, consumer.settings)
            raised = refused[0][1] if refused and not batches else None
            if refused:
                self._call(consumer._refuse, refused, raised)
            if raised is not None:
                raise raised
        finally:
            self._asker = None
        # Python lets a signal handler run when a function has been called. None is called from here on: the
        # caller has the records, or the question stays one whose answer nobody has got.
        self._given = question
        return batches

    # ---- in the loop's thread ----

    def _begin(self, question: _Call[list[Batch]]) -> None:
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

    def skip(self, error: CorruptRecordError | RecordDeserializationError) -> None:
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
        pattern: str | re.Pattern[str] | None = None,
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

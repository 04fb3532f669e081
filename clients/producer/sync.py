"""`SyncProducer`: the same as `Producer` for code without an event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from ringleader.clients.in_thread import InThread
from ringleader.clients.model import GroupMetadata, OffsetAndMetadata, Offsets, TopicPartition
from ringleader.clients.options import ProducerOptions, check_client
from ringleader.clients.produce.model import ProducerMetrics, ProducerSettings, RecordMetadata
from ringleader.clients.producer.producer import TRANSACTION_TIMEOUT_S, Producer
from ringleader.clients.producer.transaction import Transaction
from ringleader.protocol.records import Headers

if TYPE_CHECKING:
    from ringleader.clients.consumer import SyncGroupConsumer

AHEAD = 1_000
"""Records that are handed over to the thread before a caller waits for it."""


class _Sent(Future[RecordMetadata]):
    """The result of a record. Nobody sets it in a copy of the process: who waited there would wait for
    ever."""

    def __init__(self, check_process: Callable[[], None]) -> None:
        super().__init__()
        self._check_process = check_process

    def result(self, timeout: float | None = None) -> RecordMetadata:
        self._check_process()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._check_process()
        return super().exception(timeout)


class _Handed(NamedTuple):
    arguments: dict[str, Any]
    outcome: Future[RecordMetadata]


class SyncProducer(InThread[Producer]):
    """`Producer` for code without an event loop: `with SyncProducer(...) as producer`, then
    `producer.send(...)`. Takes the same arguments; it may be used from any thread."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        settings: ProducerSettings | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        """As `Producer`."""
        check_client("SyncProducer()", bootstrap, options, ProducerOptions)
        super().__init__(Producer(bootstrap, settings=settings, **options), "producer")
        self._handed: deque[_Handed] = deque()
        """Records on their way to the loop's thread."""
        self._accepting: asyncio.Task[None] | None = None

    def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Future[RecordMetadata]:
        """Hand a record over, and return what is done when a broker has confirmed it.

        Waits only while 1,000 records are on their way to the producer's thread, as they are when there is no
        room in `buffer_memory`. Serializers run in that thread. The result fails with what `Producer.send`
        raises, or its result. Records of one thread are written in the order of its calls. Raises
        ProducerClosedError.
        """
        self._client._check_process()
        if (loop := self._loop) is None:
            raise self._client._closed()
        arguments = {
            "topic": topic,
            "value": value,
            "key": key,
            "partition": partition,
            "headers": headers,
            "timestamp_ms": timestamp_ms,
        }
        outcome = _Sent(self._client._check_process)
        if len(self._handed) >= AHEAD:
            self._wait(self._accepted)
        self._handed.append(_Handed(arguments, outcome))
        try:
            loop.call_soon_threadsafe(self._accept)
        except RuntimeError:
            raise self._client._closed() from None
        return outcome

    def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """As `Producer.send_and_wait`. If a signal handler raises, the record may be on its way."""
        sent = self.send(
            topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        return self._wait(lambda: _confirmed(sent))

    def flush(self) -> None:
        """As `Producer.flush`."""
        self._wait(self._flush)

    def partitions(self, topic: str) -> int:
        """As `Producer.partitions`."""
        return self._wait(lambda: self._client.partitions(topic))

    # ---- transactions ----

    @contextmanager
    def transaction(self, consumer: SyncGroupConsumer | None = None) -> Iterator[None]:
        """As `Producer.transaction`, with `with`. All that threads send meanwhile belongs to it."""
        there = None if consumer is None else _Elsewhere(consumer)
        work = self._wait(partial(_entered, self._client, there))
        try:
            yield
        except BaseException as error:
            wrong = error
            if self._client._at_home():
                self._wait(lambda: self._left(work, wrong))
            raise
        self._wait(lambda: self._left(work, None))

    async def _left(self, work: Transaction, error: BaseException | None) -> None:
        await self._accepted()
        await work.__aexit__(None if error is None else type(error), error, None)

    def begin_transaction(self) -> None:
        """As `Producer.begin_transaction`."""
        self._call(self._client.begin_transaction)

    def send_offsets_to_transaction(
        self, offsets: Offsets, group: GroupMetadata, *, timeout_s: float = TRANSACTION_TIMEOUT_S
    ) -> None:
        """As `Producer.send_offsets_to_transaction`."""
        self._wait(lambda: self._client.send_offsets_to_transaction(offsets, group, timeout_s=timeout_s))

    def commit_transaction(self, *, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None:
        """As `Producer.commit_transaction`; a record that was refused before it was accepted has an error of
        its own, and is no part of it."""

        async def commit() -> None:
            await self._accepted()
            await self._client.commit_transaction(timeout_s=timeout_s)

        self._wait(commit)

    def abort_transaction(self, *, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None:
        """As `Producer.abort_transaction`."""

        async def abort() -> None:
            await self._accepted()
            await self._client.abort_transaction(timeout_s=timeout_s)

        self._wait(abort)

    def metrics(self) -> ProducerMetrics:
        """As `Producer.metrics`."""
        return self._client.metrics()

    # ---- in the loop's thread ----

    def _accept(self) -> None:
        if self._accepting is None and self._handed:
            self._accepting = asyncio.create_task(self._accept_all(), name="producer's hand")

    async def _accept_all(self) -> None:
        try:
            while self._handed:
                handed = self._handed.popleft()
                if not handed.outcome.set_running_or_notify_cancel():
                    continue
                try:
                    sent = await self._client.send(**handed.arguments)
                except BaseException as error:
                    handed.outcome.set_exception(error)
                    if not isinstance(error, Exception):
                        raise
                else:
                    sent.add_done_callback(_result_setter(handed.outcome))
        finally:
            self._accepting = None

    async def _accepted(self) -> None:
        """Wait until all that was handed over is accepted."""
        self._accept()
        if self._accepting is not None:
            await asyncio.wait([self._accepting])

    async def _flush(self) -> None:
        await self._accepted()
        await self._client.flush()

    async def _stop_client(self, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._accepted()
        except TimeoutError:
            pass
        await self._client.stop(timeout_s=timeout_s)
        while self._handed:
            self._handed.popleft().outcome.set_exception(self._client._closed())


class _Elsewhere:
    """A consumer that lives in another loop, as a transaction needs it."""

    def __init__(self, consumer: SyncGroupConsumer) -> None:
        self._there = consumer

    def _begin_transaction(self) -> None:
        self._there._call(self._there._consumer._begin_transaction)

    def _transaction_offsets(self) -> tuple[dict[TopicPartition, OffsetAndMetadata], GroupMetadata]:
        return self._there._call(self._there._consumer._transaction_offsets)

    def _end_transaction(self, committed: Offsets | None) -> None:
        self._there._call(self._there._consumer._end_transaction, committed)


async def _entered(producer: Producer, consumer: _Elsewhere | None) -> Transaction:
    return await Transaction(producer, consumer).__aenter__()


async def _confirmed(sent: Future[RecordMetadata]) -> RecordMetadata:
    """Here, as `sent.result()` in the caller's thread would keep a lock if a signal handler raised there."""
    return await asyncio.shield(asyncio.wrap_future(sent))


def _result_setter(outcome: Future[RecordMetadata]) -> Any:
    def tell(sent: asyncio.Future[RecordMetadata]) -> None:
        if (error := sent.exception()) is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(sent.result())

    return tell

"""`Producer`: writes records to Kafka topics, for asyncio. Idempotent; transactional on request."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

from ringleader.clients.checks import check, seconds
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import ClientError, RequestTimedOutError, RetriableError
from ringleader.clients.in_loop import START_TIMEOUT_S, STOP_TIMEOUT_S, Here, InLoop
from ringleader.clients.model import GroupMetadata, Offsets, checked
from ringleader.clients.options import ProducerOptions, check_client, cluster_of
from ringleader.clients.produce.errors import (
    ProduceError,
    ProducerClosedError,
    SendTimeoutError,
    SerializationError,
    TransactionAbortedError,
)
from ringleader.clients.produce.model import ProducerMetrics, ProducerSettings, RecordMetadata
from ringleader.clients.produce.rows import Row, size_bytes
from ringleader.clients.produce.sender import BatchSender, too_large
from ringleader.clients.produce.transactions import Transactions
from ringleader.clients.producer.records import row_of, row_with_context
from ringleader.clients.producer.transaction import Transaction
from ringleader.clients.with_context import close_all
from ringleader.protocol.records import Headers

if TYPE_CHECKING:
    from ringleader.clients.consumer import GroupConsumer

logger = logging.getLogger("ringleader.clients.produce")

CLIENT_ID = "ringleader-producer"
TRANSACTION_TIMEOUT_S = 60.0


class Producer(InLoop):
    """Writes records: `async with Producer(...) as producer`, then `await producer.send(...)`.

    Belongs to the event loop that called `start`; any number of its tasks may send.
    """

    _kind = "producer"
    _closed_error = ProducerClosedError

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        settings: ProducerSettings | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        """Does not connect yet. Raises TypeError for an option that there is not, ValueError for values that
        cannot work. `options`: see `ProducerSettings`, and `client_id`, `tls` and `sasl`."""
        call = "Producer()"
        check_client(call, bootstrap, options, ProducerOptions)
        given: dict[str, Any] = dict(options)
        names = ProducerSettings.__dataclass_fields__
        own = {name: value for name, value in given.items() if name in names}
        if settings is not None and own:
            raise ValueError(f"{call}: either settings or {', '.join(own)}")
        self.settings = ProducerSettings(**own) if settings is None else settings
        self._bootstrap = bootstrap
        self._connection = {name: value for name, value in given.items() if name not in names}
        self._client_id: str = self._connection.pop("client_id", CLIENT_ID)
        super().__init__(f"producer {self.settings.transactional_id or self._client_id!r}")
        self._cluster: Cluster | None = None
        self._sender: BatchSender | None = None
        self._accept: Callable[..., asyncio.Future[RecordMetadata] | None] = lambda *_record: None
        self._tasks: list[asyncio.Task[None]] = []
        self._now_ms = 0
        self._ms_ends_s = 0.0
        """Unix time, and when its millisecond is over by the monotonic clock."""
        serializers = self.settings.key_serializer, self.settings.value_serializer
        self._takes_bytes = serializers == (None, None)
        """Nearly all records are bytes already, and have nothing to wait for: they are sent in a third of the
        time."""
        self._open = 0
        """The process, while it is known that its loop runs it and that it takes records."""
        self._runs = False
        """Whether it was started, and none of its tasks has ended."""
        self._serializing = asyncio.Lock()

    # ---- its life ----

    async def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Connect, and get a producer id. With `transactional_id`: a producer that was started with it before
        is shut out, and its open transaction aborted.

        Raises ConnectionLostError when none of the bootstrap addresses can be reached within that time,
        AuthenticationError, RetriableError when no producer id could be had in time, FatalProducerError.
        """
        self._check_new()
        seconds(timeout_s)
        deadline_s = self._begin_here().time() + timeout_s
        cluster = cluster_of(
            self._bootstrap,
            self._connection,
            client_id=self._client_id,
            request_timeout_ms=self.settings.request_timeout_ms,
        )
        try:
            await cluster.ready(timeout_s)
            sender = BatchSender(cluster, self.settings)
            await sender.transactions.begin_identity(deadline_s)
        except BaseException:
            self._loop = None
            await cluster.close()
            raise
        self._cluster, self._sender = cluster, sender
        if self._takes_bytes:
            self._accept = cast(Any, sender.entrance.accept)
        works = [sender.run(), sender.topics.run()]
        self._tasks = [asyncio.create_task(work, name="producer") for work in works]
        self._runs = True
        for task in self._tasks:
            task.add_done_callback(self._task_ended)

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Write what was accepted, abort an open transaction, close the connections; what is not confirmed
        within that time fails with ProducerClosedError. May be called more than once."""
        seconds(timeout_s)
        self._check_process()
        sender = self._sender
        if sender is None or self._cluster is None:
            return
        self._check_loop()
        first, self._stopping = not self._stopping, True
        self._close()
        if not first:
            await asyncio.gather(*self._tasks, return_exceptions=True)
            return
        try:
            await self._end(sender, timeout_s)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            sender.drop(self._closed)
            await self._cluster.close()
            await close_all(self.settings.key_serializer, self.settings.value_serializer)

    def _task_ended(self, _task: asyncio.Task[None]) -> None:
        self._runs = False
        self._close()

    async def _end(self, sender: BatchSender, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                if sender.transactions.is_open:
                    sender.transactions.ending(commits=False)
                    await sender.drop_all(self._aborted)
                    await sender.transactions.end(False, self._deadline(timeout_s))
                await sender.flush()
        except (TimeoutError, ClientError) as error:
            logger.warning("%s: it ends before all was done: %r", self._name, error)

    # ---- records ----

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Accept a record, and return what is done when a broker has confirmed it.

        Waits for serializers that wait, for the topic to be known, and for room in `buffer_memory`, all
        within `max_block_ms`; a call that is cancelled meanwhile, or raises, sends nothing. Records of one
        partition are written in the order of the calls. `timestamp_ms`: Unix time; None: now. The result is
        the record's `RecordMetadata`; it fails with DeliveryTimeoutError, RecordTooLargeError or ProduceError
        (`code`). It does what an `asyncio.Future` does, but is no instance of it. A result that nobody waits
        for is sent all the same, and its failure is a line in the log.

        Raises SerializationError, UnknownPartitionError, RecordTooLargeError, SendTimeoutError, BrokerError
        about the topic, ProducerClosedError.
        """
        try:
            if self._open == Here.process:
                found = self._accept(topic, value, key, partition, headers, timestamp_ms)
                if found is not None:
                    return found
            if (
                self._open != Here.process
                or time.monotonic() >= self._ms_ends_s
                or threading.get_ident() != self._thread
            ):
                await self._begin_to_send()
            sender = self._running()
            if (
                self._takes_bytes
                and type(value) is bytes
                and (key is None or type(key) is bytes)
                and partition is None
                and not headers
                and timestamp_ms is None
                and type(topic) is str
            ):
                outcome = sender.add_now(topic, key, value, self._now_ms)
                if outcome is not None:
                    return cast("asyncio.Future[RecordMetadata]", outcome)
            at_ms = self._now_ms if timestamp_ms is None else timestamp_ms
            return await self._sent(sender, topic, value, key, partition, headers, at_ms)
        except Exception as error:
            if self._sender is not None:
                # A transaction without it must not be committed, whether or not the application looks.
                wrong = (
                    error if isinstance(error, ClientError) else ProduceError(f"a record failed: {error!r}")
                )
                self._sender.transactions.failed(wrong)
            raise

    async def _begin_to_send(self) -> None:
        """Raises what says why it does not run. The rest of this turn of the loop need not ask again."""
        self._running()
        if time.monotonic() >= self._ms_ends_s:
            await asyncio.sleep(0)  # an application that never waits lets the loop do its other work
            self._running()
            now_s = time.time()
            self._now_ms = int(now_s * 1000)
            left_s = (self._now_ms + 1) / 1000 - now_s
            self._ms_ends_s = time.monotonic() + left_s
            self._running().entrance.begin(self._now_ms, left_s)
        if self._open != Here.process:
            self._open = Here.process
            asyncio.get_running_loop().call_soon(self._close)

    def _close(self) -> None:
        self._open = 0

    async def _sent(
        self,
        sender: BatchSender,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: Headers,
        at_ms: int,
    ) -> asyncio.Future[RecordMetadata]:
        sender.transactions.check_accepts()
        deadline_s = self._deadline(self.settings.max_block_ms / 1000)
        given = self.settings, topic, value, key, partition, headers, at_ms
        if self.settings.with_context:
            row = await self._row(partial(row_with_context, *given), deadline_s)
        else:
            row = row_of(*given)
        size = size_bytes(row)
        if size > self.settings.buffer_memory:
            raise too_large(topic, size, "buffer_memory", self.settings.buffer_memory)
        target = await sender.topics.partition(topic, row.key, partition, size, deadline_s)
        if not sender.memory.take_now(size):
            await self._room(sender, size, deadline_s)
        # Nothing is awaited from here on: a call that is cancelled has sent the record, or not.
        try:
            self._running().transactions.check_accepts()
            found = sender.add((topic, target), row.key, row.value, row.headers, row.timestamp_ms, size)
            return cast("asyncio.Future[RecordMetadata]", found)
        except BaseException:
            sender.memory.give(size)
            raise

    async def _row(self, making: Callable[[], Coroutine[Any, Any, Row]], deadline_s: float) -> Row:
        """Of serializers that may wait: one record after the other, for they keep the order of the calls."""
        settings, why = self.settings, "other records are being serialized"
        backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random.random)
        try:
            async with asyncio.timeout_at(deadline_s), self._serializing:
                while True:
                    try:
                        return await making()
                    except SerializationError as error:
                        if not isinstance(error.__cause__, RetriableError):
                            raise
                        why = str(error)
                    await asyncio.sleep(backoff.next_ms() / 1000)
        except TimeoutError:
            raise SendTimeoutError(
                f"not serialized after {settings.max_block_ms} ms (max_block_ms): {why}"
            ) from None

    async def _room(self, sender: BatchSender, size: int, deadline_s: float) -> None:
        sender.wake()
        try:
            async with asyncio.timeout_at(deadline_s):
                await sender.memory.take(size)
        except TimeoutError:
            raise SendTimeoutError(
                f"no room for a record of {size} bytes after {self.settings.max_block_ms} ms (max_block_ms): "
                f"{sender.memory.used_bytes} bytes are not confirmed (buffer_memory)"
            ) from None

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> RecordMetadata:
        """`send` one record, and wait until a broker has confirmed it. A call that is cancelled then leaves
        the record on its way."""
        found = await self.send(
            topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
        )
        return await asyncio.shield(found)

    async def flush(self) -> None:
        """Send all that was accepted so far without waiting for more, and wait until each record of it is
        confirmed or has failed. Raises nothing about records: their results do."""
        await self._running().flush()

    async def partitions(self, topic: str) -> int:
        """The number of partitions of a topic. Raises SendTimeoutError, BrokerError."""
        sender = self._running()
        if (count := sender.topics.count(topic)) is None:
            now_s = asyncio.get_running_loop().time()
            await sender.topics.look(topic, now_s + self.settings.max_block_ms / 1000)
            count = sender.topics.count(topic) or 0
        return count

    # ---- transactions ----

    def transaction(self, consumer: GroupConsumer | None = None) -> Transaction:
        """`async with producer.transaction():` what is sent in the block becomes visible together, or never:
        its end commits, and an exception aborts. Raises RuntimeError without `transactional_id`.

        With a `consumer` the offsets of all that it has handed out become a part of it, under the consumer's
        present generation or epoch (KIP-447): so what is read, what is written and how far one is are there
        together. The consumer needs `auto_commit=False`. A rebalance waits for the end of the block as long
        as it may; if it cannot, the commit fails. After an abort the consumer hands out the same again.

        The end raises AbortableTransactionError when the transaction was aborted: do its work again;
        FatalProducerError (ProducerFencedError) when a new producer is needed.
        """
        self._transactional()
        return Transaction(self, consumer)

    def begin_transaction(self) -> None:
        """Everything that is sent from now on becomes visible together. Raises FatalProducerError,
        RuntimeError when a transaction is open."""
        self._transactional().begin()

    async def send_offsets_to_transaction(
        self, offsets: Offsets, group: GroupMetadata, *, timeout_s: float = TRANSACTION_TIMEOUT_S
    ) -> None:
        """Make a group's offsets a part of the transaction. `group`: `consumer.group_metadata()`.

        Raises CommitFailedError if the consumer is not what `group` says any more: abort then;
        AbortableTransactionError, FatalProducerError, and RetriableError when time is over.
        """
        transactions, deadline_s = self._transactional(), self._deadline(timeout_s)
        check("group", group, GroupMetadata, "send_offsets_to_transaction()")
        transactions.check_open()
        if wanted := checked(offsets):
            await transactions.send_offsets(wanted, group, deadline_s)

    async def commit_transaction(self, *, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None:
        """Write all that was sent, and make it visible.

        Raises AbortableTransactionError when that cannot be (a record of it has failed): abort then;
        FatalProducerError; RetriableError when time is over and the outcome is not known: call it again.
        """
        transactions, deadline_s = self._transactional(), self._deadline(timeout_s)
        transactions.ending(commits=True)
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._running().flush()
        except TimeoutError:
            text = f"{self._name}: not all is confirmed after {timeout_s:g} s: commit again, or abort"
            raise RequestTimedOutError(text) from None
        await transactions.end(True, deadline_s)

    async def abort_transaction(self, *, timeout_s: float = TRANSACTION_TIMEOUT_S) -> None:
        """Give up all that was sent: results that are open fail with TransactionAbortedError. Raises
        FatalProducerError; RetriableError when time is over: call it again."""
        transactions, deadline_s = self._transactional(), self._deadline(timeout_s)
        transactions.ending(commits=False)
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._running().drop_all(self._aborted)
        except TimeoutError:
            text = f"{self._name}: brokers have not answered within {timeout_s:g} s: abort again"
            raise RequestTimedOutError(text) from None
        await transactions.end(False, deadline_s)

    def _aborted(self) -> ClientError:
        return TransactionAbortedError(f"{self._name}: the transaction was aborted")

    def _transactional(self) -> Transactions:
        if self.settings.transactional_id is None:
            raise RuntimeError(f"{self._name}: a transaction needs a transactional_id")
        return self._running().transactions

    @staticmethod
    def _deadline(timeout_s: float) -> float:
        return asyncio.get_running_loop().time() + seconds(timeout_s)

    def metrics(self) -> ProducerMetrics:
        """The current counters."""
        sender = self._sender
        names = ("records", "failed_records", "bytes", "requests", "retries")
        counted = {name: getattr(sender, name, 0) for name in names}
        used = 0 if sender is None else sender.memory.used_bytes
        return ProducerMetrics(client_id=self._client_id, buffered_bytes=used, **counted)

    # ---- why not ----

    def _running(self) -> BatchSender:
        """Raises what says why it does not run."""
        if self._runs and not self._stopping and self._is_here() and self._sender is not None:
            return self._sender
        self._check_process()
        if self._sender is None or self._stopping:
            raise self._closed()
        self._check_loop()
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise ProducerClosedError(f"{self._name}: the producer cannot go on: {error!r}") from error
        return self._sender

    def _is_started(self) -> bool:
        return self._sender is not None

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(f"{self._name}: use this producer in the event loop that called start")

"""`async with producer.transaction(consumer)`: what is read, what is written and the progress, together."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from ringleader.clients.errors import ClientError, CommitFailedError, RetriableError
from ringleader.clients.model import GroupMetadata, Offsets
from ringleader.clients.offsets.consumed import ASSIGNMENT_WAIT_S
from ringleader.clients.offsets.group_offsets import OTHER_GENERATION
from ringleader.clients.produce.errors import AbortableTransactionError, FatalProducerError
from ringleader.clients.produce.model import RecordMetadata

if TYPE_CHECKING:
    from ringleader.clients.producer.producer import Producer

LOOK_S = 0.02


class Read(Protocol):
    """The consumer of a transaction."""

    def _begin_transaction(self) -> None:
        """From now on everything that is handed out can be put back."""

    def _transaction_offsets(self) -> tuple[Offsets, GroupMetadata]:
        """The positions behind all that was handed out, and who commits them."""

    def _end_transaction(self, committed: Offsets | None) -> None:
        """It is committed with these offsets, or everything comes again."""


class Transaction(AbstractAsyncContextManager["Transaction"]):
    """One transaction of a producer. Its end, commit or abort, is waited for even if the task is cancelled
    meanwhile."""

    def __init__(self, producer: Producer, consumer: Read | None) -> None:
        self._producer = producer
        self._consumer = consumer

    async def send(self, topic: str, value: Any = None, **options: Any) -> asyncio.Future[RecordMetadata]:
        """As `Producer.send`."""
        return await self._producer.send(topic, value, **options)

    async def __aenter__(self) -> Transaction:
        if self._consumer is not None:
            self._consumer._begin_transaction()
        try:
            self._producer.begin_transaction()
        except BaseException:
            if self._consumer is not None:
                self._consumer._end_transaction(None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._producer._at_home():
            if error is None:
                self._producer._check_process()
            return
        ending = asyncio.create_task(self._end(error), name="producer's transaction")
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Neither is the outcome left open, nor a record handed out again that is committed.
            await asyncio.wait([ending])
            if not ending.cancelled():
                ending.exception()
            raise

    async def _end(self, error: BaseException | None) -> None:
        if error is not None:
            await self._abort()
            return
        try:
            offsets = await self._offsets()
            await self._producer.commit_transaction()
        except FatalProducerError:
            self._take_back()
            raise
        except Exception as failed:
            if not self._producer._transactional().is_open:
                # Neither may the records come again here, nor count as done.
                raise self._over(f"nobody knows whether the transaction was committed: {failed}") from failed
            await self._abort()
            if isinstance(failed, AbortableTransactionError) or not isinstance(failed, ClientError):
                raise
            text = f"{self._producer._name}: the transaction was aborted: {failed}"
            raise AbortableTransactionError(text, failed.code) from failed
        if self._consumer is not None:
            self._consumer._end_transaction(offsets)

    async def _abort(self) -> None:
        """Abort, and let the consumer hand out the same again."""
        try:
            await self._producer.abort_transaction()
        except RetriableError as failed:
            raise self._over(f"the transaction could not be aborted: {failed}") from failed
        finally:
            self._take_back()

    def _take_back(self) -> None:
        if self._consumer is not None:
            self._consumer._end_transaction(None)

    def _over(self, why: str) -> FatalProducerError:
        """The producer has no known state any more."""
        error = FatalProducerError(f"{self._producer._name}: {why}. Make a new producer and a new consumer")
        self._producer._transactional().failed(error)
        return error

    async def _offsets(self) -> Offsets:
        """Make the consumer's offsets a part of it, and again if only a rebalance came between and the
        partitions stayed."""
        if self._consumer is None:
            return {}
        loop = asyncio.get_running_loop()
        used: GroupMetadata | None = None
        until_s = loop.time() + ASSIGNMENT_WAIT_S
        while True:
            offsets, group = self._consumer._transaction_offsets()
            if not offsets:
                return offsets
            if group == used and loop.time() < until_s:
                await asyncio.sleep(LOOK_S)
                continue
            try:
                await self._producer.send_offsets_to_transaction(offsets, group)
            except CommitFailedError as error:
                if error.code not in OTHER_GENERATION or loop.time() >= until_s:
                    raise
                used = group
            else:
                return offsets

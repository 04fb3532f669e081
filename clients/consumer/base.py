"""The common part of all consumers: asking for records, positions, pauses, offsets of the log."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from ringleader.clients.checks import check, offset_in_log, seconds, whole
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.consumer.arguments import Refused, deserialized, waited_for
from ringleader.clients.errors import AuthenticationError, ClientError, RetriableError
from ringleader.clients.fetch.baseline import Baseline
from ringleader.clients.fetch.errors import (
    ConsumerClosedError,
    CorruptRecordError,
    PartitionError,
    UnreadRecordError,
)
from ringleader.clients.fetch.model import Batch, ConsumerSettings
from ringleader.clients.fetch.positions import Committed
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.in_loop import START_TIMEOUT_S, STOP_TIMEOUT_S, InLoop
from ringleader.clients.model import EARLIEST, LATEST, TopicPartition, checked_partitions
from ringleader.clients.options import ConnectionOptions, MembershipOptions, cluster_of
from ringleader.clients.with_context import close_all

TURN_S = 0.001
"""An application that never waits lets the loop do its other work at this interval."""
CLIENT_ID = "ringleader-consumer"
LOOKUP_TIMEOUT_S = 30.0


class BaseConsumer(InLoop):
    """Reads what `_reader` is given. Belongs to the event loop that called `start`.

    One task asks for records at a time; the other methods may be called from any task of that loop.
    """

    _kind = "consumer"
    _closed_error = ConsumerClosedError

    def __init__(
        self,
        name: str,
        bootstrap: str | Sequence[str],
        settings: ConsumerSettings,
        connection: MembershipOptions | ConnectionOptions,
    ) -> None:
        """`name` begins the sentences of errors."""
        super().__init__(name)
        self.settings = settings
        self._bootstrap = bootstrap
        self._connection = connection
        self._client_id = connection.get("client_id", CLIENT_ID)
        self._reader: Reader | None = None
        self._baseline = Baseline()
        self._asker: asyncio.Task[Any] | None = None
        """The task that was given what is in hand; None: no task was."""
        self._question: object = None
        """The question whose answer is in hand."""
        self._asking = False
        self._only_asker: asyncio.Task[Any] | None = None
        """The task of `process`, as long as it runs."""
        self._last_turn_s = 0.0

    # ---- its life ----

    async def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Connect, and begin; does not wait for records.

        Raises ConnectionLostError when none of the bootstrap addresses can be reached within that time (nor
        those of `coordinator_bootstrap`: it says which),
        AuthenticationError, BrokerError for a topic that does not exist (PartitionConsumer).
        """
        self._check_new()
        deadline_s = time.monotonic() + seconds(timeout_s)
        self._begin_here()
        cluster = cluster_of(
            self._bootstrap,
            self._connection,
            client_id=self._client_id,
            request_timeout_ms=self.settings.request_timeout_ms,
        )
        try:
            await cluster.ready(timeout_s)
            if cluster.groups is not cluster:
                await cluster.groups.close()  # the member has connections of its own
            self._reader = Reader(cluster, self.settings, self._committed(), self._baseline)
            await self._begin(cluster, self._reader, max(0.0, deadline_s - time.monotonic()))
        except BaseException:
            self._loop = self._reader = None
            await cluster.close()
            raise
        self._reader.start()

    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End, with all connections. A batch in hand does not count as processed. May be called more than
        once."""
        reader = self._reader
        seconds(timeout_s)
        self._check_process()
        if reader is None:
            return
        self._check_loop()
        self._stopping = True
        reader.leave_alone()
        try:
            await self._end(timeout_s)
        finally:
            await reader.close()
            await close_all(self.settings.key_deserializer, self.settings.value_deserializer)

    @abstractmethod
    def _committed(self) -> Committed:
        """Where partitions are to be begun."""

    @abstractmethod
    async def _begin(self, cluster: Cluster, reader: Reader, timeout_s: float) -> None:
        """The bootstrap has been reached. Has so much time."""

    async def _end(self, timeout_s: float) -> None:
        """Before the connections are closed."""

    def _polled(self, now_s: float) -> None:
        """The application is asking."""

    def _over(self) -> ClientError | None:
        """The reason why there is nothing more to come, as far as a subclass knows."""
        return None

    def _tell_failure(self) -> None:
        """Raise what a callback raised, once."""

    def _in_callback(self) -> bool:
        """Whether the code that asks runs inside of a callback."""
        return False

    # ---- records ----

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        """The next batch of one partition, up to `max_poll_records`; partitions take turns. The batch before
        counts as processed. Ends when the consumer is stopped; raises what `getmany` raises."""
        batches = await self._ask(self.settings.max_poll_records, None, several=False)
        if not batches:
            raise StopAsyncIteration
        return batches[0]

    async def getone(self, timeout_s: float | None = None) -> Batch | None:
        """A batch of one record (`batch.record`); None when time is over. Earlier batches count as
        processed. Raises what `getmany` raises."""
        batches = await self._ask(1, timeout_s, several=False)
        if not batches and self._stopping:
            raise self._closed()
        return batches[0] if batches else None

    async def getmany(self, max_records: int | None = None, timeout_s: float | None = None) -> list[Batch]:
        """Batches of several partitions with up to `max_records` (`max_poll_records`) together, as soon as
        there are any; [] when time is over (None: waits as long as it takes; 0: what is there). Earlier
        batches count as processed.

        Raises PartitionError (CorruptRecordError, RecordDeserializationError, DeserializerUnavailableError,
        OffsetGoneError, NoOffsetError, ...) about one partition, CallbackFailedError once for each callback
        that raised, MembershipError when the membership is over, ConsumerClosedError; RuntimeError in another
        event loop than that of `start`, in a callback, and while another task asks.
        """
        limit = self.settings.max_poll_records if max_records is None else max_records
        batches = await self._ask(limit, timeout_s, several=True)
        if not batches and self._stopping:
            raise self._closed()
        return batches

    async def _ask(self, limit: int, timeout_s: float | None, *, several: bool) -> list[Batch]:
        batches = await self._fetched(limit, timeout_s, several)
        self._asker = asyncio.current_task()
        return batches

    async def _fetched(
        self,
        limit: int,
        timeout_s: float | None,
        several: bool,
        question: object = None,
        before: object = None,
        *,
        raw: bool = False,
    ) -> list[Batch]:
        """Batches in the application's hands: of one partition, or of several, together up to `limit`; as the
        deserializers made them, unless they are wanted `raw`.

        `before`: the last question whose answer has reached the application. Batches in hand for another one
        did not, and come again.
        """
        if whole("the number of records", limit) <= 0:
            raise ValueError("the number of records has to be above 0")
        if timeout_s is not None:
            seconds(timeout_s)
        self._check_process()
        if self._in_callback():
            raise RuntimeError("a callback cannot ask for records: what is in hand would count as processed")
        if self._asking or self._only_asker not in (None, asyncio.current_task()):
            raise RuntimeError("another task is asking this consumer for records")
        if self._reader is None:
            raise self._closed()
        self._check_loop()
        reader, self._asking = self._reader, True
        try:
            if question is not None and self._question is not before:
                reader.take_back()
            reader.processed()
            self._asker, self._question = None, question
            while True:
                batches = await self._picked(reader, limit, timeout_s, several)
                if raw or not batches:
                    return batches
                # If a deserializer has waited, their partitions may have moved on: then there is nothing of
                # them to hand out.
                waited = await waited_for(batches, self.settings) if self.settings.awaits else None
                read, refused = deserialized(batches, self.settings, waited)
                read = [batch for batch in read if batch.stands]
                refused = [(batch, error) for batch, error in refused if batch.stands]
                raised = refused[0][1] if refused and not read else None
                self._refuse(refused, raised)
                if read:
                    return read
                if raised is not None:
                    break
        except BaseException:  # of a deserializer, or a signal handler, too: nothing was handed out
            reader.take_back()
            raise
        finally:
            self._asking = False
        raise raised

    async def _picked(
        self, reader: Reader, limit: int, timeout_s: float | None, several: bool
    ) -> list[Batch]:
        first = await self._wait_for_records(reader, limit, timeout_s)
        batches = [] if first is None else [first]
        left = limit - sum(map(len, batches))
        while several and batches and left > 0 and (more := reader.pick_now(left)) is not None:
            batches.append(more)
            left -= len(more)
        return batches

    def _refuse(self, refused: Refused, raised: PartitionError | None) -> None:
        """`raised`: the error of them that is raised now."""
        if self._reader is not None:
            for batch, error in refused:
                self._reader.refuse(batch, error)
            if raised is not None:
                self._reader.reported(raised)

    async def _wait_for_records(self, reader: Reader, limit: int, timeout_s: float | None) -> Batch | None:
        now_s = time.monotonic()
        deadline_s = None if timeout_s is None else now_s + timeout_s
        if now_s - self._last_turn_s > TURN_S:
            await asyncio.sleep(0)
        keep_s = self.settings.max_poll_interval_ms / 3000
        while True:
            self._last_turn_s = time.monotonic()
            self._polled(self._last_turn_s)
            reader.something.clear()
            if self._stopping:
                return None
            self._check(reader)
            self._tell_failure()
            batch = await reader.pick(limit)
            if batch is not None:
                return batch
            left_s = None if deadline_s is None else deadline_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                return None
            try:
                async with asyncio.timeout(keep_s if left_s is None else min(left_s, keep_s)):
                    await reader.something.wait()
            except TimeoutError:
                pass

    # ---- why not ----

    def _is_started(self) -> bool:
        return self._reader is not None

    def _check(self, reader: Reader) -> None:
        if (over := self._over()) is not None:
            raise over
        if isinstance(reader.broken, AuthenticationError):
            raise reader.broken
        if reader.broken is not None:
            raise ConsumerClosedError(
                f"{self._name}: the consumer cannot go on: {reader.broken!r}"
            ) from reader.broken

    def _check_loop(self) -> None:
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self._loop:
            why = "its event loop has ended" if self._loop and self._loop.is_closed() else "not in this one"
            raise RuntimeError(
                f"{self._name}: use this consumer in the event loop and thread that called start ({why})"
            )

    def _running(self) -> Reader:
        """The reader of a consumer that runs. Raises what says why it does not."""
        self._check_process()
        reader = self._reader
        if reader is None or (self._stopping and not self._in_callback()):
            raise self._closed()
        self._check_loop()
        self._check(reader)
        return reader

    # ---- positions ----

    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer reads now, sorted."""
        self._check_process()
        return [] if self._reader is None else sorted(self._reader.states)

    async def position(self, partition: TopicPartition, *, timeout_s: float = LOOKUP_TIMEOUT_S) -> int:
        """Offset of the next record to be handed out. Waits until it is known; raises NotAssignedError,
        PartitionError, and RetriableError when time is over."""
        reader = self._running()
        try:
            async with asyncio.timeout(seconds(timeout_s)):
                while (found := reader.position_of(partition)) is None:
                    if self._stopping:
                        raise self._closed()
                    await reader.moved()
                    self._running()
        except TimeoutError:
            name = f"{partition[0]}-{partition[1]}"
            raise RetriableError(f"the position of {name} is not known within {timeout_s:g} s") from None
        return found

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read on at that offset. Records for the position before, fetched or on their way, are never
        handed out. A batch of it that is in hand is not counted as processed any more. Raises
        NotAssignedError."""
        offset_in_log("an offset", offset)
        self._running().seek(partition, offset)

    def skip(self, error: CorruptRecordError | UnreadRecordError) -> None:
        """Read on behind what that error is about: exactly the record that a deserializer did not read, or
        the batch that cannot be read. Does nothing if the partition does not stand there any more. Raises
        NotAssignedError."""
        check("error", error, CorruptRecordError | UnreadRecordError, "skip()")
        self._running().skip(error)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on at the first record there is; all partitions when none is named."""
        reader = self._running()
        for partition in partitions or self.assignment():
            reader.seek_by_time(partition, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read on behind the last record there is; all partitions when none is named."""
        reader = self._running()
        for partition in partitions or self.assignment():
            reader.seek_by_time(partition, LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until `resume`. Fetched records are kept."""
        reader = self._running()
        for partition in partitions:
            reader.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these."""
        reader = self._running()
        for partition in partitions:
            reader.resume(partition)

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused, sorted."""
        self._check_process()
        states = {} if self._reader is None else self._reader.states
        return sorted(partition for partition, state in states.items() if state.paused)

    def _figures(self) -> dict[str, Any]:
        reader = self._reader
        fetcher = None if reader is None else reader.fetcher
        states = [] if reader is None else list(reader.states.items())  # a copy: any thread may ask
        counted = {name: getattr(reader, name, 0) for name in ("records", "batches")}
        fetched = ("fetches", "failed_fetches", "fetched_bytes", "buffered_bytes")
        counted |= {name: getattr(fetcher, name, 0) for name in fetched}
        lags = {partition: lag for partition, state in states if (lag := state.lag) is not None}
        return {"client_id": self._client_id, "lags": lags, **counted}

    async def lag(self, *, timeout_s: float = LOOKUP_TIMEOUT_S) -> dict[TopicPartition, int]:
        """Offsets between the position and the present end of the log, of each partition whose position is
        known. Raises BrokerError, RetriableError."""
        states = self._running().states
        positions = {tp: state.position for tp, state in states.items() if state.position is not None}
        ends = await self.end_offsets(positions, timeout_s=timeout_s)
        return {tp: max(0, ends[tp] - position) for tp, position in positions.items()}

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """First offsets of any partitions. Raises BrokerError, RetriableError."""
        return await self._bounds(partitions, EARLIEST, timeout_s)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, int]:
        """Offsets of the next records of any partitions; with `read_committed` those of the first open
        transaction. Raises BrokerError, RetriableError."""
        return await self._bounds(partitions, LATEST, timeout_s)

    async def _bounds(
        self, partitions: Iterable[TopicPartition], at: int, timeout_s: float
    ) -> dict[TopicPartition, int]:
        wanted = checked_partitions(partitions)
        found = await self._running().offsets(dict.fromkeys(wanted, at), seconds(timeout_s))
        return {partition: offset for partition, (offset, _) in found.items()}

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], *, timeout_s: float = LOOKUP_TIMEOUT_S
    ) -> dict[TopicPartition, tuple[int, int] | None]:
        """(offset, timestamp) of the first record at or after a time, in ms since 1970; None: there is none.
        Raises BrokerError, RetriableError."""
        checked_partitions(times)
        for time_ms in times.values():
            offset_in_log("a time in ms", time_ms)
        found = await self._running().offsets(times, seconds(timeout_s))
        return {partition: None if at[0] < 0 else at for partition, at in found.items()}

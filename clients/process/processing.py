"""One run of `process`: records are taken from a reader, given to handlers, and counted as done."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.fetch.errors import (
    CorruptRecordError,
    DeserializerUnavailableError,
    UnreadRecordError,
)
from ringleader.clients.fetch.model import Batch, Record
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.metrics import ProcessMetrics
from ringleader.clients.model import TopicPartition
from ringleader.clients.process.lanes import Lanes, Work
from ringleader.clients.process.policies import (
    DeadLetter,
    FailedRecord,
    RecordTimedOutError,
    Retry,
    RetryTopics,
    Skip,
    Stop,
    policy_for,
)
from ringleader.clients.process.retry_topics import as_it_was, first_record, wait_s
from ringleader.clients.process.settings import ProcessSettings
from ringleader.clients.with_context import is_async

logger = logging.getLogger("ringleader.clients.consumer")

Handler = Callable[[Record], Any]
Ask = Callable[[int], Awaitable[list[Batch]]]
"""Asks for at most that number of records; nothing when the consumer is stopped."""

REACH_S = 0.1
"""How old what the group commits may be."""
DRAIN_S = 30.0
"""Handlers that run when one of them has raised may come to their end within that time."""


class Processing:
    """Belongs to the loop of its consumer. `run` returns when the consumer is stopped."""

    def __init__(
        self, name: str, reader: Reader, handler: Handler, settings: ProcessSettings, counts: Counter[str]
    ) -> None:
        """`name` begins the sentences of log lines; `counts` goes on from run to run."""
        self._name = name
        self._reader = reader
        self._handler = handler
        self._settings = settings
        self._counts = counts
        self._retry_topics = settings.retry_topics
        self._lanes = Lanes()
        self._tasks: dict[asyncio.Task[None], Work] = {}
        self._resting: dict[Work, asyncio.TimerHandle] = {}
        self._waiting: dict[PartitionState, int] = {}
        """How many records of a partition are asked for and not done."""
        self._held: dict[PartitionState, asyncio.TimerHandle] = {}
        """Partitions whose next record has to wait."""
        self._unavailable: dict[PartitionState, tuple[int, int, Backoff]] = {}
        """The offset for which a deserializer was not available, how often, and the pauses."""
        self._bytes = 0
        self._changed: set[PartitionState] = set()
        self._reaching: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self._error: BaseException | None = None
        self._over = False
        self._drain_s = DRAIN_S
        self._inside: set[int] = set()
        """Threads that are in a handler."""
        self._threads: Executor | None = None
        if not is_async(handler):
            self._threads = settings.executor or ThreadPoolExecutor(settings.concurrency, "process")

    async def run(self, ask: Ask) -> None:
        """Process records until the consumer is stopped. Raises what a handler raised, if no policy takes
        it, and what `ask` raises. Handlers that run then may come to their end; if it is cancelled, they
        are, too."""
        try:
            while await self._until_room():
                try:
                    batches = await ask(self._most())
                    if not batches:
                        break
                    self._take(batches)
                except (CorruptRecordError, UnreadRecordError) as error:
                    await self._refused(error)
            await self.drain(self._drain_s)
            self.check()
        except asyncio.CancelledError:
            await self.drain(0)
            raise
        except BaseException:
            await self.drain(self._drain_s)
            raise
        finally:
            self._end()

    def check(self) -> None:
        """Raise what a handler raised."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def inside(self) -> bool:
        """Whether the code that asks is a handler, in the loop's thread or in one of its own."""
        if threading.get_ident() in self._inside:
            return True
        return current_task() in self._tasks

    def metrics(self) -> ProcessMetrics:
        """The current figures."""
        waiting = sum(self._waiting.values())
        return process_metrics(self._counts, waiting, len(self._tasks), len(self._resting))

    async def drain(self, timeout_s: float) -> None:
        """Begin nothing more, and wait for the handlers that run; cancel them when that time is over. `run`
        gives them that time, too: it may come to its own end meanwhile."""
        self._over = True
        self._drain_s = timeout_s
        self.drop(self._reader.states)
        self._reader.something.set()
        self._room.set()
        others = self._tasks.keys() - {asyncio.current_task()}
        if others and timeout_s:
            await asyncio.wait(others, timeout=timeout_s)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    # ---- records come ----

    def _left(self) -> int:
        return self._settings.max_waiting_records - sum(self._waiting.values())

    def _most(self) -> int:
        """How many to ask for."""
        if not self._reader.states:
            return 1  # it is not known yet which partitions there are to share the room
        return min(self._left(), max(1, self._share() // 2))

    def _share(self) -> int:
        """The most records that wait of one partition: a slow one leaves room for the others."""
        most, partitions = self._settings.max_waiting_records, len(self._reader.states)
        return max(most // max(1, partitions), min(self._settings.concurrency, most // 2), 1)

    async def _until_room(self) -> bool:
        """Whether there is some; false at the end."""
        while not self._over and (self._left() <= 0 or self._bytes >= self._settings.max_waiting_bytes):
            self._room.clear()
            await self._room.wait()
            self.check()
        return not self._over

    def _take(self, batches: Iterable[Batch]) -> None:
        order = self._settings.order
        for batch in batches:
            try:
                if batch.topic in self._retry_topics and not self._due(batch):
                    continue
                state, records = self._reader.begin(batch)
            except CorruptRecordError:
                continue  # raised again when more is asked for
            raw = dict(zip(batch.offsets, batch.raw, strict=True))
            for record in records:
                key, value = raw[record.offset]
                lane = key if order == "key" else None if order == "none" else ""
                size = len(key or b"") + len(value or b"")
                self._lanes.add(Work(record, state, state.progress, lane, size, (key, value)))
                self._bytes += size
            self._count(state, len(records))
        self._reader.processed()  # what is in progress says how far each partition is
        self._start()

    def _due(self, batch: Batch) -> bool:
        """Whether a record of it is due. Those that are not stay in the log, and hold that partition only."""
        for row, headers in enumerate(batch.headers):
            if (left_s := wait_s(headers)) > 0:
                state = self._reader.states.get(batch.topic_partition)
                self._reader.put_off(batch, batch.offsets[row])
                batch.end_before(row)
                if state is not None:
                    self._hold(state, left_s)
                return row > 0
        return True

    def _count(self, state: PartitionState, more: int) -> None:
        waiting = self._waiting[state] = self._waiting.get(state, 0) + more
        if not waiting:
            del self._waiting[state]
        share = self._share()
        self._reader.fill(state, waiting > share - max(1, share // 2))

    async def _refused(self, error: CorruptRecordError | UnreadRecordError) -> None:
        """Records that cannot be read, or not now."""
        state = self._reader.states.get((error.topic, error.partition))
        if isinstance(error, UnreadRecordError) and error.topic in self._retry_topics:
            left_s = wait_s(error.headers)
            if left_s > 0 and state is not None:
                self._hold(state, left_s)
                return
        policy = policy_for(error, self._settings.failures)
        if isinstance(policy, Retry):
            if isinstance(error, DeserializerUnavailableError) and self._retried_later(error, policy):
                return
            policy = policy.then
        failed = None
        if isinstance(error, UnreadRecordError):
            place = error.topic, error.partition, error.offset or 0
            record = Record(*place, error.timestamp_ms, None, error.key, error.value, error.headers)
            failed = FailedRecord(record, error, 0, error.key, error.value)
        if not await self._given_up(policy, failed, error):
            raise error
        self._counts["records_done"] += 1
        self._reader.skip(error)

    def _retried_later(self, error: DeserializerUnavailableError, policy: Retry) -> bool:
        """Whether the deserializer is to be asked again after a pause."""
        state = self._reader.states.get((error.topic, error.partition))
        if state is None:
            return True  # the partition is gone, and the record with it
        at = error.offset or 0
        before, tries, pauses = self._unavailable.get(state, (-1, 0, policy.pauses()))
        if before != at:
            tries, pauses = 0, policy.pauses()
        if tries >= policy.times:
            del self._unavailable[state]
            return False
        self._unavailable[state] = at, tries + 1, pauses
        pause_s = pauses.next_ms() / 1000
        logger.info("%s: it is asked again in %.1f s: %s", self._name, pause_s, error)
        self._hold(state, pause_s)
        return True

    def _hold(self, state: PartitionState, pause_s: float) -> None:
        self._let_go(state)
        self._reader.hold(state, True)
        self._held[state] = asyncio.get_running_loop().call_later(pause_s, self._let_go, state)

    def _let_go(self, state: PartitionState) -> None:
        if (timer := self._held.pop(state, None)) is not None:
            timer.cancel()
            self._reader.hold(state, False)

    async def _given_up(
        self,
        policy: Stop | Skip | DeadLetter | RetryTopics,
        failed: FailedRecord | None,
        error: Exception,
    ) -> bool:
        """Whether the policy counts it as done. `failed`: None for a batch that cannot be read."""
        where = self._name if failed is None else f"{self._name}: {_place(failed.record)}"
        if isinstance(policy, RetryTopics) and failed is not None:
            if await policy.put_off(failed):
                self._counts["records_put_off"] += 1
                logger.info("%s: it is tried again later: %r", where, error)
                return True
            policy = policy.then
        if failed is not None and failed.record.topic in self._retry_topics:
            failed = as_it_was(failed)
        if isinstance(policy, Skip):
            self._counts["records_skipped"] += 1
            logger.warning("%s: skipped: %s", where, error, exc_info=error)
            return True
        if isinstance(policy, DeadLetter) and failed is not None:
            await _awaited(policy.send(failed))
            self._counts["dead_letters"] += 1
            logger.warning("%s: a dead letter: %r", where, error)
            return True
        return False

    # ---- handlers ----

    def _start(self) -> None:
        while len(self._tasks) < self._settings.concurrency and (work := self._lanes.next()) is not None:
            self._reader.take_up(work.state)
            task = asyncio.get_running_loop().create_task(self._process(work), name="handler")
            self._tasks[task] = work
            task.add_done_callback(self._ended)

    async def _process(self, work: Work) -> None:
        work.tries += 1
        try:
            if await self._worked(work):
                work.progress.done(work.record.offset)
                self._lanes.end(work)
                self._counts["records_done"] += 1
        except asyncio.CancelledError as error:
            if not self._over:  # the handler alone did that
                self._fail(RuntimeError(f"the handler of {self._name} cancelled itself: {error!r}"))
        except BaseException as error:  # sys.exit() in a handler, too: it would end the loop under all others
            self._fail(error)
        finally:
            if work not in self._resting:
                self._forget(work)

    async def _worked(self, work: Work) -> bool:
        """Whether the record is done; if not, it is tried again."""
        try:
            put_off = work.record.topic in self._retry_topics
            await self._call(first_record(work.record) if put_off else work.record)
        except Exception as error:
            return await self._settled(work, error)
        return True

    async def _call(self, record: Record) -> None:
        limit_s = self._settings.record_timeout_s
        if self._threads is None:
            try:
                async with asyncio.timeout(limit_s) as limit:
                    await self._handler(record)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise self._late(record) from None
            return
        call = self._handler if self._threads is self._settings.executor else self._in_thread
        running = asyncio.get_running_loop().run_in_executor(self._threads, call, record)
        done, _ = await asyncio.wait((running,), timeout=limit_s)
        if not done:
            running.add_done_callback(_retrieve_error)
            raise self._late(record)
        await _awaited(running.result())

    def _in_thread(self, record: Record) -> Any:
        me = threading.get_ident()
        self._inside.add(me)
        try:
            return self._handler(record)
        finally:
            self._inside.discard(me)

    def _late(self, record: Record) -> RecordTimedOutError:
        limit_s = self._settings.record_timeout_s
        return RecordTimedOutError(f"{_place(record)}: the handler did not end within {limit_s:g} s")

    async def _settled(self, work: Work, error: Exception) -> bool:
        """Whether the record counts as done, though its handler raised."""
        self._counts["calls_failed"] += 1
        policy = policy_for(error, self._settings.failures)
        if isinstance(policy, Retry):
            if work.tries <= policy.times:
                work.pauses = work.pauses or policy.pauses()
                self._rest(work, work.pauses.next_ms() / 1000, error)
                return False
            policy = policy.then
        if await self._given_up(policy, FailedRecord(work.record, error, work.tries, *work.raw), error):
            return True
        error.add_note(f"raised by the handler of {self._name} for {_place(work.record)}")
        raise error

    def _rest(self, work: Work, pause_s: float, error: Exception) -> None:
        where = _place(work.record)
        logger.info("%s: %s is tried again in %.1f s: %r", self._name, where, pause_s, error)
        self._lanes.rest(work)
        if work.state.suspended or self._over:
            return  # it is not begun any more: it comes again
        self._resting[work] = asyncio.get_running_loop().call_later(pause_s, self._again, work)

    def _again(self, work: Work) -> None:
        del self._resting[work]
        self._lanes.again(work)
        self._start()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        self._over = True
        self._room.set()
        self._reader.something.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        work = self._tasks.pop(task)
        if work.state.running == 1:
            self.reach()  # a rebalance may wait for it
        elif self._reaching is None:
            self._reaching = asyncio.get_running_loop().call_later(REACH_S, self.reach)
        self._reader.put_down(work.state)
        if not self._over:
            self._start()

    def _forget(self, work: Work) -> None:
        """It is in progress no more."""
        self._changed.add(work.state)
        self._bytes -= work.size_bytes
        self._count(work.state, -1)
        self._room.set()

    # ---- how far it is ----

    def reach(self) -> None:
        """All that is done counts as processed from now on."""
        if self._reaching is not None:
            self._reaching.cancel()
            self._reaching = None
        for state in self._changed:
            if not state.in_hand:
                state.reach()
        self._changed.clear()

    # ---- the end, of a partition or of all ----

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin nothing more of these: what no handler has comes again, here or at another member."""
        removed = set(partitions)
        dropped = self._lanes.drop(removed) | {
            work for work in self._resting if work.state.topic_partition in removed
        }
        for work in dropped:
            if (timer := self._resting.pop(work, None)) is not None:
                timer.cancel()
            self._forget(work)
        for state in [state for state in self._held if state.topic_partition in removed]:
            self._let_go(state)
        self._unavailable = {
            state: one for state, one in self._unavailable.items() if state.topic_partition not in removed
        }

    def _end(self) -> None:
        """Nothing is in progress any more: `drain` has waited for all, and so no partition has enough."""
        self._over = True
        self.reach()
        for state in list(self._reader.states.values()):
            if len(state.progress):
                self._reader.go_back(state)
        if self._threads is not None and self._threads is not self._settings.executor:
            assert isinstance(self._threads, ThreadPoolExecutor)
            self._threads.shutdown(wait=False, cancel_futures=True)


def process_metrics(
    counts: Counter[str], waiting: int = 0, running: int = 0, resting: int = 0
) -> ProcessMetrics:
    """The figures of all runs, and of the present one."""
    names = ("records_done", "calls_failed", "records_skipped", "dead_letters", "records_put_off")
    return ProcessMetrics(waiting, running, resting, *(counts[name] for name in names))


def _place(record: Record) -> str:
    return f"{record.topic}-{record.partition} at offset {record.offset}"


def current_task() -> asyncio.Task[Any] | None:
    """The task that runs here; None outside of any loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


async def _awaited(result: Any) -> None:
    """Of a coroutine function, or a plain one."""
    if inspect.isawaitable(result):
        await result


def _retrieve_error(late: asyncio.Future[Any]) -> None:
    if not late.cancelled():
        late.exception()

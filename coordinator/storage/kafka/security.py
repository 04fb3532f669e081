"""Users, ACLs and quotas of several nodes: a compacted topic of the cluster, which every node reads to its
end before it listens, and follows from then on.

A change is one batch, so that all of it counts or nothing. The caller is answered when all replicas in sync
have it and this node has read it back: where two nodes change the same entry, the order of the topic decides,
and all agree. While the cluster does not answer, the last entries that were read count, and nothing is
changed."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.coordinator.logs import Log, get_log
from ringleader.coordinator.security.records import Entry, entry_of, record_of, secret_record
from ringleader.coordinator.security.store import (
    MAX_BYTES,
    SECRET_BYTES,
    SECTIONS,
    Changed,
    Section,
    SecurityStore,
    larger,
    merged,
    size_of,
)
from ringleader.coordinator.storage.base import Failure, Record, StorageError
from ringleader.coordinator.storage.kafka.asking import check, until
from ringleader.coordinator.storage.kafka.replay import BeyondEndError, Replay
from ringleader.coordinator.storage.kafka.topic import SecurityTopic
from ringleader.coordinator.storage.kafka.writer import RECORD_BYTES, Sender, Writer, uptime_s
from ringleader.coordinator.topics.disk import DamagedError
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import InitProducerIdRequest
from ringleader.protocol.records import iter_batches

START_TIMEOUT_S = 30.0
"""A start fails if the cluster does not answer for this time."""
CHANGE_TIMEOUT_S = 15.0
"""A change that is not made and read back in this time is refused, and may be made all the same."""
LAST_WORD_S = 0.5
"""Time after that in which the reason may still come."""
TAIL_TIMEOUT_S = 5.0
"""Time without an answer about what is new after which the cluster counts as away, which is a log line."""
AGAIN_S = 1.0
"""Before it is asked again."""
REPORT_AGAIN_S = 60.0
"""Time between two log lines that it is still away."""
LOOK_S = 10.0
"""Time between two questions for the partition's leader: a former one might still answer."""
REREAD_S = 3_600.0
"""A node that was away for longer reads everything again: removals are not kept for ever."""
CLOSE_TIMEOUT_S = 2.0
"""Time for changes on their way when the node stops."""
REPLICATE_MS = 5_000
"""How long a broker may take to have a change on all replicas in sync before it is sent again."""
TRANSACTION_TIMEOUT_MS = 60_000
"""InitProducerId requires a value; there are no transactions."""
MOST_BYTES = 2 * MAX_BYTES
"""More is not read: nodes that change something at once may pass MAX_BYTES a little."""

_Sections = dict[Section, dict[str, Any]]


class TopicStore(SecurityStore):
    """See `SecurityStore`. All nodes with this topic have the same entries."""

    repair = "overwrite or remove its record in the topic, or run the version that wrote it"

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        replication_factor: int,
        on_failed: Callable[[Exception], None] | None = None,
        log: Log | None = None,
        secret: bytes = b"",
    ) -> None:
        """`cluster`: its maker closes it. `replication_factor`: when the topic is made. `secret`: that
        of a topic that has none; random bytes else."""
        super().__init__(on_failed)
        self._cluster = cluster
        self._topic = SecurityTopic(topic, replication_factor, MAX_BYTES)
        self._log = log or get_log()
        self._first_secret = secret or secrets.token_bytes(SECRET_BYTES)
        self._sender = Sender(cluster, topic, REPLICATE_MS, float("inf"))
        self._leaders = self._sender.leaders
        self._replay = Replay(self._leaders, topic)
        self._next_offset = 0
        """Everything before it counts."""
        self._advanced = asyncio.Event()
        """Set, and replaced, when it has moved, or will not move any more."""
        self._turn = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self._background: set[asyncio.Task[None]] = set()

    def __str__(self) -> str:
        return f"topic {self._topic.name}"

    def __repr__(self) -> str:
        return f"TopicStore({self._topic.name!r})"

    # ---- life ----

    async def start(self) -> None:
        """Make the topic if it is missing, check it, and read it to its end. Raises StorageError, and
        DamagedError for a record that cannot be read, or that a newer version has written."""
        deadline_s = asyncio.get_running_loop().time() + START_TIMEOUT_S
        self._leaders.learn(await self._topic.found(self._cluster, deadline_s))
        self._sections, self._bytes, self._next_offset = await self._read_all()
        self._run(self._background, self._tail())
        self._run(self._background, self._look())
        if not self.secret:
            # Where several nodes make one, the last in the topic counts, for all of them.
            await self._write([secret_record(self._first_secret)], deadline_s)

    async def close(self) -> None:
        """See `SecurityStore`. A change that the cluster does not acknowledge soon may be made, or not."""
        if self._changes:
            await asyncio.wait(self._changes, timeout=CLOSE_TIMEOUT_S)
        self._failure = self._failure or "the node stops"
        tasks = self._changes | self._background
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._sender.close()

    def _run(
        self, tasks: set[asyncio.Task[None]], coroutine: Coroutine[Any, Any, None]
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # perhaps nobody waits
        return task

    # ---- changes ----

    async def change(self, section: Section, entries: Changed) -> None:
        """See `SecurityStore`."""
        await asyncio.shield(self._run(self._changes, self._change(section, entries)))

    async def _change(self, section: Section, entries: Changed) -> None:
        deadline_s = asyncio.get_running_loop().time() + CHANGE_TIMEOUT_S
        try:
            async with asyncio.timeout_at(deadline_s + LAST_WORD_S), self._turn:
                if self._failure:
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
                larger(self._bytes, self._sections[section], entries)
                records = [record_of(section, key, value) for key, value in entries.items()]
                if records:
                    await self._write(records, deadline_s)
        except TimeoutError:
            text = f"{self}: the cluster did not answer in time, and the change may be made all the same"
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, text) from None
        except StorageError as error:
            away = error.failure in (Failure.AWAY, Failure.CLOSED)
            code = ErrorCode.REQUEST_TIMED_OUT if away else ErrorCode.KAFKA_STORAGE_ERROR
            raise KafkaError(code, str(error)) from error

    async def _write(self, records: Sequence[Record], deadline_s: float) -> None:
        """Returns when this node has read it back."""
        size = sum(len(key) + len(value or b"") + RECORD_BYTES for key, value in records)
        if size > MAX_BYTES:
            text = f"a change has {MAX_BYTES:,} bytes at most, and this one {size:,}: make it in parts"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
        # A producer for each change: there are few, and none that the cluster could have forgotten.
        producer_id, epoch = await until(deadline_s, f"writing to {self}", self._producer)
        writer = Writer(0, str(self), producer_id, epoch, uptime_s())
        try:
            written = writer.add(records, deadline_s)
            self._sender.ready(writer)
            end = await written + len(records)
        finally:
            writer.end(Failure.CLOSED, "the change was given up")
        while self._next_offset < end:
            if self._failure:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
            await self._advanced.wait()

    async def _producer(self) -> tuple[int, int]:
        request = plain(InitProducerIdRequest(None, TRANSACTION_TIMEOUT_MS))
        answer = await self._leaders.ask_any(request, "append")
        check(answer.error_code, None, f"Write on topic {self._topic.name}")
        return answer.producer_id, answer.producer_epoch

    # ---- reading ----

    async def _read_all(self) -> tuple[_Sections, int, int]:
        """All sections, their size, and the offset behind what is there now; the secret, too. Raises
        StorageError, DamagedError."""
        loop, doing = asyncio.get_running_loop(), f"reading {self}"
        end = await until(loop.time() + START_TIMEOUT_S, doing, partial(self._replay.end, 0))
        sections: _Sections = {section: {} for section in SECTIONS}
        size = offset = 0
        while offset < end:
            fetch = partial(self._replay.fetch, 0, offset)
            offset, data = await until(loop.time() + START_TIMEOUT_S, doing, fetch)
            read = self._read(data, offset)
            size = self._size_with(size, sections, read.changed)
            for section, entries in read.changed.items():
                sections[section] = merged(sections[section], entries)
            self.secret = read.secret or self.secret
            offset = read.next_offset
        return sections, size, offset

    async def _tail(self) -> None:
        """A record that cannot be read is not skipped: the node ends."""
        try:
            await self._follow()
        except Exception as error:
            reason = str(error) if isinstance(error, DamagedError) else repr(error)
            self._log.error("users, ACLs and quotas cannot be followed any more", reason=reason)
            self._fail(error)
            self._advanced.set()

    async def _follow(self) -> None:
        heard_s = reported_s = uptime_s()
        away = False
        while True:
            requested_s = uptime_s()
            try:
                await self._next(afresh=requested_s - heard_s > REREAD_S)
            except StorageError as error:
                if isinstance(error.__cause__, BeyondEndError):
                    raise self._lost() from error
                now_s = uptime_s()
                if not away or now_s - reported_s > REPORT_AGAIN_S:
                    away, reported_s = True, now_s
                    for_s = round(now_s - heard_s)
                    self._log.warning(
                        "users, ACLs and quotas are not current", for_s=for_s, reason=str(error)
                    )
                await asyncio.sleep(AGAIN_S)
            else:
                heard_s = requested_s  # who slept meanwhile has heard nothing of that time
                if away:
                    away = False
                    self._log.info("users, ACLs and quotas are current")

    async def _next(self, *, afresh: bool) -> None:
        """New records, if some come in a moment; or all of them again. Raises StorageError,
        DamagedError, and what observers raise."""
        if afresh:
            sections, self._bytes, offset = await self._read_all()
            changed = {name: _changes(self._sections[name], sections[name]) for name in SECTIONS}
        else:
            before = self._next_offset
            fetch = partial(self._replay.fetch, 0, before)
            deadline_s = asyncio.get_running_loop().time() + TAIL_TIMEOUT_S
            begin, data = await until(deadline_s, f"reading {self}", fetch)
            if begin > before:
                raise self._lost()
            changed, secret, offset = self._read(data, before)
            self._bytes = self._size_with(self._bytes, self._sections, changed)
            self.secret = secret or self.secret
        if len(self._leaders.topic_ids) > 1:
            raise self._lost()
        try:
            self._apply(changed)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self.damaged(f"an entry before offset {offset}") from error
        self._next_offset = offset
        self._advanced.set()
        self._advanced = asyncio.Event()

    def _read(self, data: bytes, offset: int) -> _Read:
        """Raises DamagedError."""
        try:
            return read_changes(data, offset)
        except ValueError as error:
            raise DamagedError(f"{self}: {error}; {self.repair}") from None

    def _size_with(self, size: int, sections: _Sections, changed: Mapping[Section, Changed]) -> int:
        for section, entries in changed.items():
            before = sections[section]
            size += sum(size_of(key, value) - size_of(key, before.get(key)) for key, value in entries.items())
        if size > MOST_BYTES:
            raise DamagedError(f"{self} has more than {MOST_BYTES:,} bytes of entries: remove some")
        return size

    def _lost(self) -> DamagedError:
        return DamagedError(
            f"{self} has lost records that were read: it was made again, or records were deleted"
        )

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self._leaders.moved()


class _Read(NamedTuple):
    """The entries of some records. `changed`: the last of each key, None: gone."""

    changed: _Sections
    secret: bytes
    """Empty: nothing about it."""
    next_offset: int


def read_changes(data: bytes, offset: int) -> _Read:
    """The entries of the batches of a Fetch answer from `offset` on. Raises ValueError (MalformedError)."""
    changed: _Sections = {}
    secret = b""
    for batch in iter_batches(data):
        if batch.header.next_offset <= offset:
            continue
        batch.check_crc()
        for record in () if batch.header.is_control else batch.records():
            if record.offset < offset:
                continue
            if record.key is None:
                raise ValueError(f"the record at offset {record.offset} has no key")
            entry = entry_of(record.key, record.value)
            if isinstance(entry, Entry):
                changed.setdefault(entry.section, {})[entry.key] = entry.value
            elif entry is not None:
                secret = entry
        offset = batch.header.next_offset
    return _Read(changed, secret, offset)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The changes from one to the other."""
    deleted = dict.fromkeys(before.keys() - after.keys())
    return deleted | {key: value for key, value in after.items() if before.get(key) != value}

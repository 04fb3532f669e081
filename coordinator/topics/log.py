"""The topic log as a whole: topics, their partitions, the threads that work for them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from ringleader.coordinator.clock import Clock, monotonic_ms
from ringleader.coordinator.logs import Failures, Seldom, get_log
from ringleader.coordinator.run_queue import RunQueue
from ringleader.coordinator.topics.appender import Appender
from ringleader.coordinator.topics.background import Background, cut
from ringleader.coordinator.topics.catalog import MAX_PARTITIONS, Catalog, ProducerIds, TopicInfo
from ringleader.coordinator.topics.configs import effective, validate
from ringleader.coordinator.topics.disk import Disk, GroupCommit, write_number
from ringleader.coordinator.topics.ends import save as save_ends
from ringleader.coordinator.topics.partition import (
    AppendResult,
    Done,
    Partition,
    PendingAppend,
    Readable,
    Served,
    Verify,
)
from ringleader.coordinator.topics.producers import ProducerCount
from ringleader.coordinator.topics.recovery import START_FILE, Recovered, recover_all
from ringleader.coordinator.topics.settings import TopicSettings
from ringleader.coordinator.topics.tails import TailCache
from ringleader.coordinator.topics.transactional import before, refuse_unverified
from ringleader.coordinator.unix_time import UnixTime
from ringleader.protocol.errors import ErrorCode, KafkaError

MAX_TIMESTAMP = -3
"""The timestamp of ListOffsets that asks for the largest one."""
DELETION_RETRY_S = 1.0
WALL_CLOCK_INTERVAL_S = 5.0
"""Interval at which the wall clock is read, to see it jump."""
START_WAIT_S = 10.0
"""How long a start waits for deletions that were begun before; then they go on beside it."""

CATALOG_FILE = "topics.json"
PRODUCER_IDS_FILE = "producer-ids"
ENDS_FILE = "ends.json"
DATA_DIRECTORY = "data"

Forget = Callable[[str, bytes], Awaitable[None]]
"""Makes groups forget what they committed for a topic, durably."""


class Topics:
    """The embedded topic log. All methods are for one loop's thread; what they wait for is done by others.

    Records are not synced as they come, as in Kafka: a crash of the process loses none that was acknowledged,
    a crash of the machine may. Topics, producer ids, DeleteRecords and ends of transactions are durable when
    they are answered. After a failed sync everything is refused with KAFKA_STORAGE_ERROR, and `on_failed` was
    called, once: the process should end.
    """

    def __init__(
        self,
        directory: Path,
        settings: TopicSettings,
        wall_ms: Callable[[], int],
        on_failed: Callable[[Exception], None] | None = None,
        *,
        sync: bool = True,
        now_ms: Clock = monotonic_ms,
        run_queue: RunQueue | None = None,
    ) -> None:
        """`run_queue`: that of the node; None: one of its own. Without `sync`, files are not synced when they
        are complete and at a clean stop, nor markers before they count."""
        self.settings = settings
        self.directory = directory
        self.wall_ms = wall_ms
        self._now_ms = now_ms
        self._unix_time = UnixTime(settings.log_retention_check_interval_ms)
        self._run_queue = run_queue or RunQueue()
        self._data = directory / DATA_DIRECTORY
        self._ends = directory / ENDS_FILE
        self._log = get_log()
        self._disk = Disk(self._data, self._log, on_failed)
        self._appender = Appender(self._written, self._disk.fail)
        self._failures = Failures(self._log, monotonic_ms)
        self._unwritten = Seldom(partial(self._log.error, "records cannot be written"), monotonic_ms)
        self._appends: list[PendingAppend] = []
        self._tails = TailCache(settings.tail_cache_bytes)
        self._all_producers = ProducerCount()
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._served: dict[str, Sequence[Served]] = {}
        self._catalog = Catalog(directory / CATALOG_FILE, self._disk)
        self._producer_ids = ProducerIds(directory / PRODUCER_IDS_FILE, self._disk)
        self._sync = sync
        self._syncs = GroupCommit(self._sync_files)
        self._starts = GroupCommit(self._store_starts)
        self._background = Background(self._disk, self._appender, self._log, sync=sync)
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_open = False

    # ---- life ----

    async def open(self) -> None:
        """Read what is there, repair what a crash left. Raises OSError (DamagedError among them)."""
        started_ms = monotonic_ms()
        path = self.directory / CATALOG_FILE
        topics, found = await asyncio.to_thread(
            recover_all, path, self._ends, self._data, self.wall_ms(), self._log
        )
        self._catalog.adopt(topics)
        known = (producer_id for recovered in found.values() for producer_id in recovered.producers)
        wrong = self._producer_ids.adopt(known)
        self._all_producers.unused = self._producer_ids.unused
        if wrong is not None:
            self._log.warning(
                "producer ids go on at another number", stored=wrong, next=self._producer_ids.unused
            )
        for (name, index), recovered in found.items():
            self._adopt(self._catalog.topics[name], index, recovered)
        self._appender.start()
        self._age_to_ms()  # from here on a clock that jumps is seen
        self._is_open = True
        self._start(self._retain())
        self._log.info(
            "topic log open",
            topics=len(self._catalog.topics),
            partitions=self._catalog.partitions,
            bytes=sum(sum(s.size_bytes for s in r.segments) for r in found.values()),
            scanned_bytes=sum(r.scanned_bytes for r in found.values()),
            duration_ms=monotonic_ms() - started_ms,
        )

    def _adopt(self, info: TopicInfo, index: int, found: Recovered) -> Partition:
        if found.cut_bytes:
            self._log.warning(
                "records cut off that were not whole",
                topic=info.name,
                partition=index,
                bytes=found.cut_bytes,
                end_offset=found.next_offset,
                dropped=found.dropped,
            )
        if found.missing:
            self._log.error(
                "files of a partition are missing: their records are gone",
                topic=info.name,
                partition=index,
                offsets=found.missing,
                start_offset=found.start_offset,
            )
        if found.missing_at_end:
            self._log.error(
                "files of a partition are missing: its last records are gone",
                topic=info.name,
                partition=index,
                offsets=found.missing_at_end,
                end_offset=found.next_offset,
                text="offsets from there on are given a second time",
            )
        directory = self._data / info.id.hex() / str(index)
        config = effective(info.configs, self.settings)
        partition = Partition(directory, config, found, self._tails, self._all_producers)
        self._partitions.setdefault(info.name, {})[index] = partition
        return partition

    async def close(self) -> None:
        """Write what was accepted, write indexes, end the threads. May be called twice, or without `open`."""
        was_open, self._is_open = self._is_open, False
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if was_open:
            self._flush()
            for commits in (self._catalog, self._producer_ids, self._syncs, self._starts, self._background):
                await commits.settle()
            await self._appender.stop()
            for partition in self._all_partitions():
                partition.wake_all()
            for one in (one for served in self._served.values() for one in served):
                one.wake_all()
            await self._background.settle()
            await self._background.finish(
                [found for p in self._all_partitions() if (found := p.final_index()) is not None]
            )
            await self._note_ends()
        await self._disk.close()

    async def _note_ends(self) -> None:
        """How far partitions have come, for the next start."""
        ends = {
            self._catalog.topics[name].id.hex(): {
                str(index): partition.high_watermark for index, partition in some.items()
            }
            for name, some in self._partitions.items()
            if name in self._catalog.topics
        }
        await asyncio.to_thread(save_ends, self._ends, ends)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._log.error("work on topics failed", reason=str(task.exception()))

    def _all_partitions(self) -> list[Partition]:
        return [partition for some in self._partitions.values() for partition in some.values()]

    # ---- topics ----

    def follow(self, on_change: Callable[[str, TopicInfo | None], None]) -> None:
        """Call it with each topic now, and from now on with each that is created, changed or deleted."""
        for name, info in self._catalog.topics.items():
            on_change(name, info)
        self._catalog.on_change = on_change

    def describe(self, name: str) -> TopicInfo | None:
        """A topic by its name."""
        return self._catalog.topics.get(name)

    def describe_id(self, topic_id: bytes) -> TopicInfo | None:
        """A topic by its id."""
        return self._catalog.by_id.get(topic_id)

    def all(self) -> list[TopicInfo]:
        """All topics by name."""
        topics = self._catalog.topics
        return [topics[name] for name in sorted(topics)]

    def serve(self, name: str, partitions: Sequence[Served], configs: Mapping[str, str]) -> None:
        """Serve a topic whose records are somewhere else, for reading. Its id is that of its name; a topic of
        that name is hidden."""
        if name in self._catalog.topics:
            self._log.warning("a topic is hidden by the node's own of that name", topic=name)
        topic_id = hashlib.sha256(name.encode()).digest()[:16]
        self._catalog.serve(TopicInfo(name, topic_id, len(partitions), configs))
        self._served[name] = partitions

    async def create(
        self,
        name: str,
        partitions: int = -1,
        configs: Mapping[str, str | None] | None = None,
        *,
        validate_only: bool = False,
    ) -> TopicInfo:
        """A new topic, durable on return; -1 partitions: the default number.

        Raises KafkaError, as the other changes do: see `Catalog`.
        """
        count = self.settings.num_partitions if partitions == -1 else partitions
        return await self._catalog.create(name, count, configs or {}, validate_only)

    async def grow(self, name: str, total: int, *, validate_only: bool = False) -> TopicInfo:
        """More partitions, durable on return. Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION,
        INVALID_PARTITIONS, and see `Catalog`."""

        def grown(info: TopicInfo) -> TopicInfo:
            if not info.partitions < total <= MAX_PARTITIONS:
                text = f"Topic '{name}' has {info.partitions} partitions: {total} are not more, or too many."
                raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
            return replace(info, partitions=total)

        return await self._catalog.change(name, grown, validate_only=validate_only)

    async def configure(
        self,
        name: str,
        change: Callable[[dict[str, str]], Mapping[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> TopicInfo:
        """Replace a topic's configurations by what `change` makes of the present ones, durable on return.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, those of `change`, and see `Catalog`.
        """

        def changed(info: TopicInfo) -> TopicInfo:
            return replace(info, configs=validate(change(dict(info.configs))))

        after = await self._catalog.change(name, changed, validate_only=validate_only)
        info = self._catalog.topics.get(name)
        if info is not None:
            config = effective(info.configs, self.settings)
            for partition in self._partitions.get(name, {}).values():
                partition.config = config
        return after

    async def delete(self, name: str, forget: Forget) -> None:
        """Delete a topic: on return it is gone with its records, and with what groups committed for it.

        It is invisible as soon as that is durable; its name is free again when all is done. If that ends
        early (the caller is cancelled, a crash), `finish_deletions` of the next start goes on.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        info = await self._catalog.change(name, lambda info: replace(info, deleting=True))
        await self._finish_deletion(info, forget)

    async def finish_deletions(self, forget: Forget) -> None:
        """Go on with deletions that were begun before the start."""
        begun = [self._start(self._finish_deletion(info, forget)) for info in self._catalog.deleting()]
        if begun:
            await asyncio.wait(begun, timeout=START_WAIT_S)

    async def _finish_deletion(self, info: TopicInfo, forget: Forget) -> None:
        for partition in self._partitions.pop(info.name, {}).values():
            partition.delete()
        # Nobody can look the topic up any more, so nothing is written after this.
        self._flush()
        await forget(info.name, info.id)
        while True:
            try:
                await self._background.remove_topic(self._data / info.id.hex())
                await self._catalog.remove(info.name)
                return
            except KafkaError as error:
                self._disk.check()
                self._log.warning("topic not removed, tried again", topic=info.name, reason=str(error))
            await asyncio.sleep(DELETION_RETRY_S)

    def partition(self, topic: str, index: int) -> Partition:
        """One partition. Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR."""
        self._disk.check()
        try:
            return self._partitions[topic][index]
        except KeyError:
            info = self._catalog.topics.get(topic)
            if info is None or not 0 <= index < info.partitions or topic in self._served:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None
            return self._adopt(info, index, Recovered())

    def readable(self, topic: str, index: int) -> Readable:
        """One partition to read, of served topics too. Raises KafkaError as `partition` does."""
        served = self._served.get(topic)
        if served is None:
            return self.partition(topic, index)
        if not 0 <= index < len(served):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return served[index]

    async def new_producer_id(self) -> int:
        """A producer id that was never given out before. Raises KafkaError (KAFKA_STORAGE_ERROR)."""
        producer_id = await self._producer_ids.take()
        self._all_producers.unused = self._producer_ids.unused
        return producer_id

    # ---- appending ----

    def append_nowait(
        self,
        partition: Partition,
        batch: bytes,
        done: Done,
        verify: Verify = refuse_unverified,
        owner: object = None,
    ) -> None:
        """Append one batch, after those of the same `owner`; `done` gets the result, or the KafkaError, in a
        later turn or at once.

        `verify` says whether a transactional batch may be appended, when its turn has come.
        """
        self._run_queue.at_once(lambda: self._append(partition, batch, done, verify), owner)

    def _append(self, partition: Partition, batch: bytes, done: Done, verify: Verify) -> None:
        try:
            self._check_open(partition)
            pending = partition.append(batch, self.wall_ms(), done, verify)
        except KafkaError as error:
            self._tell([done], error)
        except Exception:
            self._failures.tell("append failed", directory=str(partition.directory))
            self._tell([done], KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            if pending is not None:
                self._write(pending)

    def _check_open(self, partition: Partition) -> None:
        self._disk.check()
        if not self._is_open or partition.deleted:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "closing, or deleted")

    def _write(self, pending: PendingAppend) -> None:
        if not self._appends:
            # Appends of this turn go to the disk together.
            asyncio.get_running_loop().call_soon(self._flush)
        self._appends.append(pending)

    def _flush(self) -> None:
        appends, self._appends = self._appends, []
        if appends:
            self._appender.write(appends)

    async def append(
        self, topic: str, partition: int, batch: bytes, verify: Verify = refuse_unverified
    ) -> AppendResult:
        """Append one batch as a producer sent it; written (not synced) on return.

        A batch that was appended before gives the earlier result. Raises KafkaError:
        UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, those of `Partition.append`.
        """
        found = self.partition(topic, partition)
        return await _awaited(lambda done: self.append_nowait(found, batch, done, verify))

    async def end_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """Append the marker that ends a producer's transaction; on return it is synced to disk, with all that
        is before it. Raises KafkaError as `append` does."""
        found = self.partition(topic, partition)
        self._check_open(found)
        now = self.wall_ms()

        def append(done: Done) -> None:
            self._write(found.append_marker(producer_id, producer_epoch, now, done, committed=committed))

        await self._sync_to(found, (await _awaited(append)).base_offset)

    async def append_durably(self, topic: str, partition: int, batch: bytes) -> AppendResult:
        """`append`, and synced to disk on return."""
        found = self.partition(topic, partition)
        result = await self.append(topic, partition, batch)
        await self._sync_to(found, result.base_offset)
        return result

    async def _sync_to(self, found: Partition, offset: int) -> None:
        if self._sync:
            files = found.unsynced(offset)
            await self._syncs.add([segment.path for segment in files])
            found.synced_before = max([found.synced_before, *(segment.base_offset for segment in files)])

    async def _sync_files(self, requests: list[list[Path]]) -> None:
        await self._disk.store(self._disk.sync, *dict.fromkeys(path for paths in requests for path in paths))

    def open_transactions(self) -> list[tuple[str, int, int, int]]:
        """Topic, partition, producer id and epoch of every transaction that has no marker yet."""
        return [
            (topic, index, producer_id, max(partition.producers.epoch(producer_id), 0))
            for topic, partitions in self._partitions.items()
            for index, partition in partitions.items()
            for producer_id in partition.transactions.open
        ]

    def _written(self, appends: list[PendingAppend]) -> None:
        for pending in appends:
            partition = pending.partition
            try:
                if pending.error is not None:
                    if pending.chain is partition.chain:  # else it was taken back before
                        self._write_failed(partition, pending.error)
                    continue
                self._background.seal(partition.written(pending))
            except Exception as error:
                # A bug: nobody knows what this partition holds.
                self._log.exception("append lost", directory=str(partition.directory))
                self._disk.fail(error)
                return
            result = AppendResult(pending.header.base_offset, pending.append_time_ms, partition.start_offset)
            self._tell(pending.done, result)

    def _write_failed(self, partition: Partition, error: Exception) -> None:
        reason = str(error)
        self._unwritten.tell(getattr(error, "errno", None), directory=str(partition.directory), reason=reason)
        waiting, touched = partition.failed()
        for segment in touched:
            deleted = segment not in partition.segments
            self._appender.call(partial(cut, segment, deleted))
        self._tell(waiting, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, reason))

    def _tell(self, waiting: Sequence[Done], result: AppendResult | KafkaError) -> None:
        for done in waiting:
            try:
                done(result)
            except Exception:
                self._failures.tell("append not answered")

    # ---- reading ----

    async def read(
        self,
        partition: Readable,
        offset: int,
        max_bytes: int,
        end_offset: int | None = None,
        *,
        at_least_one: bool = True,
    ) -> bytes:
        """Whole batches from the one with `offset` on, without `at_least_one` perhaps none, if there is one;
        only what is before `end_offset`, where a batch begins.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        records = partition.read_tail(offset, max_bytes)
        if records is None and isinstance(partition, Partition):
            records = await self._disk.read(partition.read_plan(offset, max_bytes, at_least_one))
        elif records is None:
            records = await cast(Served, partition).read(offset, max_bytes)
        if records is None:
            # Deleted meanwhile: by retention, or with its topic.
            unknown, outside = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OFFSET_OUT_OF_RANGE
            raise KafkaError(unknown if cast(Partition, partition).deleted else outside)
        if not at_least_one and len(records) > max_bytes:
            return b""
        return records if end_offset is None else before(records, end_offset)

    async def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> tuple[int, int]:
        """The first record with this timestamp or a later one: its offset and timestamp, (-1, -1) for none.

        `MAX_TIMESTAMP`: the first record with the largest timestamp. Raises KafkaError:
        UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        if topic in self._served:
            self.readable(topic, partition)
            return await self._served[topic][partition].offset_for_time(timestamp_ms)
        found = self.partition(topic, partition)
        if timestamp_ms == MAX_TIMESTAMP:
            timestamp_ms = max((segment.max_timestamp for segment in found.segments), default=-1)
        return await self._disk.read(found.time_plan(timestamp_ms)) if timestamp_ms >= 0 else (-1, -1)

    # ---- what goes ----

    async def truncate(self, topic: str, partition: int, offset: int) -> int:
        """Delete the records before `offset` (-1: all there are), durable on return. The new start offset.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        found = self.partition(topic, partition)
        if not -1 <= offset <= found.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        offset = found.high_watermark if offset == -1 else offset
        if offset > found.start_offset:
            await self._starts.add((found, offset))
        return found.start_offset

    async def _store_starts(self, requests: list[tuple[Partition, int]]) -> None:
        """Records before these offsets go, as soon as that is durable."""
        starts: dict[Partition, int] = {}
        for partition, offset in requests:
            starts[partition] = max(offset, starts.get(partition, partition.start_offset))
        for partition, offset in starts.items():
            # One by one, so that what others wait for comes between.
            await self._disk.store(self._write_start, partition.directory, offset)
            if not partition.deleted and (files := partition.truncate(offset)):
                self._background.remove(files, partition.segments[0])

    def _write_start(self, directory: Path, offset: int) -> None:
        """On a thread."""
        # With its topic, all of it goes.
        with suppress(FileNotFoundError):
            write_number(directory / START_FILE, offset)
            self._disk.sync_names(directory)

    async def enforce_retention(self) -> int:
        """Delete what is too old or too much, in whole files; how many files."""
        count = 0
        now = self._age_to_ms()
        for found in self._all_partitions():
            found.producers.expire(now - self.settings.producer_id_expiration_ms)
            start, files = found.retention_start(now), list(found.segments)
            if not files or start <= files[0].base_offset:
                continue
            if start == found.next_offset:
                self._background.seal(found.roll())
            await self._starts.add((found, start))
            count += (deleted := len([segment for segment in files if segment not in found.segments]))
            self._log.info(
                "records deleted by retention",
                directory=str(found.directory),
                files=deleted,
                start_offset=start,
            )
        await self._background.settle()
        return count

    def _age_to_ms(self) -> int:
        """Unix time to count ages to, after a look at the clock."""
        now_ms = self._now_ms()
        self._unix_time.tell(now_ms, self.wall_ms())
        return self._unix_time.age_to_ms(now_ms)

    async def _retain(self) -> None:
        interval_s = self.settings.log_retention_check_interval_ms / 1000
        left_s = interval_s
        while True:
            await asyncio.sleep(min(left_s, WALL_CLOCK_INTERVAL_S))
            self._age_to_ms()
            left_s -= WALL_CLOCK_INTERVAL_S
            if left_s > 0:
                continue
            left_s = interval_s
            try:
                await self.enforce_retention()
            except KafkaError as error:
                self._log.warning("retention failed, tried again later", reason=str(error))
            await self._note_ends()


async def _awaited(append: Callable[[Done], None]) -> AppendResult:
    """The result of what is begun so. Raises KafkaError."""
    future: asyncio.Future[AppendResult | KafkaError] = asyncio.get_running_loop().create_future()
    append(lambda result: None if future.done() else future.set_result(result))
    result = await future
    if isinstance(result, KafkaError):
        raise result
    return result

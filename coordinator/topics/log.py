"""The topic log as a whole: topics, their partitions, the threads that work for them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from ringleader.coordinator.clock import monotonic_ms
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.topics import configs as topic_configs
from ringleader.coordinator.topics.catalog import MAX_PARTITIONS, Catalog, TopicInfo, check_name, load
from ringleader.coordinator.topics.chores import Chores, cut
from ringleader.coordinator.topics.files import write_whole
from ringleader.coordinator.topics.partition import (
    AppendResult,
    Done,
    Partition,
    Pending,
    Verify,
    Waiter,
    awaited,
)
from ringleader.coordinator.topics.producer_ids import ProducerIds
from ringleader.coordinator.topics.reading import (
    START_FILE,
    ReadResult,
    Recovered,
    find_first_time,
    read_range,
    recover_all,
)
from ringleader.coordinator.topics.retention import Retention
from ringleader.coordinator.topics.settings import TopicSettings
from ringleader.coordinator.topics.syncs import Syncs
from ringleader.coordinator.topics.tail import TailCache
from ringleader.coordinator.topics.transactional import before, refuse_unverified
from ringleader.coordinator.topics.turns import Turns
from ringleader.coordinator.topics.writer import Write, Writer
from ringleader.protocol.errors import ErrorCode, KafkaError

READER_THREADS = 4
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
"""The timestamps of ListOffsets that are none."""

CATALOG_FILE = "topics.json"
PRODUCER_IDS_FILE = "producer-ids"
DATA_DIRECTORY = "data"


class Topics:
    """The embedded topic log. All methods are for one loop's thread; what they wait for is done by others.

    Records are not synced as they come, as in Kafka: a crash of the process loses none that was acknowledged,
    a crash of the machine may. Topics, producer ids and DeleteRecords are durable when they are answered.
    """

    def __init__(self, directory: Path, settings: TopicSettings, wall_ms: Callable[[], int]) -> None:
        self.settings = settings
        self.directory = directory
        self.wall_ms = wall_ms
        self.turns = Turns()
        self._pool = ThreadPoolExecutor(READER_THREADS, thread_name_prefix="topic-log-reader")
        self._writer = Writer(self._written)
        self._writes: list[Write] = []
        self._tails = TailCache(settings.tail_cache_bytes)
        self._partitions: dict[str, dict[int, Partition]] = {}
        self._catalog = Catalog(directory / CATALOG_FILE, self._pool)
        self._deletions: set[asyncio.Future[None]] = set()
        self._producer_ids = ProducerIds(directory / PRODUCER_IDS_FILE, self._pool)
        self._retaining: asyncio.Task[None] | None = None
        self._is_open = False
        self._log = get_log()
        self._chores = Chores(self._writer, self._log, sync=settings.storage_sync == "full")
        self._syncs = Syncs(directory / DATA_DIRECTORY)
        self._retention = Retention(self._writer, self._chores, self._log)

    # ---- life ----

    async def open(self) -> None:
        """Read what is there, repair what a crash left. Raises OSError (CatalogError among them)."""
        started_ms = monotonic_ms()
        topics, found, orphans = await self._run(self._load)
        self._catalog.adopt(topics)
        for (name, index), recovered in found.items():
            self._adopt(topics[name], index, recovered)
        self._writer.start()
        for path in orphans:
            self._chores.remove_topic(path)
        self._is_open = True
        self._retaining = asyncio.get_running_loop().create_task(self._retain())
        self._log.info(
            "topic log open",
            topics=len(topics),
            partitions=self._catalog.partitions,
            bytes=sum(sum(s.size_bytes for s in r.segments) for r in found.values()),
            scanned_bytes=sum(r.scanned_bytes for r in found.values()),
            duration_ms=monotonic_ms() - started_ms,
        )

    def _load(self) -> tuple[dict[str, TopicInfo], dict[tuple[str, int], Recovered], list[Path]]:
        data = self.directory / DATA_DIRECTORY
        data.mkdir(parents=True, exist_ok=True)
        topics = load(self.directory / CATALOG_FILE)
        return topics, *recover_all(data, topics.values(), self.wall_ms())

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
        directory = self.directory / DATA_DIRECTORY / info.id.hex() / str(index)
        config = topic_configs.effective(info.configs, self.settings)
        partition = Partition(directory, config, self._tails, found)
        self._partitions.setdefault(info.name, {})[index] = partition
        return partition

    async def close(self) -> None:
        """Write what was accepted, write indexes, end the threads. May be called twice, or without `open`."""
        was_open, self._is_open = self._is_open, False
        if self._retaining is not None:
            self._retaining.cancel()
            await asyncio.gather(self._retaining, return_exceptions=True)
        if was_open:
            await self._catalog.flush()
            if self._deletions:
                await asyncio.wait(self._deletions)
            self._flush()
            await self._syncs.settle()
            await self._chores.settle(abandon=True)
            await self._writer.stop()
            for partition in self._all_partitions():
                partition.wake_all()
            await self._chores.settle()
            await self._chores.finish(
                [found for p in self._all_partitions() if (found := p.final_index()) is not None]
            )
        await asyncio.get_running_loop().run_in_executor(None, self._syncs.shutdown)
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)

    def _all_partitions(self) -> list[Partition]:
        return [partition for some in self._partitions.values() for partition in some.values()]

    def _run(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    # ---- topics ----

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

    async def create(
        self,
        name: str,
        partitions: int = -1,
        configs: Mapping[str, str | None] | None = None,
        *,
        validate_only: bool = False,
    ) -> TopicInfo:
        """A new topic, durable on return; -1 partitions: the default number.

        Raises KafkaError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG,
        POLICY_VIOLATION (too many partitions in all), KAFKA_STORAGE_ERROR.
        """
        check_name(name)
        await self._catalog.settled(name)
        if name in self._catalog.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        count = self.settings.num_partitions if partitions == -1 else partitions
        if not 1 <= count <= MAX_PARTITIONS:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"a topic has 1 to {MAX_PARTITIONS} partitions")
        info = TopicInfo(name, os.urandom(16), count, topic_configs.validate(configs or {}))
        if not validate_only:
            await self._catalog.put(name, info)
        return info

    async def delete(self, name: str) -> None:
        """Delete a topic, durable on return; its files go soon after.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        info = await self._settled(name)
        stored = self._catalog.put(name, None)
        # Goes on when the caller is cancelled.
        self._deletions.add(job := asyncio.ensure_future(self._delete(info, stored)))
        job.add_done_callback(self._deletions.discard)
        await asyncio.shield(job)

    async def _delete(self, info: TopicInfo, stored: Any) -> None:
        await stored
        for partition in self._partitions.pop(info.name, {}).values():
            partition.delete()
        # Nobody can look the topic up any more, so nothing is written after this.
        self._flush()
        self._chores.remove_topic(self.directory / DATA_DIRECTORY / info.id.hex())

    async def grow(self, name: str, total: int, *, validate_only: bool = False) -> TopicInfo:
        """More partitions, durable on return. Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION,
        INVALID_PARTITIONS, POLICY_VIOLATION, KAFKA_STORAGE_ERROR."""
        info = await self._settled(name)
        if not info.partitions < total <= MAX_PARTITIONS:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"Topic '{name}' has {info.partitions} partitions; asked are {total}, "
                f"which is not more, or above {MAX_PARTITIONS}.",
            )
        grown = TopicInfo(name, info.id, total, info.configs)
        if not validate_only:
            await self._catalog.put(name, grown)
        return grown

    async def configure(
        self,
        name: str,
        change: Callable[[dict[str, str]], Mapping[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> TopicInfo:
        """Replace a topic's configurations by what `change` makes of the present ones, durable on return.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, KAFKA_STORAGE_ERROR, and what `change`
        raises.
        """
        info = await self._settled(name)
        after = TopicInfo(name, info.id, info.partitions, topic_configs.validate(change(dict(info.configs))))
        if not validate_only:
            await self._catalog.put(name, after)
            config = topic_configs.effective(after.configs, self.settings)
            for partition in self._partitions.get(name, {}).values():
                partition.config = config
        return after

    async def _settled(self, name: str) -> TopicInfo:
        await self._catalog.settled(name)
        info = self._catalog.topics.get(name)
        if info is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        return info

    def partition(self, topic: str, index: int) -> Partition:
        """One partition. Raises KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        try:
            return self._partitions[topic][index]
        except KeyError:
            info = self._catalog.topics.get(topic)
            if info is None or not 0 <= index < info.partitions:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None
            return self._adopt(info, index, Recovered())

    # ---- appending ----

    def append_nowait(
        self, partition: Partition, batch: bytes, done: Done, verify: Verify = refuse_unverified
    ) -> None:
        """Append one batch; `done` gets the result, or the KafkaError, in a later turn or at once.

        `verify` says whether a transactional batch may be appended, when its turn has come.
        """
        self.turns.run(lambda: self._append(partition, batch, done, verify))

    def _append(self, partition: Partition, batch: bytes, done: Done, verify: Verify) -> int:
        try:
            self._check_open(partition)
            write = partition.append(batch, self.wall_ms(), done, verify)
        except KafkaError as error:
            done(error)
            return len(batch)
        except Exception:
            self._log.exception("append failed", directory=str(partition.directory))
            done(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR))
            return len(batch)
        if write is not None:
            self._write(write)
        return len(batch)

    def _check_open(self, partition: Partition) -> None:
        if not self._is_open or partition.deleted:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "closing, or deleted")

    def _write(self, write: Write) -> None:
        if not self._writes:
            # What arrives in this turn goes to the disk together.
            asyncio.get_running_loop().call_soon(self._flush)
        self._writes.append(write)

    async def append(
        self, topic: str, partition: int, batch: bytes, verify: Verify = refuse_unverified
    ) -> AppendResult:
        """Append one batch as a producer sent it; written (not synced) on return.

        A batch that was appended before gives the earlier result. Raises KafkaError:
        UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, those of `Partition.append`.
        """
        future, done = awaited()
        self.append_nowait(self.partition(topic, partition), batch, done, verify)
        return await future

    async def end_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """Append the marker that ends a producer's transaction; on return it is synced to disk, with all that
        is before it. Raises KafkaError as `append` does."""
        found = self.partition(topic, partition)
        self._check_open(found)
        future, done = awaited()
        self._write(
            found.append_marker(producer_id, producer_epoch, self.wall_ms(), done, committed=committed)
        )
        offset = (await future).base_offset
        if self.settings.storage_sync == "full":
            files = found.unsynced(offset)
            await self._syncs.sync([segment.path for segment in files])
            found.synced_before = max([found.synced_before, *(segment.base_offset for segment in files)])

    def open_transactions(self) -> list[tuple[str, int, int, int]]:
        """Topic, partition, producer id and epoch of every transaction that has no marker yet."""
        return [
            (topic, index, producer_id, max(partition.producers.epoch(producer_id), 0))
            for topic, partitions in self._partitions.items()
            for index, partition in partitions.items()
            for producer_id in partition.transactions.open
        ]

    def _flush(self) -> None:
        writes, self._writes = self._writes, []
        if writes:
            self._writer.write(writes)

    def _written(self, writes: list[Write]) -> None:
        for write in writes:
            pending: Pending = write.owner
            partition = pending.partition
            if write.error is not None:
                if partition.is_first(pending):
                    self._write_failed(partition, write.error)
                continue
            for sealed in partition.written(pending, write.data):
                self._chores.seal(sealed)

    def _write_failed(self, partition: Partition, error: OSError) -> None:
        self._log.error("records cannot be written", directory=str(partition.directory), error=str(error))
        touched = partition.failed(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
        for segment in touched:
            gone = segment not in partition.segments
            self._writer.call_later(partial(cut, segment, gone))

    # ---- reading ----

    async def read(self, topic: str, partition: int, offset: int, max_bytes: int) -> ReadResult:
        """Whole batches from the one with `offset` on, at least one if there is one.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        found = self.partition(topic, partition)
        records = await self.read_partition(found, offset, max_bytes)
        return ReadResult(records, found.high_watermark, found.start_offset)

    async def read_partition(
        self, partition: Partition, offset: int, max_bytes: int, end_offset: int | None = None
    ) -> bytes:
        """As `read`; only what is before `end_offset`, where a batch begins."""
        records = await self._read(partition, offset, max_bytes)
        return records if end_offset is None else before(records, end_offset)

    async def _read(self, partition: Partition, offset: int, max_bytes: int) -> bytes:
        records = partition.read_tail(offset, max_bytes)
        if records is not None:
            return records
        plan = partition.read_plan(offset, max_bytes)
        try:
            data: bytes = await self._run(read_range, *plan)
        except FileNotFoundError:
            # Deleted meanwhile: by retention, or with its topic.
            code = (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition.deleted else ErrorCode.OFFSET_OUT_OF_RANGE
            )
            raise KafkaError(code) from None
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        return data

    def park(
        self,
        partitions: list[Partition],
        bytes_needed: int,
        wake: Callable[[], None],
        *,
        stable: bool = False,
    ) -> Waiter:
        """Call `wake` once when so many bytes were added to these partitions, or one was deleted. `stable`:
        when readers of committed records have so many more."""
        waiter = Waiter(bytes_needed, wake, partitions, stable)
        for partition in partitions:
            partition.waiters[waiter] = None
        return waiter

    async def wait_for_data(
        self, positions: list[tuple[str, int, int]], min_bytes: int, timeout_ms: int
    ) -> bool:
        """Wait until (topic, partition, offset) have `min_bytes` together, as far as can be told without
        reading. False when the time is over. Raises KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        partitions = [self.partition(topic, index) for topic, index, _ in positions]
        if any(p.high_watermark > at[2] for p, at in zip(partitions, positions, strict=True)):
            # Something is there; how many bytes is only known by reading.
            return True
        woken = asyncio.Event()
        waiter = self.park(partitions, min_bytes, woken.set)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await woken.wait()
        except TimeoutError:
            return False
        finally:
            waiter.cancel()
        return True

    def start_offset(self, topic: str, partition: int) -> int:
        """Offset of the first record. Raises KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        return self.partition(topic, partition).start_offset

    def end_offset(self, topic: str, partition: int) -> int:
        """Offset of the next record. Raises KafkaError (UNKNOWN_TOPIC_OR_PARTITION)."""
        return self.partition(topic, partition).high_watermark

    async def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> tuple[int, int]:
        """The first record with this timestamp or a later one: its offset and timestamp, (-1, -1) for none.

        `LATEST` and `EARLIEST` give the end and the start with timestamp -1, `MAX_TIMESTAMP` the first record
        with the largest timestamp. Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR.
        """
        found = self.partition(topic, partition)
        if timestamp_ms == LATEST:
            return found.high_watermark, -1
        if timestamp_ms == EARLIEST:
            return found.start_offset, -1
        if timestamp_ms == MAX_TIMESTAMP:
            timestamp_ms = max((segment.max_timestamp for segment in found.segments), default=-1)
        plans = found.time_plans(timestamp_ms)
        try:
            return await self._run(find_first_time, plans) if plans and timestamp_ms >= 0 else (-1, -1)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None

    # ---- what goes ----

    async def truncate(self, topic: str, partition: int, offset: int) -> int:
        """Delete the records before `offset` (-1: all there are), durable on return. The new start offset.

        Raises KafkaError: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        found = self.partition(topic, partition)
        gone = found.truncate(found.high_watermark if offset == -1 else offset)
        path, start = found.directory / START_FILE, found.start_offset
        try:
            if found.directory.exists():
                await self._run(write_whole, path, b"%d\n" % start)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        finally:
            if gone:
                self._chores.remove(gone)
        return start

    async def enforce_retention(self) -> int:
        """Delete what is too old or too much, in whole files; how many files."""
        return await self._retention.enforce(
            self._all_partitions(), self.wall_ms(), self.settings.producer_id_expiration_ms
        )

    async def _retain(self) -> None:
        while True:
            await asyncio.sleep(self.settings.log_retention_check_interval_ms / 1000)
            try:
                await self.enforce_retention()
            except OSError as error:
                self._log.warning("retention failed, tried again later", error=str(error))

    async def new_producer_id(self) -> int:
        """A producer id that was never given out before. Raises KafkaError (KAFKA_STORAGE_ERROR)."""
        return await self._producer_ids.take()

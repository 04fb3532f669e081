"""The store itself: partitions that this node has opened, and what it writes to them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.coordinator.logs import Log, get_log
from ringleader.coordinator.storage.base import Batch, Failure, Record, Row, StorageError
from ringleader.coordinator.storage.kafka.asking import until
from ringleader.coordinator.storage.kafka.format import CLAIM_KEY, Claim, LogRows
from ringleader.coordinator.storage.kafka.leaders import Leaders
from ringleader.coordinator.storage.kafka.ownership import Ownership
from ringleader.coordinator.storage.kafka.replay import Replay
from ringleader.coordinator.storage.kafka.topic import GroupsTopic
from ringleader.coordinator.storage.kafka.writer import (
    BATCH_BYTES,
    RECORD_BYTES,
    Sender,
    Writer,
)

CLAIM_INTERVAL_S = 3600.0
"""Interval at which an owner writes that it is one: a partition's leader forgets a producer that writes
nothing for `producer.id.expiration.ms` (1 day), and would take what an older epoch writes."""

APPENDS = 64
"""Of a partition, that wait for the batch after the one under way; more gather in the shard's own log."""

FORGOTTEN_CLAIMS = 2
"""A writer that had nothing acknowledged for as many of these intervals writes no more."""

PRODUCER_ID_EXPIRATION_MS = 86_400_000
"""Kafka's default."""

CLAIMS_PER_EXPIRATION = 8
"""At least, where a cluster has set less than the default."""

LOOK_S = 10.0
"""Interval at which it is checked that the topic is still the same, with the settings that it needs."""

REPORT_AGAIN_S = 60.0
"""Time between two log lines that it is not as it has to be any more."""

REPLICATE_TRIES = 4
"""How often an append is sent before it is too late, if a broker says each time that not enough replicas
have it yet."""


@dataclass(slots=True)
class _Open:
    writer: Writer
    epoch: int
    claim_offset: int


class KafkaStorage:
    """See `Storage`. Any number of nodes may use the same topic at once: each partition is of the one that
    opened it last, and all others' appends are refused with FENCED from then on.

    `open` gives out epochs: those of a producer id of the cluster. They begin again at 0 when the cluster
    gives a partition another producer id; nothing here compares epochs of two openings.
    """

    pipeline = APPENDS
    together = False
    confirmed_reads = True

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        owner: Claim,
        *,
        topic: str = "__ringleader_groups",
        partitions: int = 50,
        replication_factor: int = 3,
        transactional_id_prefix: str = "__ringleader",
        max_record_bytes: int = 16_777_216,
        timeout_ms: int = 25_000,
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        on_failed: Callable[[Exception], None] | None = None,
        log: Log | None = None,
    ) -> None:
        """`owner`: this node, as claims name it. `max_record_bytes`: of a value (`group.max.record.bytes`).

        `timeout_ms`: what opening and each read may take altogether before it fails with AWAY;
        less than the runtime's `storage.timeout.ms`, so that the store says why. `tls` and `sasl`: as
        `Cluster` takes them. `on_failed(error)` is called once, when the topic is another one than when this
        was started: nothing is read or written any more, and everything is refused with that error.
        """
        self._topic = GroupsTopic(topic, partitions, replication_factor, max_record_bytes)
        self._owner = owner
        self._timeout_s = timeout_ms / 1000
        self._prefix = transactional_id_prefix
        self._on_failed = on_failed
        self._failed: StorageError | None = None
        self._log = log or get_log()
        self._bootstrap = bootstrap
        self._client_id = f"ringleader-node-{owner.node_id}"
        self._tls, self._sasl = tls, sasl
        self._parts: _Parts | None = None
        self._open: dict[int, _Open] = {}

    async def start(self) -> None:
        """See `Storage.start`. Finds the topic and checks it, or makes it. UNFIT: the topic, or what this
        node may do on the cluster, is not as it has to be; AWAY: no broker answers in time."""
        cluster = Cluster(self._bootstrap, client_id=self._client_id, tls=self._tls, sasl=self._sasl)
        try:
            await self._start(cluster)
        except BaseException:
            await cluster.close()
            raise

    async def _start(self, cluster: Cluster) -> None:
        deadline_s = self._deadline_s()
        metadata = await self._topic.found(cluster, deadline_s)
        name = "producer.id.expiration.ms"
        found = await self._topic.broker_setting(cluster, name, deadline_s)
        if found is None:
            text = (
                f"taken for Kafka's default; allow this node DescribeConfigs on the cluster if {name} is less"
            )
            self._log.warning("setting not known", setting=name, text=text)
        expiration_s = int(found or PRODUCER_ID_EXPIRATION_MS) / 1000
        interval_s = min(CLAIM_INTERVAL_S, expiration_s / CLAIMS_PER_EXPIRATION)
        replicate_ms = max(1, round(self._timeout_s * 1000 / REPLICATE_TRIES))
        sender = Sender(cluster, self._topic.name, replicate_ms, FORGOTTEN_CLAIMS * interval_s)
        sender.leaders.learn(metadata)
        self._parts = _Parts(
            cluster,
            sender,
            Ownership(cluster, sender, self._topic.name, self._prefix),
            Replay(sender.leaders, self._topic.name),
            asyncio.get_running_loop().create_task(self._claim_again(interval_s)),
            asyncio.get_running_loop().create_task(self._look_again(cluster, sender.leaders)),
        )

    async def open(self, partition: int, epoch: int) -> int:
        """See `Storage.open`. `epoch` does not matter: the cluster gives them out."""
        parts = self._started()
        self._forget(partition)
        claim = self._claim()
        deadline_s = self._deadline_s()
        writer, offset = await parts.ownership.take(partition, claim, deadline_s)
        leaders = parts.sender.leaders
        await until(deadline_s, f"looking for topic {self._topic.name}", leaders.look)
        self._check_same(leaders)
        self._open[partition] = _Open(writer, writer.epoch, offset)
        return writer.epoch

    async def release(self, partition: int) -> None:
        """See `Storage.release`. No message is sent: the next owner need not wait for anything."""
        self._forget(partition)

    async def replay(self, partition: int) -> AsyncIterator[list[Row]]:
        """See `Storage.replay`. Up to the claim that `open` has written. FORMAT: a newer version of this
        program has written to the partition."""
        parts, opened = self._started(), self._opened(partition)
        rows = LogRows(opened.writer.name, opened.claim_offset)
        async for chunk in parts.replay.read(partition, rows, self._timeout_s):
            yield chunk
        if rows.stale:
            self._log.warning(
                "rows left out", partition=partition, rows=rows.stale, text="of no owner's epoch"
            )

    async def append(self, batches: Sequence[Batch]) -> list[int]:
        """See `Storage.append`. All batches are of one partition and epoch.

        Waits until it is acknowledged; to give that up, cancel it and release the partition. FENCED: another
        node owns the partition, or this one opened it again. AWAY: the log has lost what was acknowledged, or
        refuses this node. After both, as after TOO_LARGE, nothing more is taken until the partition is opened
        again.
        """
        parts = self._started()
        [(partition, epoch)] = {(partition, epoch) for partition, epoch, _ in batches}
        opened = self._opened(partition)
        if opened.epoch != epoch:
            raise StorageError(Failure.FENCED, f"{opened.writer.name}: epoch {epoch}, not {opened.epoch}")
        ends: list[tuple[int, int]] = []
        """Of each batch: which of those that are written has its last record, and where in it."""
        divided = _divided(batches, self._topic.record_bytes, ends)
        written = [opened.writer.add(records) for records in divided]
        parts.sender.ready(opened.writer)
        if len(written) == 1:
            offsets = [await written[0]]
        else:
            offsets = await asyncio.gather(*written)
        return [offsets[number] + index for number, index in ends]

    async def probe(self) -> None:
        """See `Storage.probe`. Nothing here fails with DISK_FULL."""
        self._started()

    async def close(self) -> None:
        """See `Storage.close`. The runtime has waited for what is under way; what is not acknowledged by now
        has failed."""
        parts, self._parts = self._parts, None
        for partition in list(self._open):
            self._forget(partition)
        if parts is not None:
            parts.claims.cancel()
            parts.looks.cancel()
            await asyncio.wait([parts.claims, parts.looks])
            await parts.sender.close()
            await parts.cluster.close()

    # ---- inside ----

    def _started(self) -> _Parts:
        if self._parts is None:
            raise StorageError(Failure.CLOSED)
        if self._failed is not None:
            raise self._failed
        return self._parts

    def _opened(self, partition: int) -> _Open:
        opened = self._open.get(partition)
        if opened is None:
            raise StorageError(Failure.CLOSED, f"partition {partition} is not open")
        return opened

    def _forget(self, partition: int) -> None:
        opened = self._open.pop(partition, None)
        if opened is not None:
            opened.writer.end(Failure.CLOSED, "it was given up")

    def _deadline_s(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s

    def _claim(self) -> Claim:
        return self._owner._replace(wall_ms=int(time.time() * 1000))

    def _check_same(self, leaders: Leaders) -> None:
        """Raises `StorageError` (UNFIT) when the topic was deleted and made again, and is done with it."""
        if len(leaders.topic_ids) < 2:
            return
        if self._failed is None:
            text = f"topic {self._topic.name} was deleted and made again: what it had is gone"
            self._failed = StorageError(Failure.UNFIT, text)
            for opened in self._open.values():
                opened.writer.end(Failure.UNFIT, text)
            if self._on_failed is not None:
                self._on_failed(self._failed)
        raise self._failed

    async def _look_again(self, cluster: Cluster, leaders: Leaders) -> None:
        """A topic that is another one ends all; one that is not as it has to be is logged."""
        reported_s = float("-inf")
        while self._failed is None:
            await asyncio.sleep(LOOK_S)
            deadline_s = self._deadline_s()
            try:
                metadata = await self._topic.place(cluster, deadline_s)
                leaders.learn(metadata)
                self._check_same(leaders)
                await self._topic.check(cluster, metadata, deadline_s)
            except StorageError as error:
                now_s = asyncio.get_running_loop().time()
                if now_s - reported_s >= REPORT_AGAIN_S and self._failed is None:
                    reported_s = now_s
                    self._log.error("the groups' topic is not as it has to be", reason=str(error))
            except Exception:
                self._log.exception("the groups' topic was not looked at")
            else:
                reported_s = float("-inf")

    async def _claim_again(self, interval_s: float) -> None:
        """A writer that does not get its claim through has ended, and the next append says so."""
        while True:
            await asyncio.sleep(interval_s)
            for opened in list(self._open.values()):
                with contextlib.suppress(StorageError):
                    record = CLAIM_KEY, self._claim().encode()
                    written = opened.writer.add([record])
                    self._started().sender.ready(opened.writer)
                    await written


@dataclass(slots=True)
class _Parts:
    """The parts from `start` to `close`."""

    cluster: Cluster
    sender: Sender
    ownership: Ownership
    replay: Replay
    claims: asyncio.Task[None]
    looks: asyncio.Task[None]


def _divided(
    batches: Sequence[Batch], most_bytes: int, ends: list[tuple[int, int]]
) -> Iterator[list[Record]]:
    """The records of one append, in pieces of at most BATCH_BYTES. Those of one batch stay together unless
    they are more than `most_bytes`."""
    records: list[Record] = []
    size, number = 0, 0
    for _, _, of_one in batches:
        sizes = [len(key) + len(value or b"") + RECORD_BYTES for key, value in of_one]
        whole = sum(sizes)
        if records and size + whole > BATCH_BYTES:
            yield records
            records, size, number = [], 0, number + 1
        if whole <= most_bytes:
            records += of_one
            size += whole
        else:
            for record, record_bytes in zip(of_one, sizes, strict=True):
                if records and size + record_bytes > most_bytes:
                    yield records
                    records, size, number = [], 0, number + 1
                records.append(record)
                size += record_bytes
        ends.append((number, len(records) - 1))
    if records:
        yield records

"""The topics that a producer writes to: their partitions, who leads them, and which one a record goes to."""

from __future__ import annotations

import asyncio
import logging
import random
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from ringleader.clients.checks import whole
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.metadata import TopicMetadata
from ringleader.clients.errors import BrokerError, ClientError, RetriableError, is_retriable
from ringleader.clients.model import Node, TopicPartition
from ringleader.clients.produce.errors import SendTimeoutError, UnknownPartitionError
from ringleader.clients.produce.model import ProducerSettings
from ringleader.clients.produce.partitioner import Turns, partition_of_key
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.schema import ZERO_UUID

logger = logging.getLogger("ringleader.clients.produce")


STICKY_BYTES = 16_384
"""Records without a key stay with a partition for this number of bytes, or a batch if it is smaller."""


class Sticky:
    """Where records without a key go: to one partition for some bytes, then to the next (KIP-794). `filled`
    learns the partition if its batch has no room for another round: it waits for no more."""

    def __init__(self, known: TopicMetadata, batch_bytes: int, filled: Callable[[int], None]) -> None:
        self.known, self._available = known, _available(known)
        self._filled = filled if batch_bytes <= STICKY_BYTES else None
        order = list(self._available)
        random.shuffle(order)
        self._turns = Turns(order, min(batch_bytes, STICKY_BYTES))

    @property
    def turns(self) -> Turns | None:
        """The part that tells the partition of a record; None: only `take` tells it."""
        return self._turns if self._filled is None else None

    def fits(self, known: TopicMetadata) -> bool:
        """Whether the partitions that have a leader are still those."""
        if known is not self.known and self._available == _available(known):
            self.known = known
        return known is self.known

    def take(self, size_bytes: int) -> int:
        """The partition of a record."""
        if self._filled is not None and self._turns.over(size_bytes):
            self._filled(self._turns.current)
        return self._turns.take(size_bytes)


@dataclass(slots=True)
class _Line:
    """Calls that wait for one topic, in their order."""

    lock: asyncio.Lock
    calls: int = 0
    calls_in_all: int = 0
    """Those that went on included."""
    refusal: BrokerError | None = None
    """The last answer that refused one of them."""
    refused: int = 0
    """Of all calls, the number that were there when it was asked for: it is theirs, too."""


def _available(known: TopicMetadata) -> list[int]:
    led = [one.partition for one in known.partitions if one.leader >= 0]
    return led or [one.partition for one in known.partitions]


class Topics:
    """Belongs to one event loop. `run` keeps what is known up to date; `changed` is called then. `filled`
    is called with a partition that gets no more records without a key for now."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        changed: Callable[[], None],
        filled: Callable[[TopicPartition], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._changed = changed
        self._filled = filled
        self._known: dict[str, TopicMetadata] = {}
        self._nodes: dict[int, Node] = {}
        self._sticky: dict[str, Sticky] = {}
        self._stale = asyncio.Event()
        self._lines: dict[str, _Line] = {}
        """The calls that wait for topics that were not known."""

    def leader(self, tp: TopicPartition) -> Node | None:
        """The node to write to; None: there is none now, and it is looked for."""
        known = self._known.get(tp[0])
        found = None
        if known is not None and tp[1] < len(known.partitions):
            found = self._nodes.get(known.partitions[tp[1]].leader)
        if found is None:
            self._stale.set()
        return found

    def topic_id(self, topic: str) -> bytes:
        """The id to write to it by; zero: it has none."""
        known = self._known.get(topic)
        return ZERO_UUID if known is None else known.id

    def stale(self) -> None:
        """Something is not as it was thought to be."""
        self._stale.set()

    def count(self, topic: str) -> int | None:
        """The number of partitions; None: not known yet."""
        known = self._known.get(topic)
        return None if known is None else len(known.partitions)

    def is_awaited(self, topic: str) -> bool:
        """Whether earlier calls wait for the topic, or are about to go on: a later one goes behind them."""
        return topic in self._lines

    async def _await(self, topic: str, deadline_s: float) -> None:
        """Learn of a topic, one call after the other: their records keep the order of the calls. Raises what
        `look` raises."""
        line = self._lines.setdefault(topic, _Line(asyncio.Lock()))
        line.calls += 1
        place = line.calls_in_all = line.calls_in_all + 1
        try:
            try:
                async with asyncio.timeout_at(deadline_s):
                    await line.lock.acquire()
            except TimeoutError:
                raise self._not_known(topic, "an earlier call looks for it") from None
            try:
                if topic not in self._known:
                    await self._look_for(line, place, topic, deadline_s)
            finally:
                line.lock.release()
        finally:
            line.calls -= 1
            if not line.calls:
                del self._lines[topic]

    async def _look_for(self, line: _Line, place: int, topic: str, deadline_s: float) -> None:
        if line.refusal is not None and place <= line.refused:
            raise BrokerError(str(line.refusal), line.refusal.code) from line.refusal
        calls = line.calls_in_all
        try:
            await self.look(topic, deadline_s)
        except BrokerError as error:
            line.refusal, line.refused = error, calls
            raise

    def _not_known(self, topic: str, why: str) -> SendTimeoutError:
        waited = f"{self._settings.max_block_ms} ms (max_block_ms)"
        return SendTimeoutError(f"topic {topic} is not known after {waited}: {why}")

    async def look(self, topic: str, deadline_s: float) -> None:
        """Learn of a topic; brokers that make topics by themselves make it. Raises SendTimeoutError, and
        BrokerError for one that may not be written to."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms, random.random)
        loop, why = asyncio.get_running_loop(), "no broker has answered"
        while True:
            try:
                code = await self._ask({topic}, deadline_s, topic)
                if not code:
                    return
                why = error_name(code)
                if not is_retriable(code) or code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                    raise BrokerError(f"topic {topic} cannot be written to: {why}", code)
            except RetriableError as error:
                why = str(error)
            wait_s = backoff.next_ms() / 1000
            if loop.time() + wait_s >= deadline_s:
                raise self._not_known(topic, why)
            await asyncio.sleep(wait_s)

    async def _ask(self, names: set[str], deadline_s: float, create: str | None = None) -> int:
        """The error code of the topic that is looked for."""
        found = await self._cluster.metadata(names, deadline_s=deadline_s, create=create is not None)
        self._nodes = dict(found.brokers)
        code = 0
        for name, topic in found.topics.items():
            if topic.partitions and not topic.error_code:
                self._known[name] = topic
            elif name == create:
                code = topic.error_code or ErrorCode.LEADER_NOT_AVAILABLE
        self._changed()
        return code

    async def run(self) -> None:
        """Look again when something is stale, and when what is known is old. Until cancelled."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms, random.random)
        while True:
            began_s = time.monotonic()
            try:
                async with asyncio.timeout(self._settings.metadata_max_age_ms / 1000):
                    await self._stale.wait()
            except TimeoutError:
                pass
            self._stale.clear()
            if time.monotonic() - began_s > self._settings.retry_backoff_max_ms / 1000:
                backoff.reset()  # all was as it was thought to be for a while
            if self._known:
                try:
                    await self._ask(set(self._known), asyncio.get_running_loop().time() + 30)
                except ClientError as error:
                    logger.warning("topics cannot be looked at, trying again: %s", error)
                    self._stale.set()
            await asyncio.sleep(backoff.next_ms() / 1000)

    def sticky(self, topic: str) -> Sticky | None:
        """Where its records without a key go; None: `partition` has to tell first."""
        found = self._sticky.get(topic)
        return found if found is not None and found.known is self._known.get(topic) else None

    async def partition(
        self, topic: str, key: bytes | None, named: int | None, size_bytes: int, deadline_s: float
    ) -> int:
        """The partition of a record. Raises UnknownPartitionError, what `look` raises, and what a partitioner
        raises."""
        if topic not in self._known or topic in self._lines:
            await self._await(topic, deadline_s)
        chosen = self._chosen(topic, key, named, size_bytes)
        if chosen >= len(self._known[topic].partitions):
            await self.look(topic, deadline_s)  # it may have more by now
        count = len(self._known[topic].partitions)
        if not 0 <= chosen < count:
            by = "a record names" if named is not None else "the partitioner chose"
            raise UnknownPartitionError(
                f"{by} partition {chosen} of topic {topic}, which has partitions 0 to {count - 1}"
            )
        return chosen

    def _chosen(self, topic: str, key: bytes | None, named: int | None, size_bytes: int) -> int:
        if named is not None:
            return named
        known, by = self._known[topic], self._settings.partitioner
        count = len(known.partitions)
        if callable(by):
            return whole("a partition", by(topic, key, count))
        if by == "murmur2" and key is not None:
            return partition_of_key(key, count)
        if by == "consistent_random" and key:
            return zlib.crc32(key) % count
        sticky = self._sticky.get(topic)
        if sticky is None or not sticky.fits(known):
            filled, size = self._filled, self._settings.batch_size
            sticky = Sticky(known, size, lambda partition: filled((topic, partition)))
            self._sticky[topic] = sticky
        return sticky.take(size_bytes)

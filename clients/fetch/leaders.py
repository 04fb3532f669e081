"""The leaders of partitions, kept up to date; and the offsets that leaders know."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.failures import Failures
from ringleader.clients.connection.metadata import TopicMetadata
from ringleader.clients.connection.requests import Request, by_topic, in_parts, plain
from ringleader.clients.errors import BrokerError, ClientError, RetriableError, UnsupportedVersionError
from ringleader.clients.model import Node, TopicPartition
from ringleader.clients.offsets.list_offsets import list_offsets, listed_offsets
from ringleader.protocol.errors import LEADER_MOVED, ErrorCode, error_name
from ringleader.protocol.messages import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
)
from ringleader.protocol.schema import ZERO_UUID

logger = logging.getLogger("ringleader.clients.consumer")

MOVED = LEADER_MOVED | {
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.LISTENER_NOT_FOUND,
}
"""Answers that say: look again who leads the partition."""

CANNOT_VALIDATE = frozenset({ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
"""Answers of brokers without OffsetForLeaderEpoch for consumers: before 2.3 it was for other brokers only."""

DEFAULT_MAX_AGE_MS = 300_000
REFRESH_MS, REFRESH_MAX_MS = 100, 1_000


@dataclass(slots=True)
class _Leader:
    node: Node | None
    epoch: int
    topic_id: bytes


class Leaders:
    """Leaders of the partitions of some topics. `run` keeps them fresh; belongs to the cluster's loop.

    `on_change(partition, epoch changed, topic is another one)` is called for each partition after each look.
    """

    def __init__(
        self,
        cluster: Cluster,
        on_change: Callable[[TopicPartition, bool, bool], None],
        on_refused: Callable[[str, int], None],
        max_age_ms: int = DEFAULT_MAX_AGE_MS,
    ) -> None:
        """`on_refused(topic, code)`: the cluster does not have the topic, or not for this client."""
        self._cluster = cluster
        self._on_change = on_change
        self._on_refused = on_refused
        self._max_age_s = max_age_ms / 1000
        self._known: dict[TopicPartition, _Leader] = {}
        self._brokers: Mapping[int, Node] = {}
        self._wanted: set[str] = set()
        self._also: set[str] = set()
        self._missing: set[str] = set()
        self._wake = asyncio.Event()
        self._looked = asyncio.Event()
        self._failures = Failures()
        self._backoff = Backoff(REFRESH_MS, REFRESH_MAX_MS, random.random)
        self._without_epochs: set[Node] = set()

    def watch(self, topics: Iterable[str]) -> None:
        """The topics to know about from now on."""
        self._wanted = set(topics) | self._also
        for tp in [tp for tp in self._known if tp[0] not in self._wanted]:
            del self._known[tp]
        if any(topic not in {tp[0] for tp in self._known} for topic in self._wanted):
            self._wake.set()

    def watch_also(self, topics: Iterable[str]) -> None:
        """More topics to know about."""
        self._also.update(topics)
        self.watch(self._wanted)

    def node(self, tp: TopicPartition) -> Node | None:
        """The leader of the partition; None: not known, and being looked up."""
        known = self._known.get(tp)
        if known is None or known.node is None:
            self._wake.set()
            return None
        return known.node

    def broker(self, node_id: int) -> Node | None:
        """A broker by its id."""
        return self._brokers.get(node_id)

    def epoch(self, tp: TopicPartition) -> int:
        """The leader epoch; -1: not known."""
        known = self._known.get(tp)
        return -1 if known is None else known.epoch

    def topic_id(self, tp: TopicPartition) -> bytes | None:
        """The id of its topic; None: not known now."""
        known = self._known.get(tp)
        return None if known is None or known.node is None else known.topic_id

    def fetched_id(self, tp: TopicPartition) -> bytes:
        """The id to fetch it by, also from a follower while no leader is known; zero: it has none."""
        known = self._known.get(tp)
        return ZERO_UUID if known is None else known.topic_id

    def stale(self, tp: TopicPartition) -> None:
        """The known leader of this partition does not hold any more."""
        known = self._known.get(tp)
        if known is not None:
            known.node = None
        self._wake.set()

    async def looked(self) -> None:
        """Wait for the next look, if there is reason for one."""
        self._wake.set()
        await self._looked.wait()

    async def run(self) -> None:
        """Look when asked to, and when what is known is old."""
        while True:
            try:
                async with asyncio.timeout(self._max_age_s):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            if self._wanted:
                await self._look()
            # A client that is rejected by a broker with old metadata must not ask all the time.
            await asyncio.sleep(self._backoff.next_ms() / 1000)

    async def _look(self) -> None:
        wanted = sorted(self._wanted)
        try:
            metadata = await self._cluster.metadata(wanted)
        except (RetriableError, BrokerError) as error:
            if (line := self._failures.failed(error, time.monotonic())) is not None:
                logger.warning("the topics' leaders cannot be looked up: %s", line)
            self._wake.set()
            return
        self._brokers = metadata.brokers
        complete = True
        for name in wanted:
            topic = metadata.topics.get(name)
            if topic is None or name not in self._wanted:
                continue
            complete = self._take(topic) and complete
        if complete:
            self._backoff.reset()
        else:
            self._wake.set()  # one that waits for a leader is woken by one only
        self._looked.set()
        self._looked = asyncio.Event()

    def _take(self, topic: TopicMetadata) -> bool:
        """Learn about one topic; whether there is no reason to look again soon."""
        if topic.error_code:
            self._cannot_see(topic.name, topic.error_code)
            return topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if topic.name in self._missing:
            self._missing.discard(topic.name)
            logger.info("topic %s is there now", topic.name)
        complete = True
        for part in topic.partitions:
            tp = (topic.name, part.partition)
            node = self._brokers.get(part.leader)
            known = self._known.get(tp)
            changed = again = False
            if known is None:
                self._known[tp] = _Leader(node, part.leader_epoch, topic.id)
            else:
                again = known.topic_id != topic.id
                # A broker that lags behind may still tell of an earlier leader.
                if part.leader_epoch < known.epoch and part.leader_epoch >= 0 and not again:
                    complete = complete and known.node is not None
                    continue
                changed = part.leader_epoch > known.epoch
                known.node, known.epoch, known.topic_id = node, part.leader_epoch, topic.id
            complete = complete and node is not None
            self._on_change(tp, changed, again)
        return complete

    def _cannot_see(self, topic: str, code: int) -> None:
        for tp, known in self._known.items():
            if tp[0] == topic:
                known.node = None
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED or code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._on_refused(topic, code)
        if code != ErrorCode.TOPIC_AUTHORIZATION_FAILED and topic not in self._missing:
            self._missing.add(topic)
            logger.warning("topic %s cannot be read now (%s): waiting for it", topic, error_name(code))

    # ---- offsets ----

    async def list_offsets(
        self, times: Mapping[TopicPartition, int], committed_only: bool
    ) -> tuple[dict[TopicPartition, tuple[int, int, int]], dict[TopicPartition, int]]:
        """By partition: (offset, timestamp in ms, leader epoch) of the first record at or after that time;
        and the error codes of those that cannot tell. Partitions without a leader are in neither.

        ListOffsets (API 2). Raises no errors of brokers and connections: those partitions are left out.
        """
        found: dict[TopicPartition, tuple[int, int, int]] = {}
        errors: dict[TopicPartition, int] = {}

        def request(tps: list[TopicPartition]) -> Request:
            epochs = {tp: self.epoch(tp) for tp in tps}
            return list_offsets({tp: times[tp] for tp in tps}, epochs=epochs, committed_only=committed_only)

        answers, not_served = await self._ask(times, request)
        errors |= dict.fromkeys(not_served, int(ErrorCode.UNSUPPORTED_VERSION))
        for answer in answers:
            for tp, one in listed_offsets(answer).items():
                if one.code:
                    errors[tp] = one.code
                else:
                    found[tp] = (one.offset, one.timestamp, one.leader_epoch)
        self._note(errors)
        return found, errors

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """By partition: where that leader epoch ends (-1: the leader does not know it, or does not serve this
        API: there is nothing to validate by); and error codes.

        OffsetForLeaderEpoch (API 23, KIP-320).
        """
        found: dict[TopicPartition, int] = {}
        errors: dict[TopicPartition, int] = {}

        def request(tps: list[TopicPartition]) -> Request:
            topics = [
                OffsetForLeaderEpochRequestOffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderEpochRequestOffsetForLeaderPartition(
                            partition=p,
                            current_leader_epoch=self.epoch((topic, p)),
                            leader_epoch=epochs[topic, p],
                        )
                        for p in partitions
                    ],
                )
                for topic, partitions in by_topic(tps).items()
            ]
            return plain(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics))

        answers, not_served = await self._ask(epochs, request)
        for tp in not_served:
            self._cannot_validate(tp)
            found[tp] = -1
        for answer in answers:
            for topic in answer.topics:
                for part in topic.partitions:
                    tp = (topic.topic, part.partition)
                    if part.error_code in CANNOT_VALIDATE:
                        self._cannot_validate(tp)
                        found[tp] = -1
                    elif part.error_code:
                        errors[tp] = part.error_code
                    else:
                        found[tp] = part.end_offset
        self._note(errors)
        return found, errors

    def _cannot_validate(self, tp: TopicPartition) -> None:
        node = self.node(tp)
        if node is not None and node not in self._without_epochs:
            self._without_epochs.add(node)
            logger.warning(
                "%s does not serve OffsetForLeaderEpoch: after a change of leader its partitions are read on "
                "without validation",
                node,
            )

    def _note(self, errors: Mapping[TopicPartition, int]) -> None:
        for tp, code in errors.items():
            if code in MOVED:
                self.stale(tp)

    async def _ask(
        self, tps: Iterable[TopicPartition], request: Callable[[list[TopicPartition]], Request]
    ) -> tuple[list[Any], list[TopicPartition]]:
        """The answers of all leaders that answer, and the partitions whose leaders do not serve this API."""
        not_served: list[TopicPartition] = []
        by_node: dict[Node, list[TopicPartition]] = {}
        for tp in tps:
            node = self.node(tp)
            if node is not None:
                by_node.setdefault(node, []).append(tp)

        async def one(node: Node, requested: list[TopicPartition]) -> Any | None:
            try:
                return await self._cluster.send(node, request(requested))
            except RetriableError as error:
                logger.info("%s does not give offsets: %s", node, error)
                for tp in requested:
                    self.stale(tp)
                return None
            except UnsupportedVersionError:
                not_served.extend(requested)
                return None
            except ClientError as error:
                logger.warning("%s does not give offsets: %s", node, error)
                return None

        answers = await asyncio.gather(
            *(one(node, part) for node, requested in by_node.items() for part in in_parts(requested))
        )
        return [answer for answer in answers if answer is not None], not_served

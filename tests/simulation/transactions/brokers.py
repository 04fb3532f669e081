"""Brokers that know transactions: topics with leaders that move, a log that is compacted, Fetch that waits,
and the coordinators of transactional ids (see `coordination`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ringleader.clients.connection.metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from ringleader.coordinator.topics.transactional import marker
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import BatchView, encode_record, header_of, iter_batches
from tests.simulation.nodes.kafka import _FOR_NOW, TOPIC, Kafka, Partition
from tests.simulation.transactions.coordination import STATE_PARTITIONS, STATE_TOPIC, Coordination

if TYPE_CHECKING:
    from tests.simulation.nodes.node import Node
    from tests.simulation.transactions.world import TxnWorld

SECURITY_TOPIC = "__ringleader_security"
ORDERS = "orders"
ORDERS_PARTITIONS = 3
BROKERS = 3
_LATEST = -1


class Log(Partition):
    """A partition of any topic."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._waiting: list[Callable[[], None]] = []

    def mark(self, producer_id: int, epoch: int, time_ms: int, committed: bool) -> int:
        """The marker of a transaction; its offset."""
        data = marker(producer_id, epoch, time_ms, committed=committed)
        offset = self.end
        self.end += 1
        self.batches.append((self.end, offset.to_bytes(8, "big") + data[8:]))
        return offset

    def wait(self, ring: Callable[[], None]) -> None:
        """Somebody wants to know of the next append."""
        self._waiting.append(ring)

    def ring(self) -> list[Callable[[], None]]:
        """The waiting callbacks, which do not wait any more."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def compact(self, known: int, done: int) -> int:
        """As the log's cleaner does it up to offset `done`, by what it knew of the log up to `known`; how
        many records went. Markers stay for a day, and so does what removes a key."""
        last: dict[bytes | None, int] = {}
        views = [next(iter_batches(data)) for _, data in self.batches]
        for view in views:
            for record in () if view.header.is_control else view.records():
                if record.offset < known:
                    last[record.key] = record.offset
        kept: list[tuple[int, bytes]] = []
        removed = 0
        for (end, data), view in zip(self.batches, views, strict=True):
            if end > done or view.header.is_control:
                kept.append((end, data))
                continue
            left = [record for record in view.records() if last[record.key] == record.offset]
            removed += view.header.record_count - len(left)
            if len(left) == view.header.record_count:
                kept.append((end, data))
            elif left:
                kept.append((end, _thinned(view, left)))
        self.batches = kept
        return removed


def _thinned(view: BatchView, left: list[Any]) -> bytes:
    header = view.header
    body = b"".join(
        encode_record(one, one.offset - header.base_offset, one.timestamp_ms - header.base_timestamp)
        for one in left
    )
    before = header_of(
        body,
        header.base_offset,
        header.leader_epoch,
        header.attributes & ~7,  # not compressed any more
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        (header.producer_id, header.producer_epoch, header.base_sequence),
        len(left),
    )
    return before + body


class TxnKafka(Kafka):
    """Three brokers."""

    world: TxnWorld

    def __init__(self, world: TxnWorld, partitions: int) -> None:
        super().__init__(world, partitions, BROKERS)
        self.logs = {(TOPIC, number): Log(number) for number in range(partitions)}
        self.partitions = cast("list[Partition]", list(self.logs.values()))
        self.security = self.logs[SECURITY_TOPIC, 0] = Log(0)
        others = {(STATE_TOPIC, number) for number in range(STATE_PARTITIONS)}
        others |= {(ORDERS, number) for number in range(ORDERS_PARTITIONS)}
        self.leading = {place: world.rng.randint(1, BROKERS) for place in sorted({*self.logs, *others})}
        """Of each partition of a topic the broker that leads it."""
        self.short: set[tuple[str, int]] = set()
        """Partitions with too few replicas in sync: nothing is written to them."""
        self.coordination = Coordination(self)
        self._answers[kafka.MetadataRequest] = self._metadata

    def answer(self, node: Node, request: Any, broker: int) -> Any:
        """See `Kafka`."""
        if isinstance(request, kafka.ProduceRequest):
            return self._produced(node, request, broker)
        if isinstance(request, kafka.FetchRequest):
            return self._fetched(request, broker)
        if isinstance(request, kafka.ListOffsetsRequest):
            return self._listed(request, broker)
        coordinated = self.coordination.answer(request, broker)
        return super().answer(node, request, broker) if coordinated is None else coordinated

    def names(self) -> dict[str, dict[int, int]]:
        """Topic -> partition -> leader."""
        found: dict[str, dict[int, int]] = {}
        for (topic, number), leader in self.leading.items():
            found.setdefault(topic, {})[number] = leader
        return found

    # ---- metadata ----

    def metadata(self) -> ClusterMetadata:
        """See `Kafka`."""
        topics = {}
        for name, leaders in self.names().items():
            parts = tuple(
                PartitionMetadata(number, leader, 0, (leader,), (leader,))
                for number, leader in leaders.items()
            )
            topics[name] = TopicMetadata(name, _topic_id(name), False, parts)
        return ClusterMetadata(1, self.brokers, topics)

    def _metadata(self, node: Node, request: kafka.MetadataRequest) -> Any:
        names = self.names()
        topics = []
        for wanted in request.topics or ():
            if wanted.name is None or wanted.name not in names:
                code = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                topics.append(kafka.MetadataResponseTopic(code, wanted.name or "", wanted.topic_id))
                continue
            parts = [
                kafka.MetadataResponsePartition(
                    partition_index=number, leader_id=leader, replica_nodes=[leader], isr_nodes=[leader]
                )
                for number, leader in names[wanted.name].items()
            ]
            topics.append(
                kafka.MetadataResponseTopic(0, wanted.name, _topic_id(wanted.name), partitions=parts)
            )
        brokers = [kafka.MetadataResponseBroker(*broker) for broker in self.brokers.values()]
        return kafka.MetadataResponse(brokers=brokers, controller_id=1, topics=topics)

    # ---- records ----

    def _wrong_leader(self, place: tuple[str, int], broker: int) -> int:
        return 0 if self.leading.get(place) == broker else int(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _produced(self, node: Node, request: kafka.ProduceRequest, broker: int) -> Any:
        topics = []
        for topic in request.topic_data:
            answers = []
            for one in topic.partition_data:
                place = topic.name, one.index
                code, offset = self._wrong_leader(place, broker), -1
                if not code and place in self.short:
                    code = int(ErrorCode.NOT_ENOUGH_REPLICAS)
                if not code and self._unlucky(0.01):
                    code = int(self.world.rng.choice(_FOR_NOW))
                if not code:
                    code, offset = self.append(node, place, bytes(one.records or b""))
                    if not code and self._unlucky(0.005):  # its effect is there
                        code, offset = int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), -1
                answers.append(
                    kafka.ProduceResponsePartitionProduceResponse(one.index, code, base_offset=offset)
                )
            topics.append(kafka.ProduceResponseTopicProduceResponse(topic.name, partition_responses=answers))
        return kafka.ProduceResponse(responses=topics)

    def append(self, node: Node, place: tuple[str, int], data: bytes) -> tuple[int, int]:
        """Error code and offset of a batch."""
        log, counts = self.logs[place], self.world.checks.counts
        code, offset, rows = log.produce(node, data)
        if place[0] == TOPIC:
            before = counts["commits of transactions"]
            self.world.checks.appended(node, log, int(code), rows)
            if counts["commits of transactions"] > before:
                self.world.transaction_took_effect(node, place[1])
        self.tell(log)
        return int(code), offset

    def tell(self, log: Log) -> None:
        """There is something new."""
        for one in log.ring():
            self.world.later(0, one)

    def park(self, request: kafka.FetchRequest, broker: int, go: Callable[[], None]) -> bool:
        """Whether there is nothing to fetch yet: then `go` is called when there is, or it took too long."""
        [topic] = request.topics
        [wanted] = topic.partitions
        place = topic.topic, wanted.partition
        if self._wrong_leader(place, broker) or self.logs[place].end > wanted.fetch_offset:
            return False
        waiting = [go]

        def ring() -> None:
            if waiting:
                waiting.pop()()

        self.logs[place].wait(ring)
        self.world.later(request.max_wait_ms, ring)
        return True

    def _fetched(self, request: kafka.FetchRequest, broker: int) -> Any:
        [topic] = request.topics
        [wanted] = topic.partitions
        place = topic.topic, wanted.partition
        code = self._wrong_leader(place, broker)
        log = self.logs[place]
        data = kafka.FetchResponsePartitionData(
            partition_index=wanted.partition,
            error_code=code,
            high_watermark=log.end,
            records=b"" if code else log.fetch(wanted.fetch_offset),
        )
        answer = kafka.FetchResponseFetchableTopicResponse(topic.topic, partitions=[data])
        return kafka.FetchResponse(responses=[answer])

    def _listed(self, request: kafka.ListOffsetsRequest, broker: int) -> Any:
        [topic] = request.topics
        [wanted] = topic.partitions
        place = topic.name, wanted.partition_index
        found = kafka.ListOffsetsResponseListOffsetsPartitionResponse(
            wanted.partition_index,
            error_code=self._wrong_leader(place, broker),
            offset=self.logs[place].end if wanted.timestamp == _LATEST else 0,
        )
        answer = kafka.ListOffsetsResponseListOffsetsTopicResponse(topic.name, [found])
        return kafka.ListOffsetsResponse(topics=[answer])

    # ---- what happens to them ----

    def move_leader(self) -> None:
        """Another broker leads one of the partitions."""
        rng = self.world.rng
        place = rng.choice(sorted(self.leading))
        self.leading[place] = rng.randint(1, BROKERS)
        self.world.say("leader", (place, self.leading[place]))
        if place[0] == STATE_TOPIC:
            self.coordination.moved(place[1])

    def shorten(self, place: tuple[str, int], for_s: float) -> None:
        """A partition has too few replicas for a while."""
        self.world.say("short", (place, for_s))
        self.short.add(place)
        self.world.at(self.world.time_s + for_s, partial(self.short.discard, place))

    def compact_one(self) -> None:
        """The cleaner comes by."""
        self.compact(self.world.rng.choice(sorted(self.logs)))

    def compact(self, place: tuple[str, int]) -> None:
        """A part of that log."""
        rng, log = self.world.rng, self.logs[place]
        known = rng.randint(0, log.end)
        self.world.checks.counts["compacted"] += log.compact(known, rng.randint(0, known)) > 0


def _topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b".")[:16]

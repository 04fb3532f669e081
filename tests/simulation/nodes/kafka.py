"""The cluster behind the nodes: partitions of one topic with the fencing of Apache Kafka, and the network on
the way there.

A partition's leader knows its producers by their ids: the newest epoch of each, and their last batches. An
older epoch is refused from a newer one's first batch on; the same batch again is answered with the offset
that it has. Epochs are given out by the transaction coordinator (InitProducerId), which writes nothing to the
partition.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ringleader.clients.connection.metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import ConnectionLostError, RequestTimedOutError
from ringleader.clients.model import Node as Broker
from ringleader.coordinator.storage.kafka.format import CLAIM, FENCE_EPOCH
from ringleader.protocol import messages as kafka
from ringleader.protocol.columns import Columns, append_columns
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import iter_batches

if TYPE_CHECKING:
    from tests.simulation.nodes.node import Node
    from tests.simulation.nodes.world import NodesWorld

TOPIC = "__ringleader_groups"
BROKER = Broker(1, "broker", 9092)
_REMEMBERED_BATCHES = 5
_CLAIM_TYPE = CLAIM.to_bytes(2, "big")
_CONFIGS = {
    "cleanup.policy": "compact",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
    "max.message.bytes": "100000000",
    "message.timestamp.type": "LogAppendTime",
    "delete.retention.ms": "86400000",
    "producer.id.expiration.ms": "86400000",
}
_FOR_NOW = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
)


class Row(NamedTuple):
    """A record as the log has it."""

    offset: int
    producer_id: int
    epoch: int
    key: bytes
    value: bytes | None


@dataclass
class Producer:
    """The leader's knowledge of a producer."""

    epoch: int
    batches: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_BATCHES))
    """First and last sequence number, offset."""


class Partition:
    """One of the groups' topic, on its leader."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.batches: list[tuple[int, bytes]] = []
        """Offset after the last record; the batch."""
        self.rows: list[Row] = []
        """Without claims."""
        self.claims: list[tuple[int, Node, int, int]] = []
        """Offset, who wrote it, producer id, epoch."""
        self.end = 0
        self.producers: dict[int, Producer] = {}

    @property
    def owner(self) -> tuple[Node, int, int] | None:
        """The producer that has claimed it last."""
        return self.claims[-1][1:] if self.claims else None

    def produce(self, node: Node, data: bytes) -> tuple[int, int, list[Row]]:
        """Error code, base offset, and the new rows; as a leader does it (ProducerStateManager)."""
        [batch] = iter_batches(data)
        batch.check_crc()
        header = batch.header
        first, last = header.base_sequence, header.base_sequence + header.record_count - 1
        known = self.producers.get(header.producer_id)
        if header.producer_id < 0:
            known = Producer(header.producer_epoch)  # of no producer: anybody's, and never refused
        elif known is not None:
            if header.producer_epoch < known.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1, []
            if header.producer_epoch > known.epoch:
                if first:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, []
                known.epoch = header.producer_epoch
                known.batches.clear()
            for had_first, had_last, offset in known.batches:
                if (had_first, had_last) == (first, last):
                    return 0, offset, []
            if known.batches and first != known.batches[-1][1] + 1:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, []
        else:
            known = self.producers[header.producer_id] = Producer(header.producer_epoch)
        base = self.end
        known.batches.append((first, last, base))
        self.end += header.record_count
        stored = base.to_bytes(8, "big") + data[8:]
        self.batches.append((self.end, stored))
        columns = Columns()
        append_columns(batch, columns, with_headers=False)
        rows = []
        for index, (key, value) in enumerate(zip(columns.keys, columns.values, strict=True)):
            if key is None:
                continue
            if not key.startswith(_CLAIM_TYPE):
                rows.append(Row(base + index, header.producer_id, header.producer_epoch, key, value))
            elif header.producer_epoch < FENCE_EPOCH:
                self.claims.append((base + index, node, header.producer_id, header.producer_epoch))
        self.rows += rows
        return 0, base, rows

    def fetch(self, offset: int) -> bytes:
        """Batches from there on, some of them."""
        found = [data for end, data in self.batches if end > offset]
        return b"".join(found[:20])


class Kafka:
    """All brokers in one, but for the way to them."""

    def __init__(self, world: NodesWorld, partitions: int, brokers: int = 1) -> None:
        self.world = world
        self.brokers = {
            number: Broker(number, BROKER.host, 9091 + number) for number in range(1, brokers + 1)
        }
        self.leaders = [1 + number % brokers for number in range(partitions)]
        """Of each partition the broker that leads it."""
        self.coordinators = [1 + (number + 1) % brokers for number in range(partitions)]
        """Of each partition's transactional id."""
        self.partitions = [Partition(number) for number in range(partitions)]
        self.ids: dict[str, tuple[int, int]] = {}
        """Transactional id -> producer id and epoch."""
        self._next_id = 1_000
        self._answers: dict[type, Callable[[Node, Any], Any]] = {
            kafka.InitProducerIdRequest: self._init_producer_id,
            kafka.FindCoordinatorRequest: self._find_coordinator,
            kafka.DescribeProducersRequest: self._describe_producers,
            kafka.DescribeConfigsRequest: self._describe_configs,
            kafka.ProduceRequest: self._produce,
            kafka.FetchRequest: self._fetch,
            kafka.ListOffsetsRequest: self._list_offsets,
            kafka.ApiVersionsRequest: lambda _node, _request: kafka.ApiVersionsResponse(),
        }

    def answer(self, node: Node, request: Any, broker: int) -> Any:
        """The answer of the brokers to a request that has arrived at one of them."""
        return self._answers[type(request)](node, request)

    def forget_ids(self) -> None:
        """Transactional ids that were not used for a week are forgotten."""
        self.ids.clear()

    def metadata(self) -> ClusterMetadata:
        """Where everything is."""
        places = tuple(
            PartitionMetadata(number, leader, 0, (leader,), (leader,))
            for number, leader in enumerate(self.leaders)
        )
        return ClusterMetadata(1, self.brokers, {TOPIC: TopicMetadata(TOPIC, bytes(16), False, places)})

    def _init_producer_id(self, node: Node, request: kafka.InitProducerIdRequest) -> Any:
        if self._unlucky(0.03):
            return kafka.InitProducerIdResponse(error_code=int(ErrorCode.CONCURRENT_TRANSACTIONS))
        name = request.transactional_id or ""
        if name in self.ids:
            producer_id, epoch = self.ids[name]
            self.ids[name] = (producer_id, epoch + 1)
        else:
            self._next_id += 1
            self.ids[name] = (self._next_id, 0)
        producer_id, epoch = self.ids[name]
        return kafka.InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch)

    def _find_coordinator(self, node: Node, request: kafka.FindCoordinatorRequest) -> Any:
        found = [
            kafka.FindCoordinatorResponseCoordinator(
                key, *self.brokers[self.coordinators[int(key.rpartition("-")[2])]]
            )
            for key in request.coordinator_keys
        ]
        return kafka.FindCoordinatorResponse(coordinators=found)

    def _describe_producers(self, node: Node, request: kafka.DescribeProducersRequest) -> Any:
        partitions = []
        for number in request.topics[0].partition_indexes:
            active = [
                kafka.DescribeProducersResponseProducerState(
                    producer_id=producer_id,
                    producer_epoch=known.epoch,
                    last_sequence=known.batches[-1][1] if known.batches else -1,
                )
                for producer_id, known in self.partitions[number].producers.items()
            ]
            partitions.append(
                kafka.DescribeProducersResponsePartitionResponse(number, active_producers=active)
            )
        topic = kafka.DescribeProducersResponseTopicResponse(TOPIC, partitions)
        return kafka.DescribeProducersResponse(topics=[topic])

    def _describe_configs(self, node: Node, request: kafka.DescribeConfigsRequest) -> Any:
        configs = [
            kafka.DescribeConfigsResponseDescribeConfigsResourceResult(name, value)
            for name, value in _CONFIGS.items()
        ]
        return kafka.DescribeConfigsResponse(
            results=[kafka.DescribeConfigsResponseDescribeConfigsResult(configs=configs)]
        )

    def _produce(self, node: Node, request: kafka.ProduceRequest) -> Any:
        answers = []
        for one in request.topic_data[0].partition_data:
            code, offset = int(self.world.rng.choice(_FOR_NOW)), -1
            if not self._unlucky(0.01):
                partition = self.partitions[one.index]
                code, offset, rows = partition.produce(node, bytes(one.records or b""))
                self.world.checks.appended(node, partition, int(code), rows)
            answers.append(
                kafka.ProduceResponsePartitionProduceResponse(one.index, int(code), base_offset=offset)
            )
        return kafka.ProduceResponse(
            responses=[kafka.ProduceResponseTopicProduceResponse(TOPIC, partition_responses=answers)]
        )

    def _fetch(self, node: Node, request: kafka.FetchRequest) -> Any:
        [wanted] = request.topics[0].partitions
        partition = self.partitions[wanted.partition]
        data = kafka.FetchResponsePartitionData(
            partition_index=wanted.partition,
            high_watermark=partition.end,
            records=partition.fetch(wanted.fetch_offset),
        )
        return kafka.FetchResponse(
            responses=[kafka.FetchResponseFetchableTopicResponse(TOPIC, partitions=[data])]
        )

    def _list_offsets(self, node: Node, request: kafka.ListOffsetsRequest) -> Any:
        [wanted] = request.topics[0].partitions
        found = kafka.ListOffsetsResponseListOffsetsPartitionResponse(wanted.partition_index, offset=0)
        return kafka.ListOffsetsResponse(
            topics=[kafka.ListOffsetsResponseListOffsetsTopicResponse(TOPIC, [found])]
        )

    def _unlucky(self, chance: float) -> bool:
        return self.world.trouble and self.world.rng.random() < chance


class Connection:
    """One of a node's connections: in order, until it breaks. Bytes that were sent by then may still
    arrive."""

    def __init__(self) -> None:
        self.arrival_s = 0.0
        self.answer_s = 0.0
        self.waiting: dict[asyncio.Future[Any], None] = {}

    def lose(self) -> None:
        """A caller that waits learns that the outcome is unknown."""
        waiting, self.waiting = self.waiting, {}
        for one in waiting:
            if not one.done():
                one.set_exception(ConnectionLostError("the connection broke"))


class Link:
    """A node's way to the brokers, instead of `clients.connection.Cluster`."""

    knows_cluster = True
    """Metadata is there without asking."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._world = node.world
        self._connections: dict[tuple[int, str], Connection] = {}
        self.cut_from: set[int] = set()
        """Brokers that it does not reach, either way."""

    async def close(self) -> None:
        """All connections."""
        for place in list(self._connections):
            self._lose(place)

    def disconnect(self, node: Broker, purpose: str = "") -> None:
        """One of them."""
        self._lose((node.node_id, purpose))

    def _lose(self, place: tuple[int, str]) -> None:
        connection = self._connections.pop(place, None)
        if connection is not None:
            connection.lose()

    async def metadata(
        self, topics: Iterable[str] | None = None, *, max_age_ms: int = 0, deadline_s: float | None = None
    ) -> ClusterMetadata:
        """Known without asking."""
        return self._world.kafka.metadata()

    async def controller(self, *, deadline_s: float | None = None) -> Broker:
        """The one."""
        return BROKER

    async def send(
        self,
        node: Broker | None,
        request: Request,
        *,
        deadline_s: float | None = None,
        request_timeout_ms: int | None = None,
        purpose: str = "",
    ) -> Any:
        """To the brokers and back, or half of the way."""
        world, loop = self._world, asyncio.get_running_loop()
        if request.message is kafka.MetadataRequest and self.knows_cluster:
            return _metadata_response(world.kafka)
        message = request.build(request.message.MAX_VERSION)
        broker = node.node_id if node is not None else world.rng.choice(self._reached())
        place = broker, purpose
        connection = self._connections.setdefault(place, Connection())
        answered: asyncio.Future[Any] = loop.create_future()
        connection.waiting[answered] = None
        timeout_s = min(
            (30_000 if request_timeout_ms is None else request_timeout_ms) / 1000,
            1e9 if deadline_s is None else deadline_s - loop.time(),
        )
        self._go(connection, place, message, answered)
        try:
            async with asyncio.timeout(timeout_s):
                return await answered
        except TimeoutError:
            self._lose(place)
            raise RequestTimedOutError("no answer in time") from None
        finally:
            connection.waiting.pop(answered, None)

    def _reached(self) -> list[int]:
        """The broker that it would ask if any will do."""
        brokers = self._world.kafka.brokers
        return [number for number in brokers if number not in self.cut_from] or list(brokers)

    def _is_of_a_client(self, place: tuple[int, str]) -> bool:
        """Whether the connection passes on what a client sends: then it arrives while the client waits for
        it, or never."""
        return False

    def _held_s(self, message: Any) -> float:
        """So long the answer is held on top of its way."""
        return 0.0

    def _late_s(self, message: Any) -> float:
        """So much later it arrives."""
        return 0.0

    def _go(
        self, connection: Connection, place: tuple[int, str], message: Any, answered: asyncio.Future[Any]
    ) -> None:
        world, node = self._world, self._node
        rng = world.rng
        fate = rng.random() if world.trouble else 0.5
        if node.cut or place[0] in self.cut_from or fate < 0.004:
            return  # lost; the peer is silent
        slow_s = rng.uniform(0.1, 3.0) if world.trouble and rng.random() < 0.02 else rng.uniform(0.0, 0.01)
        if fate > 0.997 and not self._is_of_a_client(place):
            slow_s = rng.uniform(5.0, 300.0)  # somewhere on the way, for longer than anybody waits
        slow_s += self._late_s(message)
        arrives_s = world.time_s + slow_s
        if slow_s < 5.0:  # else it has left this connection's order, as after a reconnect
            arrives_s = connection.arrival_s = max(connection.arrival_s, arrives_s)
        breaks = 0.004 < fate < 0.012
        world.at(arrives_s, partial(self._arrive, connection, place, message, answered, breaks))
        if world.trouble and rng.random() < world.pause_chance:
            node.pause_soon()

    def _arrive(
        self,
        connection: Connection,
        place: tuple[int, str],
        message: Any,
        answered: asyncio.Future[Any],
        breaks: bool,
    ) -> None:
        world, node = self._world, self._node
        answer = world.kafka.answer(node, message, place[0])
        cut = node.cut or place[0] in self.cut_from
        if breaks or cut:  # the answer is lost, its effect is there
            if not cut and self._connections.get(place) is connection:
                node.tell(partial(self._lose, place))
            return
        way_s = world.rng.uniform(0.0, 0.01) + self._held_s(message)
        answers_s = max(connection.answer_s, world.time_s + way_s)
        connection.answer_s = answers_s
        world.at(answers_s, partial(node.tell, partial(_settle, answered, answer)))


def _settle(answered: asyncio.Future[Any], answer: Any) -> None:
    if not answered.done():
        answered.set_result(answer)


def _metadata_response(cluster: Kafka) -> Any:
    partitions = [
        kafka.MetadataResponsePartition(
            partition_index=number, leader_id=leader, replica_nodes=[leader], isr_nodes=[leader]
        )
        for number, leader in enumerate(cluster.leaders)
    ]
    return kafka.MetadataResponse(
        brokers=[kafka.MetadataResponseBroker(*broker) for broker in cluster.brokers.values()],
        controller_id=1,
        topics=[kafka.MetadataResponseTopic(name=TOPIC, partitions=partitions)],
    )

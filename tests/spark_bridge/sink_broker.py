"""A scripted broker that takes records: sequences are checked as Kafka's leaders do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from ringleader.protocol.records import BatchHeader, Record, check_batch, iter_batches
from ringleader.protocol.schema import Message
from tests.spark_bridge.broker import Broker, Partition


class SinkBroker(Broker):
    """``refuse`` may give an error code for a batch, before it is looked at; ``lose`` may close a connection
    after a request was served, so that its answer is lost."""

    def __init__(self, topics: dict[str, dict[int, Partition]], node: int = 0, **secured: Any) -> None:
        super().__init__(topics, node, **secured)
        self.versions |= {0: (3, 9), 22: (0, 4)}
        self.refuse: Callable[[str, int, BatchHeader], int] = lambda topic, partition, header: 0
        self.lose: Callable[[ProduceRequest], bool] = lambda request: False
        self.creates: set[str] = set()
        self.produced: list[ProduceRequest] = []
        self.identities = 0
        # Shared by all brokers of a cluster, as replicas share a log.
        self.sequences: dict[tuple[str, int, int], list[tuple[int, int]]] = {}

    def records(self, topic: str, partition: int) -> list[Record]:
        """The records of the log, in order."""
        views = [view for data in self.topics[topic][partition].batches for view in iter_batches(data)]
        return [record for view in views for record in view.records()]

    def values(self, topic: str, partition: int) -> list[bytes | None]:
        """The values of a partition, in order."""
        return [record.value for record in self.records(topic, partition)]

    def _answer(self, request: Message) -> Message:
        if isinstance(request, InitProducerIdRequest):
            self.identities += 1
            return InitProducerIdResponse(producer_id=100 + self.identities, producer_epoch=0)
        if isinstance(request, MetadataRequest) and request.allow_auto_topic_creation:
            for topic in request.topics or []:
                if topic.name in self.creates:
                    self.topics.setdefault(topic.name, {0: Partition(), 1: Partition()})
        if isinstance(request, ProduceRequest):
            self.produced.append(request)
            answer = self._produce(request)
            if self.lose(request):
                raise EOFError
            return answer
        return super()._answer(request)

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        responses = []
        for topic in request.topic_data:
            entries = [
                ProduceResponsePartitionProduceResponse(
                    index=part.index, error_code=self._append(topic.name, part.index, part.records or b"")
                )
                for part in topic.partition_data
            ]
            responses.append(
                ProduceResponseTopicProduceResponse(name=topic.name, partition_responses=entries)
            )
        return ProduceResponse(responses=responses)

    def _append(self, topic: str, partition: int, data: bytes) -> int:
        header = check_batch(data)
        found = self.topics[topic][partition]
        if found.leader != self.node:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if wrong := self.refuse(topic, partition, header):
            return wrong
        if header.producer_id >= 0:
            known = self.sequences.setdefault((topic, partition, header.producer_id), [])
            span = (header.base_sequence, header.base_sequence + header.last_offset_delta)
            if span in known[-5:]:
                return 0
            if known and header.base_sequence != known[-1][1] + 1:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            known.append(span)
        found.batches.append(data)
        return 0

"""A cluster of two scripted brokers: who leads what is a table, and what a leader does the test says."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.support.scripted_broker import ScriptedBroker

R = TypeVar("R")
VERSIONS = {
    0: (0, 9),
    1: (4, 12),
    2: (1, 7),
    3: (0, 12),
    10: (0, 4),
    18: (0, 3),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 3),
    23: (2, 4),
    24: (0, 3),
    26: (0, 3),
    32: (1, 4),
    33: (0, 2),
    37: (0, 3),
    44: (0, 1),
    60: (0, 1),
}


class TwoBrokers:
    """Broker ids 1 and 2. `leaders`: topic -> broker id of each partition; `ids`: of topics that were made
    again; `replicated`: both brokers have every partition."""

    def __init__(self) -> None:
        self.leaders: dict[str, list[int]] = {"orders": [1, 2, 1, 2]}
        self.ids: dict[str, bytes] = {}
        self.racks: dict[int, str] = {}
        self.offline: list[int] = []
        self.replicated = True
        self.brokers = {one: ScriptedBroker({3: self.metadata}, VERSIONS) for one in (1, 2)}

    @property
    def bootstrap(self) -> str:
        """Of both."""
        return ",".join(broker.address for broker in self.brokers.values())

    def requests_of(self, kind: type[R]) -> list[tuple[R, int]]:
        """The requests of that kind that either got, each with its version."""
        return [
            (request, version)
            for broker in self.brokers.values()
            for request, version in broker.requests
            if isinstance(request, kind)
        ]

    def metadata(self, request: MetadataRequest, version: int, correlation_id: int) -> MetadataResponse:
        """As both answer."""
        ids = {self.ids.get(name, topic_id(name)): name for name in self.leaders}
        if request.topics is None:
            topics = [self._topic(name) for name in self.leaders]
        else:
            topics = [
                self._topic(ids[one.topic_id] if one.name is None else one.name)
                if one.name is not None or one.topic_id in ids
                else MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, one.topic_id)
                for one in request.topics
            ]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(one, "127.0.0.1", broker.port, self.racks.get(one))
                for one, broker in self.brokers.items()
            ],
            cluster_id="scripted",
            controller_id=2,
            topics=topics,
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        leaders = self.leaders.get(name)
        if leaders is None:
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        return MetadataResponseTopic(
            name=name,
            topic_id=self.ids.get(name, topic_id(name)),
            partitions=[
                MetadataResponsePartition(
                    0,
                    index,
                    leader,
                    5,
                    replica_nodes=[1, 2] if self.replicated else [leader],
                    isr_nodes=[leader],
                    offline_replicas=self.offline,
                )
                for index, leader in enumerate(leaders)
            ],
        )

    def lag(self, broker: int) -> Callable[[], None]:
        """That broker goes on with the topics of now, until the function is called."""
        then = {name: list(leaders) for name, leaders in self.leaders.items()}, dict(self.ids)

        def metadata(*named: Any) -> MetadataResponse:
            now = self.leaders, self.ids
            self.leaders, self.ids = then
            try:
                return self.metadata(*named)
            finally:
                self.leaders, self.ids = now

        def catch_up() -> None:
            self.brokers[broker].handlers[3] = self.metadata

        self.brokers[broker].handlers[3] = metadata
        return catch_up

    async def go_away(self) -> None:
        """Nobody can ask them any more."""
        for broker in self.brokers.values():
            broker.handlers.pop(3)
            broker.hang_up()
            await broker.__aexit__(None, None, None)

    def on(self, api_key: int, *handlers: Any) -> None:
        """Set the handler of the brokers: one for both, or one for each."""
        for one, broker in self.brokers.items():
            broker.handlers[api_key] = handlers[min(one, len(handlers)) - 1]


def topic_id(name: str) -> bytes:
    """Of that topic."""
    return name.encode()[:16].ljust(16, b"\1")


@contextlib.asynccontextmanager
async def two_brokers() -> AsyncIterator[TwoBrokers]:
    """Both are listening."""
    cluster = TwoBrokers()
    async with cluster.brokers[1], cluster.brokers[2]:
        yield cluster


def fetched(request: FetchRequest, records: bytes = b"", error_code: int = 0, **more: Any) -> FetchResponse:
    """The same for each partition of a Fetch."""
    return FetchResponse(
        responses=[
            FetchResponseFetchableTopicResponse(
                topic.topic,
                partitions=[
                    FetchResponsePartitionData(
                        one.partition,
                        error_code,
                        high_watermark=100 + one.partition,
                        last_stable_offset=90 + one.partition,
                        log_start_offset=1,
                        records=records,
                        **more,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )

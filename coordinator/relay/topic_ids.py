"""Topic ids in Produce and Fetch (KIP-516): names for the ids that clients send, and answers about those
without one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from ringleader.coordinator.relay.topology import Topology
from ringleader.coordinator.run_queue import SLICE_ELEMENTS
from ringleader.coordinator.server.handlers.fetch import WITHOUT_A_LOG
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.schema import ZERO_UUID

_RequestTopic = TypeVar("_RequestTopic", kafka.FetchRequestFetchTopic, kafka.ProduceRequestTopicProduceData)
"""A topic in a request."""


async def names_of(
    topology: Topology, topics: Sequence[_RequestTopic]
) -> tuple[list[tuple[_RequestTopic, str]], list[tuple[_RequestTopic, int]]]:
    """The names of topics that have ids; and those without a name, each with the error. No two ids have the
    same name."""
    missing = {
        topic.topic_id: None
        for topic in topics
        if topic.topic_id != ZERO_UUID and topology.describe_id(topic.topic_id) is None
    }
    lost = False
    if missing:
        try:
            await topology.find_ids(list(missing))
        except KafkaError:
            lost = True
    named: list[tuple[_RequestTopic, str]] = []
    unknown: list[tuple[_RequestTopic, int]] = []
    ids: dict[str, bytes] = {}
    for number, topic in enumerate(topics, 1):
        if not number % SLICE_ELEMENTS:
            await asyncio.sleep(0)
        known = topology.describe_id(topic.topic_id)
        # A topic may be made again meanwhile: then its name is that of the first id here.
        if known is not None and ids.setdefault(known.name, topic.topic_id) == topic.topic_id:
            named.append((topic, known.name))
        elif lost and topic.topic_id in missing:
            unknown.append((topic, ErrorCode.NOT_LEADER_OR_FOLLOWER))  # a broker that can tell may be found
        else:
            unknown.append((topic, ErrorCode.UNKNOWN_TOPIC_ID))
    return named, unknown


async def give_names(
    topology: Topology, request: kafka.FetchRequest
) -> list[kafka.FetchResponseFetchableTopicResponse]:
    """Give the topics of the request, which have ids, their names. Those without one are taken out of it,
    with an answer for each."""
    named, nameless = await names_of(topology, request.topics)
    for topic, name in named:
        topic.topic = name
    request.topics = [topic for topic, _ in named]
    unknown: dict[bytes, dict[int, kafka.FetchResponsePartitionData]] = {}
    for topic, code in nameless:
        answers = unknown.setdefault(topic.topic_id, {})
        answers |= {one.partition: failed_partition(one.partition, code) for one in topic.partitions}
    return [
        kafka.FetchResponseFetchableTopicResponse("", topic_id, list(answers.values()))
        for topic_id, answers in unknown.items()
    ]


def without_name(topology: Topology, topic_id: bytes, code: int) -> int:
    """The error of a partition without a leader: its topic may be deleted since the id was looked up."""
    is_unknown = code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic_id != ZERO_UUID
    return ErrorCode.UNKNOWN_TOPIC_ID if is_unknown and topology.describe_id(topic_id) is None else code


def failed_partition(partition: int, code: int) -> kafka.FetchResponsePartitionData:
    """The error, in the form of a broker's."""
    return kafka.FetchResponsePartitionData(
        partition,
        code,
        high_watermark=-1,
        aborted_transactions=[] if code in WITHOUT_A_LOG else None,
        records=b"",
    )


def ids_of(request: kafka.FetchRequest) -> dict[str, bytes]:
    """The ids of its topics, by name; zero where the client has names."""
    return {topic.topic: topic.topic_id for topic in request.topics}


def place_of(topic: str, topic_id: bytes, partition: int) -> tuple[str | bytes, int]:
    """A key of `Upstreams.watermarks`."""
    return topic if topic_id == ZERO_UUID else topic_id, partition

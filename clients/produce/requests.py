"""Batches in one Produce request, and what is answered about them: by topic ids where all topics have them
(KIP-516). So nothing goes into a topic that was made again under the same name before the producer knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from ringleader.clients.model import TopicPartition
from ringleader.clients.produce.partition_queue import OutgoingBatch
from ringleader.protocol.fields import LAST
from ringleader.protocol.messages import (
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
)
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from ringleader.protocol.schema import ZERO_UUID

Topics = Sequence[ProduceRequestTopicProduceData]


def topic_data(
    batches: Iterable[OutgoingBatch], topic_id: Callable[[str], bytes]
) -> list[ProduceRequestTopicProduceData]:
    """The batches, by topic; `topic_id`: of a name, zero for a topic without one."""
    topics: dict[str, ProduceRequestTopicProduceData] = {}
    for batch in batches:
        topic = topics.get(batch.topic)
        if topic is None:
            topic = ProduceRequestTopicProduceData(batch.topic, topic_id(batch.topic))
            topics[batch.topic] = topic
        data = cast(bytes, batch.data)  # a view of bytes is written as well
        topic.partition_data.append(ProduceRequestPartitionProduceData(batch.partition, data))
    return list(topics.values())


def newest(topics: Topics, most: int = LAST) -> int:
    """The highest version of Produce, up to `most`, that can write to these."""
    by_name = any(topic.topic_id == ZERO_UUID for topic in topics)
    return min(most, TOPIC_IDS_VERSION - 1) if by_name else most


def answers(
    topics: Topics, response: ProduceResponse
) -> dict[TopicPartition, ProduceResponsePartitionProduceResponse]:
    """By partition; what was not asked for is left out."""
    names = {topic.topic_id: topic.name for topic in topics if topic.topic_id != ZERO_UUID}
    return {
        (names.get(topic.topic_id, topic.name), one.index): one
        for topic in response.responses
        for one in topic.partition_responses
    }

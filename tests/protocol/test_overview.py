"""A cluster at a glance says what the decoder of Metadata says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol import overview
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.frames import encode_response
from ringleader.protocol.messages import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ringleader.protocol.overview import BrokerOverview, MetadataOverview, TopicOverview, read_overview

INT32 = st.integers(-(2**31), 2**31 - 1)
NODES = st.lists(st.integers(0, 9), max_size=4) | st.just(list(range(200)))
PARTITIONS = st.lists(
    st.builds(
        MetadataResponsePartition,
        error_code=st.sampled_from([0, 5]),
        leader_id=st.integers(-1, 9),
        replica_nodes=NODES,
        isr_nodes=NODES,
    ),
    max_size=6,
)


def numbered(partitions: list[MetadataResponsePartition], order: Any) -> list[MetadataResponsePartition]:
    for number, partition in zip(
        order.sample(range(len(partitions)), len(partitions)), partitions, strict=True
    ):
        partition.partition_index = number
    return partitions


TOPICS = st.lists(
    st.builds(
        MetadataResponseTopic,
        error_code=st.sampled_from([0, 3, 5, 29]),
        name=st.text(min_size=1, max_size=300),
        topic_id=st.binary(min_size=16, max_size=16),
        is_internal=st.booleans(),
        partitions=st.builds(numbered, PARTITIONS, st.randoms(use_true_random=False)),
    ),
    max_size=5,
    unique_by=lambda topic: topic.name,
)
BROKERS = st.lists(
    st.builds(
        MetadataResponseBroker,
        node_id=st.integers(0, 9),
        host=st.text(min_size=1, max_size=20),
        port=st.integers(0, 65535),
        rack=st.none() | st.text(min_size=1, max_size=5),
    ),
    max_size=4,
    unique_by=lambda broker: broker.node_id,
)
RESPONSES = st.builds(MetadataResponse, brokers=BROKERS, topics=TOPICS, cluster_id=st.none() | st.text())


def expected(response: MetadataResponse, with_replicas: bool) -> MetadataOverview:
    topics = {}
    for topic in response.topics:
        parts = sorted(topic.partitions, key=lambda part: part.partition_index)
        seen = TopicOverview(topic.topic_id, len(parts), topic.is_internal, topic.error_code)
        if with_replicas:
            leaders, replicas = [p.leader_id for p in parts], [tuple(p.replica_nodes) for p in parts]
            seen = seen._replace(leaders=tuple(leaders), replicas=tuple(replicas))
        topics[topic.name or ""] = seen
    return MetadataOverview(
        topics,
        {one.node_id: BrokerOverview(one.host, one.port, one.rack) for one in response.brokers},
    )


@given(response=RESPONSES, version=st.integers(9, 12), with_replicas=st.booleans())
def test_the_walk_over_metadata_sees_all_of_it(
    response: MetadataResponse, version: int, with_replicas: bool
) -> None:
    if version < 10:
        for topic in response.topics:
            topic.topic_id = bytes(16)
    frame = encode_response(response, version, 7)[4:]
    walked = overview._walk(frame, version, with_replicas)
    assert walked == read_overview(frame, version, with_replicas) == expected(response, with_replicas)
    for cut in range(5, len(frame), 1 + len(frame) // 20):
        with pytest.raises(MalformedError):
            read_overview(frame[:cut], version, with_replicas)


@pytest.mark.parametrize("version", range(9))
@pytest.mark.parametrize("with_replicas", [False, True])
def test_older_answers_are_decoded(version: int, with_replicas: bool) -> None:
    parts = [MetadataResponsePartition(partition_index=n, leader_id=n, replica_nodes=[n, 2]) for n in (1, 0)]
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="h", port=9092, rack="a" if version else None)],
        topics=[MetadataResponseTopic(name="t", partitions=parts, is_internal=version > 0)],
    )
    frame = encode_response(response, version, 7)[4:]
    assert read_overview(frame, version, with_replicas) == expected(response, with_replicas)

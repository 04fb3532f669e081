"""Requests that name the same thing over and over: of every API the one that could be answered with most, and
the entries that its answer should have once."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from ringleader.protocol import messages as kafka
from ringleader.protocol.records import Record, build_batch
from ringleader.protocol.schema import ZERO_UUID, Message

WIDE, HEAVY = "wide", "heavy"
"""Topics: of many partitions, and of one whose batches are large."""
PARTITIONS = 4_000
METADATA = "m" * 4_000
COMMITTED = 100
"""Partitions of the wide topic with an offset that has metadata."""
BATCH = build_batch([Record(0, 0, b"k", random.Random(1).randbytes(900_000))])
BATCHES = 20
AT_A_TIME = 500
"""Offsets in one commit of the group `much`, which has one for each of the partitions."""
ACLS = 500
LARGE_BYTES = 400_000
"""The size of the metadata that the member of a group offers, and of its assignment."""
MANY = 4_000
"""Times that something is named."""


@dataclass(frozen=True, slots=True)
class Amplified:
    """Of one API. `most` may be answered with as much as `whole` is, and a little for each of its bytes."""

    version: int
    whole: Message
    most: Message


def preparations() -> list[tuple[Message, int]]:
    """Requests that make the state that the others are about, one after the other, on one connection."""
    topic = kafka.CreateTopicsRequestCreatableTopic
    topics = [topic("mine", 2, 1), topic("seen", 2, 1), topic(WIDE, PARTITIONS, 1), topic(HEAVY, 1, 1)]
    entity, op = kafka.AlterClientQuotasRequestEntityData, kafka.AlterClientQuotasRequestOpData
    quotas = [
        kafka.AlterClientQuotasRequestEntryData(
            [entity("client-id", f"client-{number}")], [op("producer_byte_rate", 1e9)]
        )
        for number in range(200)
    ]
    users = [
        kafka.AlterUserScramCredentialsRequestScramCredentialUpsertion(
            f"user-{number}", 1, 4_096, b"s" * 20, b"p" * 32
        )
        for number in range(20)
    ]
    return [
        (kafka.CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7),
        *[(_produce(BATCH), 9)] * BATCHES,
        (_commit("many", range(COMMITTED)), 8),
        *[(_commit("much", range(start, start + AT_A_TIME)), 8) for start in range(0, PARTITIONS, AT_A_TIME)],
        (kafka.AlterClientQuotasRequest(entries=quotas), 1),
        (kafka.AlterUserScramCredentialsRequest(upsertions=users), 0),
        (acls(), 3),
    ]


def _commit(group: str, partitions: Iterable[int]) -> kafka.OffsetCommitRequest:
    offsets = [
        kafka.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=7, committed_metadata=METADATA
        )
        for index in partitions
    ]
    return kafka.OffsetCommitRequest(
        group, topics=[kafka.OffsetCommitRequestTopic(name=WIDE, partitions=offsets)]
    )


def acls() -> kafka.CreateAclsRequest:
    """Those of a state. Made again before they are deleted once more."""
    creation = kafka.CreateAclsRequestAclCreation
    return kafka.CreateAclsRequest(
        creations=[creation(2, f"topic-{number}", 3, f"User:{number}", "*", 3, 3) for number in range(ACLS)]
    )


def _produce(batch: bytes, topic: str = HEAVY, times: int = 1) -> kafka.ProduceRequest:
    partitions = [kafka.ProduceRequestPartitionProduceData(0, batch)] * times
    topics = [kafka.ProduceRequestTopicProduceData(topic, partition_data=partitions)]
    return kafka.ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)


def amplified() -> dict[int, Amplified]:
    """By API key."""
    found = [
        *_about_topics(),
        *_about_records(),
        *_about_groups(),
        *_about_transactions(),
        *_about_the_rest(),
    ]
    return {one.most.API_KEY: one for one in found}


def _about_topics() -> list[Amplified]:
    topic = kafka.MetadataRequestTopic
    create, delete = kafka.CreateTopicsRequestCreatableTopic, kafka.DeleteTopicsRequestDeleteTopicState
    grow = kafka.CreatePartitionsRequestCreatePartitionsTopic
    resource = kafka.DescribeConfigsRequestDescribeConfigsResource
    change = kafka.IncrementalAlterConfigsRequestAlterConfigsResource
    key = kafka.IncrementalAlterConfigsRequestAlterableConfig
    replaced = kafka.AlterConfigsRequestAlterConfigsResource
    value = kafka.AlterConfigsRequestAlterableConfig
    return [
        Amplified(
            12,
            kafka.MetadataRequest(topics=None, allow_auto_topic_creation=False),
            kafka.MetadataRequest(
                # The id is another one in each.
                topics=[
                    topic(number.to_bytes(16), WIDE) if number % 2 else topic(ZERO_UUID, WIDE)
                    for number in range(1, MANY)
                ],
                allow_auto_topic_creation=False,
            ),
        ),
        Amplified(
            7,
            kafka.CreateTopicsRequest(topics=[create("new", 1, 1)], timeout_ms=10_000, validate_only=True),
            kafka.CreateTopicsRequest(
                topics=[create(f"n{number}", 1, 1) for number in range(MANY)],
                timeout_ms=10_000,
                validate_only=True,
            ),
        ),
        Amplified(
            6,
            kafka.DeleteTopicsRequest(topics=[delete("nothing")], timeout_ms=10_000),
            kafka.DeleteTopicsRequest(topics=[delete("nothing")] * MANY, timeout_ms=10_000),
        ),
        Amplified(
            3,
            kafka.CreatePartitionsRequest(topics=[grow(WIDE, 1, None)], timeout_ms=10_000),
            kafka.CreatePartitionsRequest(topics=[grow(WIDE, 1, None)] * MANY, timeout_ms=10_000),
        ),
        Amplified(
            4,
            kafka.DescribeConfigsRequest([resource(2, WIDE, None), resource(4, "1", None)], True, True),
            kafka.DescribeConfigsRequest(
                [resource(2, WIDE, None), resource(4, "1", None)] * (MANY // 2), True, True
            ),
        ),
        Amplified(
            1,
            kafka.IncrementalAlterConfigsRequest([change(2, WIDE, [key("no", 0, "1")])], validate_only=True),
            kafka.IncrementalAlterConfigsRequest(
                [change(2, WIDE, [key("no", 0, "1")])] * MANY, validate_only=True
            ),
        ),
        Amplified(
            2,
            kafka.AlterConfigsRequest([replaced(2, WIDE, [value("no", "1")])], validate_only=True),
            kafka.AlterConfigsRequest([replaced(2, WIDE, [value("no", "1")])] * MANY, validate_only=True),
        ),
    ]


def _about_records() -> list[Amplified]:
    offset, topic = kafka.ListOffsetsRequestListOffsetsPartition, kafka.ListOffsetsRequestListOffsetsTopic
    epoch = kafka.OffsetForLeaderEpochRequestOffsetForLeaderPartition
    epochs = kafka.OffsetForLeaderEpochRequestOffsetForLeaderTopic
    delete = kafka.DeleteRecordsRequestDeleteRecordsPartition
    deleted = kafka.DeleteRecordsRequestDeleteRecordsTopic
    return [
        Amplified(9, _produce(b"no batch"), _produce(b"no batch", times=MANY)),
        Amplified(12, fetch(1, 2**20), fetch(1_500, 0)),
        Amplified(
            7,
            kafka.ListOffsetsRequest(replica_id=-1, topics=[topic(WIDE, [offset(0, -1, -1)])]),
            kafka.ListOffsetsRequest(replica_id=-1, topics=[topic(WIDE, [offset(0, -1, -1)])] * MANY),
        ),
        Amplified(
            4,
            kafka.OffsetForLeaderEpochRequest(replica_id=-1, topics=[epochs(WIDE, [epoch(0, -1, 0)])]),
            kafka.OffsetForLeaderEpochRequest(replica_id=-1, topics=[epochs(WIDE, [epoch(0, -1, 0)] * MANY)]),
        ),
        Amplified(
            2,
            kafka.DeleteRecordsRequest([deleted(WIDE, [delete(0, 0)])], 10_000),
            kafka.DeleteRecordsRequest([deleted(WIDE, [delete(0, 0)] * MANY)], 10_000),
        ),
    ]


def fetch(times: int, partition_max_bytes: int) -> kafka.FetchRequest:
    """The large batches from their beginning."""
    partition = kafka.FetchRequestFetchPartition(0, fetch_offset=0, partition_max_bytes=partition_max_bytes)
    return kafka.FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=2**31 - 1,
        session_epoch=-1,
        topics=[kafka.FetchRequestFetchTopic(HEAVY, partitions=[partition] * times)],
    )


def _about_groups() -> list[Amplified]:
    def offsets(times: int) -> kafka.OffsetFetchRequest:
        topics = [kafka.OffsetFetchRequestTopics(name=WIDE, partition_indexes=list(range(COMMITTED)) * times)]
        return kafka.OffsetFetchRequest(groups=[kafka.OffsetFetchRequestGroup("many", topics=topics)])

    commit = kafka.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    forget = kafka.OffsetDeleteRequestPartition(partition_index=0)
    named = kafka.OffsetDeleteRequestTopic
    member = kafka.LeaveGroupRequestMemberIdentity(member_id="nobody")
    protocol = kafka.JoinGroupRequestProtocol(name="range", metadata=b"x")
    assignment = kafka.SyncGroupRequestAssignment(member_id="nobody", assignment=b"x")

    def join(times: int) -> kafka.JoinGroupRequest:
        return kafka.JoinGroupRequest(
            group_id="large",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="nobody",
            protocol_type="consumer",
            protocols=[protocol] * times,
        )

    def sync(times: int) -> kafka.SyncGroupRequest:
        return kafka.SyncGroupRequest(
            "large",
            1,
            "nobody",
            protocol_type="consumer",
            protocol_name="range",
            assignments=[assignment] * times,
        )

    def beat() -> kafka.HeartbeatRequest:
        return kafka.HeartbeatRequest("large", 1, "nobody")

    return [
        Amplified(8, offsets(1), offsets(400)),
        Amplified(
            8,
            kafka.OffsetCommitRequest(
                "none", topics=[kafka.OffsetCommitRequestTopic(name="nowhere", partitions=[commit])]
            ),
            kafka.OffsetCommitRequest(
                "none", topics=[kafka.OffsetCommitRequestTopic(name="nowhere", partitions=[commit] * MANY)]
            ),
        ),
        Amplified(
            0,
            kafka.OffsetDeleteRequest("many", [named(HEAVY, [forget])]),
            kafka.OffsetDeleteRequest("many", [named(HEAVY, [forget] * MANY)]),
        ),
        Amplified(
            4,
            kafka.FindCoordinatorRequest(key_type=7, coordinator_keys=[""]),
            kafka.FindCoordinatorRequest(key_type=7, coordinator_keys=[""] * MANY),
        ),
        Amplified(
            5,
            kafka.DescribeGroupsRequest(["large", "many"]),
            kafka.DescribeGroupsRequest(["large", "many"] * (MANY // 2)),
        ),
        Amplified(
            1,
            kafka.ConsumerGroupDescribeRequest(["large", "many"]),
            kafka.ConsumerGroupDescribeRequest(["large", "many"] * (MANY // 2)),
        ),
        Amplified(
            1,
            kafka.ConsumerGroupHeartbeatRequest("large", "nobody", 1, subscribed_topic_names=[HEAVY]),
            kafka.ConsumerGroupHeartbeatRequest("large", "nobody", 1, subscribed_topic_names=[HEAVY] * MANY),
        ),
        Amplified(
            5,
            kafka.ListGroupsRequest(),
            kafka.ListGroupsRequest(
                states_filter=["Stable", "Empty"] * MANY, types_filter=["classic"] * MANY
            ),
        ),
        Amplified(2, kafka.DeleteGroupsRequest(["nothing"]), kafka.DeleteGroupsRequest(["nothing"] * MANY)),
        Amplified(
            5,
            kafka.LeaveGroupRequest("large", members=[member]),
            kafka.LeaveGroupRequest("large", members=[member] * MANY),
        ),
        Amplified(9, join(1), join(500)),
        Amplified(5, sync(1), sync(MANY)),
        Amplified(4, beat(), beat()),
    ]


def _about_transactions() -> list[Amplified]:
    topic = kafka.AddPartitionsToTxnRequestAddPartitionsToTxnTopic
    commit = kafka.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)

    def partitions(times: int) -> kafka.AddPartitionsToTxnRequest:
        return kafka.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="nobody's",
            v3_and_below_producer_id=4_711,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[topic("none", [0] * times)],
        )

    def offsets(times: int) -> kafka.TxnOffsetCommitRequest:
        return kafka.TxnOffsetCommitRequest(
            "nobody's", "many", 4_711, 0, topics=[kafka.TxnOffsetCommitRequestTopic(WIDE, [commit] * times)]
        )

    def once(message: Message) -> Amplified:
        return Amplified(message.MAX_VERSION, message, message)

    return [
        Amplified(3, partitions(1), partitions(MANY)),
        Amplified(3, offsets(1), offsets(MANY)),
        once(kafka.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=10_000)),
        once(kafka.AddOffsetsToTxnRequest("nobody's", 4_711, 0, "many")),
        once(kafka.EndTxnRequest("nobody's", 4_711, 0, committed=True)),
    ]


def _about_the_rest() -> list[Amplified]:
    described = kafka.DescribeAclsRequest(1, None, 1, None, None, 1, 1)
    deleted = kafka.DeleteAclsRequestDeleteAclsFilter(1, None, 1, None, None, 1, 1)
    creation = kafka.CreateAclsRequestAclCreation(2, "x", 3, "nobody", "*", 3, 3)
    user = kafka.DescribeUserScramCredentialsRequestUserName("user-1")
    removed = kafka.AlterUserScramCredentialsRequestScramCredentialDeletion("nobody", 1)
    component = kafka.DescribeClientQuotasRequestComponentData("client-id", 2, None)
    entity = kafka.AlterClientQuotasRequestEntityData("what", "nobody")
    entry = kafka.AlterClientQuotasRequestEntryData([entity], [])
    cluster = kafka.DescribeClusterRequest(include_cluster_authorized_operations=True)
    greeting, handshake = kafka.ApiVersionsRequest("test", "1"), kafka.SaslHandshakeRequest("PLAIN")
    token = kafka.SaslAuthenticateRequest(b"x")
    subscribed = kafka.GetTelemetrySubscriptionsRequest()
    pushed = kafka.PushTelemetryRequest(bytes(range(16)), metrics=bytes(LARGE_BYTES))
    return [
        Amplified(3, greeting, greeting),
        Amplified(1, handshake, handshake),
        Amplified(2, token, token),
        Amplified(1, cluster, cluster),
        Amplified(3, described, described),
        Amplified(3, kafka.CreateAclsRequest([creation]), kafka.CreateAclsRequest([creation] * MANY)),
        Amplified(3, kafka.DeleteAclsRequest([deleted]), kafka.DeleteAclsRequest([deleted] * 400)),
        Amplified(
            0,
            kafka.DescribeUserScramCredentialsRequest([]),
            kafka.DescribeUserScramCredentialsRequest([user] * MANY),
        ),
        Amplified(
            0,
            kafka.AlterUserScramCredentialsRequest([removed]),
            kafka.AlterUserScramCredentialsRequest([removed] * MANY),
        ),
        Amplified(
            1,
            kafka.DescribeClientQuotasRequest([component]),
            kafka.DescribeClientQuotasRequest([component] * MANY),
        ),
        Amplified(
            1,
            kafka.AlterClientQuotasRequest(entries=[entry]),
            kafka.AlterClientQuotasRequest(entries=[entry] * MANY),
        ),
        Amplified(0, subscribed, subscribed),
        Amplified(0, pushed, pushed),
    ]


def repeated(message: Any, rng: random.Random, most: int) -> Any:
    """The same with entries of its arrays up to `most` times, in any order, at any depth."""
    changed: dict[str, Any] = {}
    for name in (one.name for one in fields(message)):
        value = getattr(message, name)
        if isinstance(value, list) and value:
            times = rng.choice((1, 1, 2, most))
            entries = [
                repeated(entry, rng, max(2, most // 20)) if is_dataclass(entry) else entry for entry in value
            ]
            changed[name] = entries + rng.choices(entries, k=times * len(entries) - len(entries))
            rng.shuffle(changed[name])
    return replace(message, **changed)

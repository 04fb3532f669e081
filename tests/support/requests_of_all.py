"""Requests of every API, each about some resources that three principals may see, use or not guess at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ringleader.coordinator.security.acls import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ringleader.coordinator.telemetry import REQUESTED as TELEMETRY
from ringleader.coordinator.telemetry import subscription_id
from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import Message
from tests.support.metrics_data import metrics_data
from tests.support.topiclog import batch, produced

ALICE, BOB, CAROL, MALLORY = "alice", "bob", "carol", "mallory"
"""Has a few ACLs; has all of topics, and a deny; may do some things with the cluster; has none."""
PRINCIPALS = (ALICE, BOB, CAROL, MALLORY)
TOPICS = ("mine", "seen", "other")
"""Those that exist. There is no `none`, of which nobody speaks, and no `gone`, which alice may read."""


def _allow(
    principal: str,
    kind: ResourceType,
    name: str,
    *operations: Operation,
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
) -> list[AclBinding]:
    return [AclBinding(kind, name, pattern, f"User:{principal}", host, one, permission) for one in operations]


_T, _G, _C = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_ID = ResourceType.TRANSACTIONAL_ID
_O = Operation

ACLS = [
    *_allow(ALICE, _T, "mine", _O.READ, _O.WRITE, _O.DESCRIBE_CONFIGS),
    *_allow(ALICE, _T, "seen", _O.DESCRIBE),
    *_allow(ALICE, _T, "gone", _O.READ, _O.WRITE),
    *_allow(ALICE, _T, "made-", _O.CREATE, pattern=PatternType.PREFIXED),
    *_allow(ALICE, _T, "other", _O.READ, host="10.1.2.3"),
    *_allow(ALICE, _G, "g-mine", _O.READ),
    *_allow(ALICE, _G, "g-seen", _O.DESCRIBE),
    *_allow(ALICE, _G, "g-old", _O.DELETE),
    *_allow(ALICE, _ID, "t-mine", _O.WRITE),
    *_allow(ALICE, _ID, "t-seen", _O.DESCRIBE),
    *_allow(BOB, _T, "*", _O.ALL),
    *_allow(BOB, _T, "oth", _O.ALL, pattern=PatternType.PREFIXED, permission=Permission.DENY),
    *_allow(BOB, _T, "gone", _O.CREATE, permission=Permission.DENY),
    *_allow(CAROL, _C, CLUSTER_NAME, _O.DESCRIBE, _O.CREATE, _O.ALTER_CONFIGS, _O.IDEMPOTENT_WRITE),
    *_allow(BOB, _G, "g-", _O.READ, pattern=PatternType.PREFIXED),
    *_allow("*", _G, "g-seen", _O.READ, permission=Permission.DENY),
]

_NAMES = ("mine", "seen", "other", "none", "gone")
_GROUPS = ("g-mine", "g-seen", "g-other", "g-old")
_IDS = ("t-mine", "t-seen", "t-other")


@dataclass(frozen=True, slots=True)
class VersionedRequest:
    """A request at a version."""

    label: str
    request: Message
    version: int

    @property
    def name(self) -> str:
        """For messages of tests."""
        kind = type(self.request).__name__.removesuffix("Request")
        return f"{kind} v{self.version} {self.label}".strip()


def all_requests() -> list[VersionedRequest]:
    """All of them, in the order in which they are to be asked: none needs another."""
    found: list[VersionedRequest] = []

    def add(make: Callable[[int], Any], label: str = "", *versions: int) -> None:
        low, high = type(make(0)).MIN_VERSION, type(make(0)).MAX_VERSION
        found.extend(VersionedRequest(label, make(version), version) for version in versions or (low, high))

    _topics(add)
    _data(add)
    _groups(add)
    _offsets(add)
    _transactions(add)
    _admin(add)
    _acls(add)
    _users(add)
    _quotas(add)
    _telemetry(add)
    return found


def _topics(add: Callable[..., None]) -> None:
    def named(version: int, *names: str) -> list[kafka.MetadataRequestTopic]:
        return [kafka.MetadataRequestTopic(name=name) for name in names]

    def metadata(names: tuple[str, ...] | None, **more: Any) -> Callable[[int], Any]:
        return lambda version: kafka.MetadataRequest(
            topics=None if names is None else named(version, *names),
            allow_auto_topic_creation=version < 4,
            **more,
        )

    bits = {"include_topic_authorized_operations": True}
    add(metadata(None), "of all", 1, 12)
    add(metadata(()), "of all", 0)
    add(metadata(_NAMES), "", 4, 12)
    add(metadata(_NAMES, **bits), "with operations", 8, 12)
    add(metadata((), include_cluster_authorized_operations=True), "of the cluster", 8, 10)
    add(
        lambda version: kafka.MetadataRequest(topics=named(version, "gone", "other-none")),
        "that creates",
        4,
        12,
    )

    def create(name: str, **more: Any) -> Callable[[int], Any]:
        topic = kafka.CreateTopicsRequestCreatableTopic(name=name, num_partitions=1, replication_factor=1)
        return lambda version: kafka.CreateTopicsRequest(topics=[topic], **more)

    for name in ("made-a", "none", "mine"):
        add(create(name, validate_only=True), name)

    def delete(version: int) -> kafka.DeleteTopicsRequest:
        if version < 6:
            return kafka.DeleteTopicsRequest(topic_names=["other", "gone", "none"], timeout_ms=5_000)
        state = kafka.DeleteTopicsRequestDeleteTopicState
        topics = [state(name=name) for name in ("other", "gone", "none")]
        return kafka.DeleteTopicsRequest(topics=topics, timeout_ms=5_000)

    add(delete, "", 1, 5, 6)

    def grow(version: int) -> kafka.CreatePartitionsRequest:
        topic = kafka.CreatePartitionsRequestCreatePartitionsTopic
        topics = [topic(name=name, count=9) for name in _NAMES]
        return kafka.CreatePartitionsRequest(topics=topics, timeout_ms=5_000, validate_only=True)

    add(grow)


def _data(add: Callable[..., None]) -> None:
    def produce(records: bytes, **more: Any) -> Callable[[int], Any]:
        partition = kafka.ProduceRequestPartitionProduceData(index=0, records=records)
        topics = [
            kafka.ProduceRequestTopicProduceData(name=name, partition_data=[partition]) for name in _NAMES
        ]
        return lambda version: kafka.ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=topics, **more)

    add(produce(batch(1)), "", 3, 12, 13)
    add(produce(batch(1), transactional_id="t-other"), "with an id", 3, 12)
    in_transaction = produced(4_711, 0, transactional=True)
    add(produce(in_transaction, transactional_id="t-other"), "in another's transaction", 3, 12, 13)
    add(produce(in_transaction, transactional_id="t-seen"), "in a transaction that is only seen", 3, 12)
    add(produce(in_transaction), "in no transaction", 3, 12, 13)

    def fetch(replica_id: int) -> Callable[[int], Any]:
        partition = kafka.FetchRequestFetchPartition(partition=0, fetch_offset=99_999, partition_max_bytes=1)
        topics = [kafka.FetchRequestFetchTopic(topic=name, partitions=[partition]) for name in _NAMES]
        return lambda version: kafka.FetchRequest(
            replica_id=replica_id, max_wait_ms=0, max_bytes=1, topics=topics, session_epoch=-1
        )

    add(fetch(-1), "", 4, 12, 18)

    def offsets(timestamp: int) -> Callable[[int], Any]:
        partition = kafka.ListOffsetsRequestListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = kafka.ListOffsetsRequestListOffsetsTopic
        topics = [topic(name=name, partitions=[partition]) for name in _NAMES]
        return lambda version: kafka.ListOffsetsRequest(replica_id=-1, topics=topics)

    add(offsets(-2))
    add(offsets(2**60), "by time")

    def epochs(version: int) -> Any:
        partition = kafka.OffsetForLeaderEpochRequestOffsetForLeaderPartition(
            partition=0, current_leader_epoch=-1, leader_epoch=7
        )
        topic = kafka.OffsetForLeaderEpochRequestOffsetForLeaderTopic
        topics = [topic(topic=name, partitions=[partition]) for name in _NAMES]
        return kafka.OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)

    add(epochs, "", 4)

    def delete(version: int) -> Any:
        partition = kafka.DeleteRecordsRequestDeleteRecordsPartition(partition_index=0, offset=0)
        topic = kafka.DeleteRecordsRequestDeleteRecordsTopic
        topics = [topic(name=name, partitions=[partition]) for name in _NAMES]
        return kafka.DeleteRecordsRequest(topics=topics, timeout_ms=5_000)

    add(delete)


def _groups(add: Callable[..., None]) -> None:
    for key_type, keys in ((0, _GROUPS), (1, _IDS)):
        for key in keys:
            add(
                lambda version, key=key, kind=key_type: kafka.FindCoordinatorRequest(key=key, key_type=kind),
                key,
                max(key_type, 0) and 1,
                3,
            )
        add(
            lambda version, keys=keys, kind=key_type: kafka.FindCoordinatorRequest(
                key_type=kind, coordinator_keys=list(keys)
            ),
            "",
            4,
        )
    protocol = kafka.JoinGroupRequestProtocol(name="range", metadata=b"x")
    for group in _GROUPS:

        def join(version: int, group: str = group) -> Any:
            return kafka.JoinGroupRequest(
                group_id=group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                member_id="nobody",
                protocol_type="consumer",
                protocols=[protocol],
            )

        def sync(version: int, group: str = group) -> Any:
            return kafka.SyncGroupRequest(
                group_id=group,
                generation_id=1,
                member_id="nobody",
                protocol_type="consumer",
                protocol_name="range",
            )

        def beat(version: int, group: str = group) -> Any:
            return kafka.HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")

        def leave(version: int, group: str = group) -> Any:
            members = [kafka.LeaveGroupRequestMemberIdentity(member_id="nobody")]
            if version < 3:
                return kafka.LeaveGroupRequest(group_id=group, member_id="nobody")
            return kafka.LeaveGroupRequest(group_id=group, members=members)

        add(join, group)
        add(sync, group)
        add(
            lambda version, group=group: kafka.SyncGroupRequest(
                group_id=group, generation_id=1, member_id="nobody", protocol_type=None, protocol_name=None
            ),
            f"{group} without a protocol",
            5,
        )

        def consumer_beat(version: int, group: str = group) -> Any:
            return kafka.ConsumerGroupHeartbeatRequest(
                group, "nobody", 1, subscribed_topic_names=["mine", "other"]
            )

        add(beat, group)
        add(leave, group)
        add(consumer_beat, group)
    add(lambda version: kafka.DescribeGroupsRequest(groups=list(_GROUPS)), "", 0, 5, 6)
    add(
        lambda version: kafka.DescribeGroupsRequest(groups=list(_GROUPS), include_authorized_operations=True),
        "with operations",
        3,
        6,
    )
    add(lambda version: kafka.ConsumerGroupDescribeRequest(group_ids=list(_GROUPS)))
    add(lambda version: kafka.ListGroupsRequest())


def _offsets(add: Callable[..., None]) -> None:
    for group in _GROUPS:

        def commit(version: int, group: str = group) -> Any:
            partition = kafka.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
            topics = [kafka.OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in _NAMES]
            return kafka.OffsetCommitRequest(group_id=group, topics=topics)

        add(commit, group)

        def fetch(version: int, group: str = group) -> Any:
            if version < 8:
                topics = [kafka.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in _NAMES]
                return kafka.OffsetFetchRequest(group_id=group, topics=topics)
            more = [kafka.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in _NAMES]
            return kafka.OffsetFetchRequest(
                groups=[kafka.OffsetFetchRequestGroup(group_id=group, topics=more)]
            )

        add(fetch, group, 1, 2, 7, 9)

        def fetch_all(version: int, group: str = group) -> Any:
            if version < 8:
                return kafka.OffsetFetchRequest(group_id=group, topics=None)
            return kafka.OffsetFetchRequest(
                groups=[kafka.OffsetFetchRequestGroup(group_id=group, topics=None)]
            )

        add(fetch_all, f"{group}, of all", 2, 9)

        def forget(version: int, group: str = group) -> Any:
            partition = kafka.OffsetDeleteRequestPartition(partition_index=0)
            topics = [kafka.OffsetDeleteRequestTopic(name=name, partitions=[partition]) for name in _NAMES]
            return kafka.OffsetDeleteRequest(group_id=group, topics=topics)

        add(forget, group, 0)
    add(lambda version: kafka.DeleteGroupsRequest(groups_names=["g-other", "g-seen", "g-nowhere"]))


def _transactions(add: Callable[..., None]) -> None:
    for name in (*_IDS, None):
        if name != "t-mine" and name is not None:
            add(
                lambda version, name=name: kafka.InitProducerIdRequest(
                    transactional_id=name, transaction_timeout_ms=10_000
                ),
                name,
            )
    add(lambda version: kafka.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=10_000))
    producer: dict[str, Any] = {"producer_id": 4_711, "producer_epoch": 0}
    for name in _IDS:

        def partitions(version: int, name: str = name) -> Any:
            topic = kafka.AddPartitionsToTxnRequestAddPartitionsToTxnTopic
            return kafka.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=4_711,
                v3_and_below_producer_epoch=0,
                v3_and_below_topics=[topic(name=one, partitions=[0]) for one in _NAMES],
            )

        add(partitions, name)
        for group in ("g-mine", "g-other"):
            add(
                lambda version, name=name, group=group: kafka.AddOffsetsToTxnRequest(
                    transactional_id=name, group_id=group, **producer
                ),
                f"{name} {group}",
            )
            add(
                lambda version, name=name, group=group: kafka.TxnOffsetCommitRequest(
                    transactional_id=name,
                    group_id=group,
                    topics=[
                        kafka.TxnOffsetCommitRequestTopic(
                            name=one,
                            partitions=[
                                kafka.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
                            ],
                        )
                        for one in _NAMES
                    ],
                    **producer,
                ),
                f"{name} {group}",
            )
        add(
            lambda version, name=name: kafka.EndTxnRequest(transactional_id=name, committed=True, **producer),
            name,
        )


def _admin(add: Callable[..., None]) -> None:
    def describe(version: int) -> Any:
        resource = kafka.DescribeConfigsRequestDescribeConfigsResource
        key = ["cleanup.policy"]
        topics = [resource(resource_type=2, resource_name=name, configuration_keys=key) for name in _NAMES]
        return kafka.DescribeConfigsRequest(resources=topics)

    add(describe)
    add(
        lambda version: kafka.DescribeConfigsRequest(
            resources=[
                kafka.DescribeConfigsRequestDescribeConfigsResource(
                    resource_type=4, resource_name="1", configuration_keys=["log.dirs"]
                )
            ]
        ),
        "of a broker",
    )

    def change(version: int) -> Any:
        resource = kafka.IncrementalAlterConfigsRequestAlterConfigsResource
        config = kafka.IncrementalAlterConfigsRequestAlterableConfig(
            name="retention.ms", config_operation=0, value="100000"
        )
        return kafka.IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=2, resource_name=name, configs=[config]) for name in _NAMES],
            validate_only=True,
        )

    def replace(version: int) -> Any:
        resource = kafka.AlterConfigsRequestAlterConfigsResource
        config = kafka.AlterConfigsRequestAlterableConfig(name="retention.ms", value="100000")
        return kafka.AlterConfigsRequest(
            resources=[resource(resource_type=2, resource_name=name, configs=[config]) for name in _NAMES],
            validate_only=True,
        )

    add(change)
    add(replace)
    add(lambda version: kafka.DescribeClusterRequest(include_cluster_authorized_operations=True))


def _users(add: Callable[..., None]) -> None:
    name = kafka.DescribeUserScramCredentialsRequestUserName("nobody")
    add(lambda version: kafka.DescribeUserScramCredentialsRequest(users=[name]), "", 0)
    add(lambda version: kafka.DescribeUserScramCredentialsRequest(users=[]), "of all users", 0)
    deletion = kafka.AlterUserScramCredentialsRequestScramCredentialDeletion("nobody", 1)
    add(lambda version: kafka.AlterUserScramCredentialsRequest(deletions=[deletion]), "", 0)


def _quotas(add: Callable[..., None]) -> None:
    add(lambda version: kafka.DescribeClientQuotasRequest())
    entity = kafka.AlterClientQuotasRequestEntityData("user", "nobody")
    op = kafka.AlterClientQuotasRequestOpData("request_percentage", remove=True)
    entry = kafka.AlterClientQuotasRequestEntryData([entity], [op])
    add(lambda version: kafka.AlterClientQuotasRequest(entries=[entry]))


def _telemetry(add: Callable[..., None]) -> None:
    """The first caller with this instance id is accepted: the next ones come before their time."""
    instance_id = bytes(range(16))
    metrics = metrics_data({"group_id": "g-mine", "group_member_id": "nobody"}, {TELEMETRY[0]: 1.0})
    push = kafka.PushTelemetryRequest(instance_id, subscription_id(instance_id, 60_000), False, 0, metrics)
    add(lambda version: kafka.GetTelemetrySubscriptionsRequest(instance_id), "", 0)
    add(lambda version: push, "", 0)


def _acls(add: Callable[..., None]) -> None:
    everything: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
    }
    everything |= {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    add(lambda version: kafka.DescribeAclsRequest(**everything))
    for kind, name in ((2, "mine"), (3, "g-mine"), (2, "oth"), (2, "other")):
        for pattern in (1, 2, 3, 4):
            wanted = everything | {
                "resource_type_filter": kind,
                "resource_name_filter": name,
                "pattern_type_filter": pattern,
            }
            add(
                lambda version, wanted=wanted: kafka.DescribeAclsRequest(**wanted),
                f"{kind} {name} {pattern}",
                3,
            )
    creation = kafka.CreateAclsRequestAclCreation(2, "x", 3, "User:x", "*", 3, 3)
    add(lambda version: kafka.CreateAclsRequest(creations=[creation, creation]))
    one = kafka.DeleteAclsRequestDeleteAclsFilter(**(everything | {"resource_name_filter": "x"}))
    add(lambda version: kafka.DeleteAclsRequest(filters=[one]))

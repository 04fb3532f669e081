"""Topics and partitions: metadata, creation, deletion, growth."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message, struct


@struct
class MetadataRequestTopic:
    """One of `MetadataRequest.topics`."""

    topic_id: bytes = field("uuid", versions=(10, LAST), default=ZERO_UUID, ignorable=True)
    name: str | None = field("string", nullable=(10, LAST), default="")


@message(key=3, versions=(0, 12), flexible=9, kind="request")
class MetadataRequest(Message):
    """Ask for nodes, topics, partitions and their leaders.

    All topics: `topics` empty in version 0, null from version 1 on, where empty asks for none. By id from
    version 12 on, with a null name.

    Metadata, API 3, v0-12; KIP-4, KIP-516.
    """

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable=(1, LAST), factory=list)
    allow_auto_topic_creation: bool = field("bool", versions=(4, LAST), default=True)
    include_cluster_authorized_operations: bool = field("bool", versions=(8, 10), default=False)
    include_topic_authorized_operations: bool = field("bool", versions=(8, LAST), default=False)


@struct
class MetadataResponseBroker:
    """One of `MetadataResponse.brokers`."""

    node_id: int = field("int32", default=0)
    host: str = field("string", default="")
    port: int = field("int32", default=0)
    rack: str | None = field("string", versions=(1, LAST), nullable=(1, LAST), default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    """One of `MetadataResponseTopic.partitions`."""

    error_code: int = field("int16", default=0)
    partition_index: int = field("int32", default=0)
    leader_id: int = field("int32", default=0)
    leader_epoch: int = field("int32", versions=(7, LAST), default=-1, ignorable=True)
    replica_nodes: list[int] = array("int32", factory=list)
    isr_nodes: list[int] = array("int32", factory=list)
    offline_replicas: list[int] = array("int32", versions=(5, LAST), factory=list, ignorable=True)


@struct
class MetadataResponseTopic:
    """One of `MetadataResponse.topics`."""

    error_code: int = field("int16", default=0)
    name: str | None = field("string", nullable=(12, LAST), default="")
    topic_id: bytes = field("uuid", versions=(10, LAST), default=ZERO_UUID, ignorable=True)
    is_internal: bool = field("bool", versions=(1, LAST), default=False, ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition, factory=list)
    topic_authorized_operations: int = field("int32", versions=(8, LAST), default=-2147483648)


@message(key=3, versions=(0, 12), flexible=9, kind="response")
class MetadataResponse(Message):
    """The nodes, and the partitions of each topic with leader and replicas.

    Authorized operations are sets of bits; -2147483648 means that they were not asked for.

    Metadata, API 3, v0-12; KIP-4, KIP-516.
    """

    throttle_time_ms: int = field("int32", versions=(3, LAST), default=0, ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker, factory=list)
    cluster_id: str | None = field(
        "string", versions=(2, LAST), nullable=(2, LAST), default=None, ignorable=True
    )
    controller_id: int = field("int32", versions=(1, LAST), default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic, factory=list)
    cluster_authorized_operations: int = field("int32", versions=(8, 10), default=-2147483648)


@struct
class CreateTopicsRequestCreatableReplicaAssignment:
    """One of `CreateTopicsRequestCreatableTopic.assignments`."""

    partition_index: int = field("int32", default=0)
    broker_ids: list[int] = array("int32", factory=list)


@struct
class CreateTopicsRequestCreatableTopicConfig:
    """One of `CreateTopicsRequestCreatableTopic.configs`."""

    name: str = field("string", default="")
    value: str | None = field("string", nullable=(2, LAST), default="")


@struct
class CreateTopicsRequestCreatableTopic:
    """One of `CreateTopicsRequest.topics`."""

    name: str = field("string", default="")
    num_partitions: int = field("int32", default=0)
    replication_factor: int = field("int16", default=0)
    assignments: list[CreateTopicsRequestCreatableReplicaAssignment] = array(
        CreateTopicsRequestCreatableReplicaAssignment, factory=list
    )
    configs: list[CreateTopicsRequestCreatableTopicConfig] = array(
        CreateTopicsRequestCreatableTopicConfig, factory=list
    )


@message(key=19, versions=(2, 7), flexible=5, kind="request")
class CreateTopicsRequest(Message):
    """Create topics.

    -1 partitions or replicas stand for the default of the node (version 4 on); both are -1 when `assignments`
    place the replicas. `validate_only` creates nothing.

    CreateTopics, API 19, v2-7; KIP-4, KIP-525.
    """

    topics: list[CreateTopicsRequestCreatableTopic] = array(CreateTopicsRequestCreatableTopic, factory=list)
    timeout_ms: int = field("int32", default=60000)
    validate_only: bool = field("bool", default=False)


@struct
class CreateTopicsResponseCreatableTopicConfigs:
    """One of `CreateTopicsResponseCreatableTopicResult.configs`."""

    name: str = field("string", versions=(5, LAST), default="")
    value: str | None = field("string", versions=(5, LAST), nullable=(5, LAST), default="")
    read_only: bool = field("bool", versions=(5, LAST), default=False)
    config_source: int = field("int8", versions=(5, LAST), default=-1, ignorable=True)
    is_sensitive: bool = field("bool", versions=(5, LAST), default=False)


@struct
class CreateTopicsResponseCreatableTopicResult:
    """One of `CreateTopicsResponse.topics`."""

    name: str = field("string", default="")
    topic_id: bytes = field("uuid", versions=(7, LAST), default=ZERO_UUID, ignorable=True)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(2, LAST), default="", ignorable=True)
    topic_config_error_code: int = field(
        "int16", versions=(5, LAST), default=0, tag=0, tagged=(5, LAST), ignorable=True
    )
    num_partitions: int = field("int32", versions=(5, LAST), default=-1, ignorable=True)
    replication_factor: int = field("int16", versions=(5, LAST), default=-1, ignorable=True)
    configs: list[CreateTopicsResponseCreatableTopicConfigs] | None = array(
        CreateTopicsResponseCreatableTopicConfigs,
        versions=(5, LAST),
        nullable=(5, LAST),
        factory=list,
        ignorable=True,
    )


@message(key=19, versions=(2, 7), flexible=5, kind="response")
class CreateTopicsResponse(Message):
    """The result for each topic to create (CreateTopics, API 19, v2-7; KIP-4, KIP-525)."""

    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    topics: list[CreateTopicsResponseCreatableTopicResult] = array(
        CreateTopicsResponseCreatableTopicResult, factory=list
    )


@struct
class DeleteTopicsRequestDeleteTopicState:
    """One of `DeleteTopicsRequest.topics`."""

    name: str | None = field("string", versions=(6, LAST), nullable=(6, LAST), default=None)
    topic_id: bytes = field("uuid", versions=(6, LAST), default=ZERO_UUID)


@message(key=20, versions=(1, 6), flexible=4, kind="request")
class DeleteTopicsRequest(Message):
    """Delete topics by name, or from version 6 on by name or id.

    DeleteTopics, API 20, v1-6; KIP-4, KIP-516.
    """

    topics: list[DeleteTopicsRequestDeleteTopicState] = array(
        DeleteTopicsRequestDeleteTopicState, versions=(6, LAST), factory=list
    )
    topic_names: list[str] = array("string", versions=(1, 5), factory=list, ignorable=True)
    timeout_ms: int = field("int32", default=0)


@struct
class DeleteTopicsResponseDeletableTopicResult:
    """One of `DeleteTopicsResponse.responses`."""

    name: str | None = field("string", nullable=(6, LAST), default="")
    topic_id: bytes = field("uuid", versions=(6, LAST), default=ZERO_UUID, ignorable=True)
    error_code: int = field("int16", default=0)
    error_message: str | None = field(
        "string", versions=(5, LAST), nullable=(5, LAST), default=None, ignorable=True
    )


@message(key=20, versions=(1, 6), flexible=4, kind="response")
class DeleteTopicsResponse(Message):
    """The result for each topic to delete (DeleteTopics, API 20, v1-6; KIP-4, KIP-516)."""

    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    responses: list[DeleteTopicsResponseDeletableTopicResult] = array(
        DeleteTopicsResponseDeletableTopicResult, factory=list
    )


@struct
class CreatePartitionsRequestCreatePartitionsAssignment:
    """One of `CreatePartitionsRequestCreatePartitionsTopic.assignments`."""

    broker_ids: list[int] = array("int32", factory=list)


@struct
class CreatePartitionsRequestCreatePartitionsTopic:
    """One of `CreatePartitionsRequest.topics`."""

    name: str = field("string", default="")
    count: int = field("int32", default=0)
    assignments: list[CreatePartitionsRequestCreatePartitionsAssignment] | None = array(
        CreatePartitionsRequestCreatePartitionsAssignment, nullable=(0, LAST), factory=list
    )


@message(key=37, versions=(0, 3), flexible=2, kind="request")
class CreatePartitionsRequest(Message):
    """Let topics grow.

    `count` is the total afterwards, not what is added.

    CreatePartitions, API 37, v0-3; KIP-195.
    """

    topics: list[CreatePartitionsRequestCreatePartitionsTopic] = array(
        CreatePartitionsRequestCreatePartitionsTopic, factory=list
    )
    timeout_ms: int = field("int32", default=0)
    validate_only: bool = field("bool", default=False)


@struct
class CreatePartitionsResponseCreatePartitionsTopicResult:
    """One of `CreatePartitionsResponse.results`."""

    name: str = field("string", default="")
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default=None)


@message(key=37, versions=(0, 3), flexible=2, kind="response")
class CreatePartitionsResponse(Message):
    """The result for each topic to grow (CreatePartitions, API 37, v0-3; KIP-195)."""

    throttle_time_ms: int = field("int32", default=0)
    results: list[CreatePartitionsResponseCreatePartitionsTopicResult] = array(
        CreatePartitionsResponseCreatePartitionsTopicResult, factory=list
    )


@struct
class DeleteRecordsRequestDeleteRecordsPartition:
    """One of `DeleteRecordsRequestDeleteRecordsTopic.partitions`."""

    partition_index: int = field("int32", default=0)
    offset: int = field("int64", default=0)


@struct
class DeleteRecordsRequestDeleteRecordsTopic:
    """One of `DeleteRecordsRequest.topics`."""

    name: str = field("string", default="")
    partitions: list[DeleteRecordsRequestDeleteRecordsPartition] = array(
        DeleteRecordsRequestDeleteRecordsPartition, factory=list
    )


@message(key=21, versions=(0, 2), flexible=2, kind="request")
class DeleteRecordsRequest(Message):
    """Drop the records before an offset.

    Offset -1 drops everything that is there.

    DeleteRecords, API 21, v0-2; KIP-107.
    """

    topics: list[DeleteRecordsRequestDeleteRecordsTopic] = array(
        DeleteRecordsRequestDeleteRecordsTopic, factory=list
    )
    timeout_ms: int = field("int32", default=0)


@struct
class DeleteRecordsResponseDeleteRecordsPartitionResult:
    """One of `DeleteRecordsResponseDeleteRecordsTopicResult.partitions`."""

    partition_index: int = field("int32", default=0)
    low_watermark: int = field("int64", default=0)
    error_code: int = field("int16", default=0)


@struct
class DeleteRecordsResponseDeleteRecordsTopicResult:
    """One of `DeleteRecordsResponse.topics`."""

    name: str = field("string", default="")
    partitions: list[DeleteRecordsResponseDeleteRecordsPartitionResult] = array(
        DeleteRecordsResponseDeleteRecordsPartitionResult, factory=list
    )


@message(key=21, versions=(0, 2), flexible=2, kind="response")
class DeleteRecordsResponse(Message):
    """The first offset that each partition has left (DeleteRecords, API 21, v0-2; KIP-107)."""

    throttle_time_ms: int = field("int32", default=0)
    topics: list[DeleteRecordsResponseDeleteRecordsTopicResult] = array(
        DeleteRecordsResponseDeleteRecordsTopicResult, factory=list
    )

"""Records: produce, fetch, and the offsets of a log."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message, struct

TOPIC_IDS_VERSION = 13
"""The first version of Produce, and of Fetch, in which topics have ids instead of names (KIP-516)."""


@struct
class ProduceRequestPartitionProduceData:
    """One of `ProduceRequestTopicProduceData.partition_data`."""

    index: int = field("int32", default=0)
    records: bytes | None = field("records", nullable=(3, LAST), default=b"")


@struct
class ProduceRequestTopicProduceData:
    """One of `ProduceRequest.topic_data`."""

    name: str = field("string", versions=(3, 12), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(13, LAST), default=ZERO_UUID, ignorable=True)
    partition_data: list[ProduceRequestPartitionProduceData] = array(
        ProduceRequestPartitionProduceData, factory=list
    )


@message(key=0, versions=(3, 13), flexible=9, kind="request")
class ProduceRequest(Message):
    """Append record batches to partitions.

    `acks` 0 gets no answer, 1 and -1 get one. `records` holds one batch (magic 2) of each partition.
    `timeout_ms` bounds how long replication may take. Topics have names up to version 12, ids from 13 on.

    Produce, API 0, v3-13; KIP-98, KIP-467, KIP-516, KIP-890, KIP-951.
    """

    transactional_id: str | None = field("string", nullable=(3, LAST), default=None)
    acks: int = field("int16", default=0)
    timeout_ms: int = field("int32", default=0)
    topic_data: list[ProduceRequestTopicProduceData] = array(ProduceRequestTopicProduceData, factory=list)


@struct
class ProduceResponseBatchIndexAndErrorMessage:
    """One of `ProduceResponsePartitionProduceResponse.record_errors`."""

    batch_index: int = field("int32", versions=(8, LAST), default=0)
    batch_index_error_message: str | None = field(
        "string", versions=(8, LAST), nullable=(8, LAST), default=None
    )


@struct
class ProduceResponseLeaderIdAndEpoch:
    """The current leader of a partition; -1 where it is not known."""

    leader_id: int = field("int32", versions=(10, LAST), default=-1)
    leader_epoch: int = field("int32", versions=(10, LAST), default=-1)


@struct
class ProduceResponseNodeEndpoint:
    """One of `ProduceResponse.node_endpoints`."""

    node_id: int = field("int32", versions=(10, LAST), default=0)
    host: str = field("string", versions=(10, LAST), default="")
    port: int = field("int32", versions=(10, LAST), default=0)
    rack: str | None = field("string", versions=(10, LAST), nullable=(10, LAST), default=None)


@struct
class ProduceResponsePartitionProduceResponse:
    """One of `ProduceResponseTopicProduceResponse.partition_responses`."""

    index: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    base_offset: int = field("int64", default=0)
    log_append_time_ms: int = field("int64", default=-1, ignorable=True)
    log_start_offset: int = field("int64", versions=(5, LAST), default=-1, ignorable=True)
    record_errors: list[ProduceResponseBatchIndexAndErrorMessage] = array(
        ProduceResponseBatchIndexAndErrorMessage, versions=(8, LAST), factory=list, ignorable=True
    )
    error_message: str | None = field(
        "string", versions=(8, LAST), nullable=(8, LAST), default=None, ignorable=True
    )
    current_leader: ProduceResponseLeaderIdAndEpoch = field(
        ProduceResponseLeaderIdAndEpoch,
        factory=ProduceResponseLeaderIdAndEpoch,
        versions=(10, LAST),
        tag=0,
        tagged=(10, LAST),
        ignorable=True,
    )


@struct
class ProduceResponseTopicProduceResponse:
    """One of `ProduceResponse.responses`."""

    name: str = field("string", versions=(3, 12), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(13, LAST), default=ZERO_UUID, ignorable=True)
    partition_responses: list[ProduceResponsePartitionProduceResponse] = array(
        ProduceResponsePartitionProduceResponse, factory=list
    )


@message(key=0, versions=(3, 13), flexible=9, kind="response")
class ProduceResponse(Message):
    """The offset that each partition gave to its first record, or why it took none.

    `log_append_time_ms` is -1 where the records keep the times that the producer gave.

    Produce, API 0, v3-13; KIP-98, KIP-467, KIP-516, KIP-890, KIP-951.
    """

    responses: list[ProduceResponseTopicProduceResponse] = array(
        ProduceResponseTopicProduceResponse, factory=list
    )
    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    node_endpoints: list[ProduceResponseNodeEndpoint] = array(
        ProduceResponseNodeEndpoint,
        versions=(10, LAST),
        factory=list,
        tag=0,
        tagged=(10, LAST),
        ignorable=True,
    )


@struct
class FetchRequestFetchPartition:
    """One of `FetchRequestFetchTopic.partitions`."""

    partition: int = field("int32", default=0)
    current_leader_epoch: int = field("int32", versions=(9, LAST), default=-1, ignorable=True)
    fetch_offset: int = field("int64", default=0)
    last_fetched_epoch: int = field("int32", versions=(12, LAST), default=-1)
    log_start_offset: int = field("int64", versions=(5, LAST), default=-1, ignorable=True)
    partition_max_bytes: int = field("int32", default=0)
    replica_directory_id: bytes = field(
        "uuid", versions=(17, LAST), default=ZERO_UUID, tag=0, tagged=(17, LAST), ignorable=True
    )
    high_watermark: int = field(
        "int64", versions=(18, LAST), default=2**63 - 1, tag=1, tagged=(18, LAST), ignorable=True
    )


@struct
class FetchRequestFetchTopic:
    """One of `FetchRequest.topics`."""

    topic: str = field("string", versions=(4, 12), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(13, LAST), default=ZERO_UUID, ignorable=True)
    partitions: list[FetchRequestFetchPartition] = array(FetchRequestFetchPartition, factory=list)


@struct
class FetchRequestForgottenTopic:
    """One of `FetchRequest.forgotten_topics_data`."""

    topic: str = field("string", versions=(7, 12), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(13, LAST), default=ZERO_UUID, ignorable=True)
    partitions: list[int] = array("int32", versions=(7, LAST), factory=list)


@struct
class FetchRequestReplicaState:
    """`FetchRequest.replica_state`: a broker that follows, and its epoch."""

    replica_id: int = field("int32", versions=(15, LAST), default=-1)
    replica_epoch: int = field("int64", versions=(15, LAST), default=-1)


@message(key=1, versions=(4, 18), flexible=12, kind="request")
class FetchRequest(Message):
    """Ask for records from an offset on.

    Answered when `min_bytes` are there or `max_wait_ms` have passed. `max_bytes` and `partition_max_bytes`
    are soft: the first batch is sent whole. Topics have names up to version 12, ids from 13 on. A broker that
    follows says so in `replica_id` up to version 14, in `replica_state` from 15 on: see `follower`.

    Fetch, API 1, v4-18; KIP-98, KIP-227, KIP-392, KIP-516, KIP-853, KIP-903, KIP-951, KIP-1166.
    """

    cluster_id: str | None = field(
        "string",
        versions=(12, LAST),
        nullable=(12, LAST),
        default=None,
        tag=0,
        tagged=(12, LAST),
        ignorable=True,
    )
    replica_id: int = field("int32", versions=(4, 14), default=-1)
    replica_state: FetchRequestReplicaState = field(
        FetchRequestReplicaState,
        versions=(15, LAST),
        factory=FetchRequestReplicaState,
        tag=1,
        tagged=(15, LAST),
    )
    max_wait_ms: int = field("int32", default=0)
    min_bytes: int = field("int32", default=0)
    max_bytes: int = field("int32", default=2147483647, ignorable=True)
    isolation_level: int = field("int8", default=0, ignorable=True)
    session_id: int = field("int32", versions=(7, LAST), default=0, ignorable=True)
    session_epoch: int = field("int32", versions=(7, LAST), default=-1, ignorable=True)
    topics: list[FetchRequestFetchTopic] = array(FetchRequestFetchTopic, factory=list)
    forgotten_topics_data: list[FetchRequestForgottenTopic] = array(
        FetchRequestForgottenTopic, versions=(7, LAST), factory=list
    )
    rack_id: str = field("string", versions=(11, LAST), default="", ignorable=True)

    @property
    def follower(self) -> int:
        """The id of the broker that follows; below 0: a consumer asks."""
        return self.replica_state.replica_id if self.replica_id == -1 else self.replica_id


@struct
class FetchResponseEpochEndOffset:
    """`FetchResponsePartitionData.diverging_epoch`."""

    epoch: int = field("int32", versions=(12, LAST), default=-1)
    end_offset: int = field("int64", versions=(12, LAST), default=-1)


@struct
class FetchResponseLeaderIdAndEpoch:
    """`FetchResponsePartitionData.current_leader`."""

    leader_id: int = field("int32", versions=(12, LAST), default=-1)
    leader_epoch: int = field("int32", versions=(12, LAST), default=-1)


@struct
class FetchResponseSnapshotId:
    """`FetchResponsePartitionData.snapshot_id`."""

    end_offset: int = field("int64", default=-1)
    epoch: int = field("int32", default=-1)


@struct
class FetchResponseAbortedTransaction:
    """One of `FetchResponsePartitionData.aborted_transactions`."""

    producer_id: int = field("int64", default=0)
    first_offset: int = field("int64", default=0)


@struct
class FetchResponsePartitionData:
    """One of `FetchResponseFetchableTopicResponse.partitions`."""

    partition_index: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    high_watermark: int = field("int64", default=0)
    last_stable_offset: int = field("int64", default=-1, ignorable=True)
    log_start_offset: int = field("int64", versions=(5, LAST), default=-1, ignorable=True)
    diverging_epoch: FetchResponseEpochEndOffset = field(
        FetchResponseEpochEndOffset,
        versions=(12, LAST),
        factory=FetchResponseEpochEndOffset,
        tag=0,
        tagged=(12, LAST),
    )
    current_leader: FetchResponseLeaderIdAndEpoch = field(
        FetchResponseLeaderIdAndEpoch,
        versions=(12, LAST),
        factory=FetchResponseLeaderIdAndEpoch,
        tag=1,
        tagged=(12, LAST),
    )
    snapshot_id: FetchResponseSnapshotId = field(
        FetchResponseSnapshotId,
        versions=(12, LAST),
        factory=FetchResponseSnapshotId,
        tag=2,
        tagged=(12, LAST),
    )
    aborted_transactions: list[FetchResponseAbortedTransaction] | None = array(
        FetchResponseAbortedTransaction, nullable=(4, LAST), factory=list, ignorable=True
    )
    preferred_read_replica: int = field("int32", versions=(11, LAST), default=-1)
    records: bytes | None = field("records", nullable=(4, LAST), default=b"")


@struct
class FetchResponseFetchableTopicResponse:
    """One of `FetchResponse.responses`."""

    topic: str = field("string", versions=(4, 12), default="", ignorable=True)
    topic_id: bytes = field("uuid", versions=(13, LAST), default=ZERO_UUID, ignorable=True)
    partitions: list[FetchResponsePartitionData] = array(FetchResponsePartitionData, factory=list)


@struct
class FetchResponseNodeEndpoint:
    """One of `FetchResponse.node_endpoints`."""

    node_id: int = field("int32", versions=(16, LAST), default=0)
    host: str = field("string", versions=(16, LAST), default="")
    port: int = field("int32", versions=(16, LAST), default=0)
    rack: str | None = field("string", versions=(16, LAST), nullable=(16, LAST), default=None)


@message(key=1, versions=(4, 18), flexible=12, kind="response")
class FetchResponse(Message):
    """Whole record batches of each partition; the first may begin before the offset asked for.

    `session_id` 0 says that there is no fetch session (KIP-227).

    Fetch, API 1, v4-18; KIP-98, KIP-227, KIP-392, KIP-516, KIP-951.
    """

    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    error_code: int = field("int16", versions=(7, LAST), default=0, ignorable=True)
    session_id: int = field("int32", versions=(7, LAST), default=0)
    responses: list[FetchResponseFetchableTopicResponse] = array(
        FetchResponseFetchableTopicResponse, factory=list
    )
    node_endpoints: list[FetchResponseNodeEndpoint] = array(
        FetchResponseNodeEndpoint,
        versions=(16, LAST),
        factory=list,
        tag=0,
        tagged=(16, LAST),
        ignorable=True,
    )


@struct
class ListOffsetsRequestListOffsetsPartition:
    """One of `ListOffsetsRequestListOffsetsTopic.partitions`."""

    partition_index: int = field("int32", default=0)
    current_leader_epoch: int = field("int32", versions=(4, LAST), default=-1, ignorable=True)
    timestamp: int = field("int64", default=0)


@struct
class ListOffsetsRequestListOffsetsTopic:
    """One of `ListOffsetsRequest.topics`."""

    name: str = field("string", default="")
    partitions: list[ListOffsetsRequestListOffsetsPartition] = array(
        ListOffsetsRequestListOffsetsPartition, factory=list
    )


@message(key=2, versions=(1, 7), flexible=6, kind="request")
class ListOffsetsRequest(Message):
    """Ask for the first offset at or after a time.

    Times in ms since 1970; -1 asks for the end, -2 for the beginning, -3 for the record with the latest time.

    ListOffsets, API 2, v1-7; KIP-79, KIP-207, KIP-734.
    """

    replica_id: int = field("int32", default=0)
    isolation_level: int = field("int8", versions=(2, LAST), default=0)
    topics: list[ListOffsetsRequestListOffsetsTopic] = array(ListOffsetsRequestListOffsetsTopic, factory=list)


@struct
class ListOffsetsResponseListOffsetsPartitionResponse:
    """One of `ListOffsetsResponseListOffsetsTopicResponse.partitions`."""

    partition_index: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    timestamp: int = field("int64", default=-1)
    offset: int = field("int64", default=-1)
    leader_epoch: int = field("int32", versions=(4, LAST), default=-1)


@struct
class ListOffsetsResponseListOffsetsTopicResponse:
    """One of `ListOffsetsResponse.topics`."""

    name: str = field("string", default="")
    partitions: list[ListOffsetsResponseListOffsetsPartitionResponse] = array(
        ListOffsetsResponseListOffsetsPartitionResponse, factory=list
    )


@message(key=2, versions=(1, 7), flexible=6, kind="response")
class ListOffsetsResponse(Message):
    """The offset found in each partition; -1 where there is none.

    ListOffsets, API 2, v1-7; KIP-79, KIP-207, KIP-734.
    """

    throttle_time_ms: int = field("int32", versions=(2, LAST), default=0, ignorable=True)
    topics: list[ListOffsetsResponseListOffsetsTopicResponse] = array(
        ListOffsetsResponseListOffsetsTopicResponse, factory=list
    )


@struct
class OffsetForLeaderEpochRequestOffsetForLeaderPartition:
    """One of `OffsetForLeaderEpochRequestOffsetForLeaderTopic.partitions`."""

    partition: int = field("int32", default=0)
    current_leader_epoch: int = field("int32", default=-1, ignorable=True)
    leader_epoch: int = field("int32", default=0)


@struct
class OffsetForLeaderEpochRequestOffsetForLeaderTopic:
    """One of `OffsetForLeaderEpochRequest.topics`."""

    topic: str = field("string", default="")
    partitions: list[OffsetForLeaderEpochRequestOffsetForLeaderPartition] = array(
        OffsetForLeaderEpochRequestOffsetForLeaderPartition, factory=list
    )


@message(key=23, versions=(2, 4), flexible=4, kind="request")
class OffsetForLeaderEpochRequest(Message):
    """Ask where the records of a leader epoch end.

    OffsetForLeaderEpoch, API 23, v2-4; KIP-101, KIP-320.
    """

    replica_id: int = field("int32", versions=(3, LAST), default=-2, ignorable=True)
    topics: list[OffsetForLeaderEpochRequestOffsetForLeaderTopic] = array(
        OffsetForLeaderEpochRequestOffsetForLeaderTopic, factory=list
    )


@struct
class OffsetForLeaderEpochResponseEpochEndOffset:
    """One of `OffsetForLeaderEpochResponseOffsetForLeaderTopicResult.partitions`."""

    error_code: int = field("int16", default=0)
    partition: int = field("int32", default=0)
    leader_epoch: int = field("int32", default=-1, ignorable=True)
    end_offset: int = field("int64", default=-1)


@struct
class OffsetForLeaderEpochResponseOffsetForLeaderTopicResult:
    """One of `OffsetForLeaderEpochResponse.topics`."""

    topic: str = field("string", default="")
    partitions: list[OffsetForLeaderEpochResponseEpochEndOffset] = array(
        OffsetForLeaderEpochResponseEpochEndOffset, factory=list
    )


@message(key=23, versions=(2, 4), flexible=4, kind="response")
class OffsetForLeaderEpochResponse(Message):
    """The largest epoch not above the one asked for, and where it ends; -1 and -1 if unknown.

    OffsetForLeaderEpoch, API 23, v2-4; KIP-101, KIP-320.
    """

    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    topics: list[OffsetForLeaderEpochResponseOffsetForLeaderTopicResult] = array(
        OffsetForLeaderEpochResponseOffsetForLeaderTopicResult, factory=list
    )

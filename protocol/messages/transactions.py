"""Producer ids and transactions."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message, struct


@message(key=22, versions=(0, 5), flexible=2, kind="request")
class InitProducerIdRequest(Message):
    """Ask for a producer id and epoch.

    A null `transactional_id` asks for a fresh id for an idempotent producer.

    InitProducerId, API 22, v0-5; KIP-98, KIP-360, KIP-890.
    """

    transactional_id: str | None = field("string", nullable=(0, LAST), default="")
    transaction_timeout_ms: int = field("int32", default=0)
    producer_id: int = field("int64", versions=(3, LAST), default=-1)
    producer_epoch: int = field("int16", versions=(3, LAST), default=-1)


@message(key=22, versions=(0, 5), flexible=2, kind="response")
class InitProducerIdResponse(Message):
    """The producer id and epoch to write with (InitProducerId, API 22, v0-5; KIP-98, KIP-360)."""

    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    error_code: int = field("int16", default=0)
    producer_id: int = field("int64", default=-1)
    producer_epoch: int = field("int16", default=0)


@struct
class AddPartitionsToTxnRequestAddPartitionsToTxnTopic:
    """One of `AddPartitionsToTxnRequest.v3_and_below_topics`."""

    name: str = field("string", default="")
    partitions: list[int] = array("int32", factory=list)


@message(key=24, versions=(0, 3), flexible=3, kind="request")
class AddPartitionsToTxnRequest(Message):
    """Take partitions into a transaction (AddPartitionsToTxn, API 24, v0-3; KIP-98)."""

    v3_and_below_transactional_id: str = field("string", default="")
    v3_and_below_producer_id: int = field("int64", default=0)
    v3_and_below_producer_epoch: int = field("int16", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnRequestAddPartitionsToTxnTopic] = array(
        AddPartitionsToTxnRequestAddPartitionsToTxnTopic, factory=list
    )


@struct
class AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult:
    """One of `AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult.results_by_partition`."""

    partition_index: int = field("int32", default=0)
    partition_error_code: int = field("int16", default=0)


@struct
class AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult:
    """One of `AddPartitionsToTxnResponse.results_by_topic_v3_and_below`."""

    name: str = field("string", default="")
    results_by_partition: list[AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult, factory=list
    )


@message(key=24, versions=(0, 3), flexible=3, kind="response")
class AddPartitionsToTxnResponse(Message):
    """The result for each partition (AddPartitionsToTxn, API 24, v0-3; KIP-98)."""

    throttle_time_ms: int = field("int32", default=0)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult, factory=list
    )


@message(key=25, versions=(0, 4), flexible=3, kind="request")
class AddOffsetsToTxnRequest(Message):
    """Take the offsets of a group into a transaction (AddOffsetsToTxn, API 25, v0-4; KIP-98)."""

    transactional_id: str = field("string", default="")
    producer_id: int = field("int64", default=0)
    producer_epoch: int = field("int16", default=0)
    group_id: str = field("string", default="")


@message(key=25, versions=(0, 4), flexible=3, kind="response")
class AddOffsetsToTxnResponse(Message):
    """Whether the group is in the transaction (AddOffsetsToTxn, API 25, v0-4; KIP-98)."""

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)


@message(key=26, versions=(0, 5), flexible=3, kind="request")
class EndTxnRequest(Message):
    """Commit or abort a transaction (EndTxn, API 26, v0-5; KIP-98)."""

    transactional_id: str = field("string", default="")
    producer_id: int = field("int64", default=0)
    producer_epoch: int = field("int16", default=0)
    committed: bool = field("bool", default=False)


@message(key=26, versions=(0, 5), flexible=3, kind="response")
class EndTxnResponse(Message):
    """Whether the transaction is to end as asked (EndTxn, API 26, v0-5; KIP-98, KIP-890).

    From v5 on with the producer id and epoch of the next transaction; -1 with an error.
    """

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    producer_id: int = field("int64", versions=(5, LAST), default=-1, ignorable=True)
    producer_epoch: int = field("int16", versions=(5, LAST), default=-1, ignorable=True)


@struct
class TxnOffsetCommitRequestPartition:
    """One of `TxnOffsetCommitRequestTopic.partitions`."""

    partition_index: int = field("int32", default=0)
    committed_offset: int = field("int64", default=0)
    committed_leader_epoch: int = field("int32", versions=(2, LAST), default=-1, ignorable=True)
    committed_metadata: str | None = field("string", nullable=(0, LAST), default="")


@struct
class TxnOffsetCommitRequestTopic:
    """One of `TxnOffsetCommitRequest.topics`."""

    name: str = field("string", default="", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition, factory=list)


@message(key=28, versions=(0, 5), flexible=3, kind="request")
class TxnOffsetCommitRequest(Message):
    """Store offsets that count once the transaction commits.

    Sent to the coordinator of the group, not of the transaction.

    TxnOffsetCommit, API 28, v0-5; KIP-98, KIP-447, KIP-890.
    """

    transactional_id: str = field("string", default="")
    group_id: str = field("string", default="")
    producer_id: int = field("int64", default=0)
    producer_epoch: int = field("int16", default=0)
    generation_id_or_member_epoch: int = field("int32", versions=(3, LAST), default=-1)
    member_id: str = field("string", versions=(3, LAST), default="")
    group_instance_id: str | None = field("string", versions=(3, LAST), nullable=(3, LAST), default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic, factory=list)


@struct
class TxnOffsetCommitResponsePartition:
    """One of `TxnOffsetCommitResponseTopic.partitions`."""

    partition_index: int = field("int32", default=0)
    error_code: int = field("int16", default=0)


@struct
class TxnOffsetCommitResponseTopic:
    """One of `TxnOffsetCommitResponse.topics`."""

    name: str = field("string", default="", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition, factory=list)


@message(key=28, versions=(0, 5), flexible=3, kind="response")
class TxnOffsetCommitResponse(Message):
    """The outcome for each partition (TxnOffsetCommit, API 28, v0-5; KIP-98, KIP-447)."""

    throttle_time_ms: int = field("int32", default=0)
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic, factory=list)


@struct
class DescribeProducersRequestTopicRequest:
    """One of `DescribeProducersRequest.topics`."""

    name: str = field("string", default="")
    partition_indexes: list[int] = array("int32", factory=list)


@message(key=61, versions=(0, 0), flexible=0, kind="request")
class DescribeProducersRequest(Message):
    """Ask the leaders of partitions which producers they know (DescribeProducers, API 61, v0; KIP-664)."""

    topics: list[DescribeProducersRequestTopicRequest] = array(
        DescribeProducersRequestTopicRequest, factory=list
    )


@struct
class DescribeProducersResponseProducerState:
    """One of `DescribeProducersResponsePartitionResponse.active_producers`."""

    producer_id: int = field("int64", default=0)
    producer_epoch: int = field("int32", default=0)
    last_sequence: int = field("int32", default=-1)
    last_timestamp: int = field("int64", default=-1)
    coordinator_epoch: int = field("int32", default=0)
    current_txn_start_offset: int = field("int64", default=-1)


@struct
class DescribeProducersResponsePartitionResponse:
    """One of `DescribeProducersResponseTopicResponse.partitions`."""

    partition_index: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default=None)
    active_producers: list[DescribeProducersResponseProducerState] = array(
        DescribeProducersResponseProducerState, factory=list
    )


@struct
class DescribeProducersResponseTopicResponse:
    """One of `DescribeProducersResponse.topics`."""

    name: str = field("string", default="")
    partitions: list[DescribeProducersResponsePartitionResponse] = array(
        DescribeProducersResponsePartitionResponse, factory=list
    )


@message(key=61, versions=(0, 0), flexible=0, kind="response")
class DescribeProducersResponse(Message):
    """Producers that wrote within `producer.id.expiration.ms`, with the last epoch and sequence of each
    (DescribeProducers, API 61, v0; KIP-664)."""

    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    topics: list[DescribeProducersResponseTopicResponse] = array(
        DescribeProducersResponseTopicResponse, factory=list
    )


@message(key=65, versions=(0, 0), flexible=0, kind="request")
class DescribeTransactionsRequest(Message):
    """Ask coordinators how transactions stand (DescribeTransactions, API 65, v0; KIP-664)."""

    transactional_ids: list[str] = array("string", factory=list)


@struct
class DescribeTransactionsResponseTopicData:
    """One of `DescribeTransactionsResponseTransactionState.topics`."""

    topic: str = field("string", default="")
    partitions: list[int] = array("int32", factory=list)


@struct
class DescribeTransactionsResponseTransactionState:
    """One of `DescribeTransactionsResponse.transaction_states`."""

    error_code: int = field("int16", default=0)
    transactional_id: str = field("string", default="")
    transaction_state: str = field("string", default="")
    transaction_timeout_ms: int = field("int32", default=0)
    transaction_start_time_ms: int = field("int64", default=0)
    producer_id: int = field("int64", default=0)
    producer_epoch: int = field("int16", default=0)
    topics: list[DescribeTransactionsResponseTopicData] = array(
        DescribeTransactionsResponseTopicData, factory=list
    )


@message(key=65, versions=(0, 0), flexible=0, kind="response")
class DescribeTransactionsResponse(Message):
    """The state of each (`Ongoing`, ...), who is in it, since when, and with which partitions
    (DescribeTransactions, API 65, v0; KIP-664)."""

    throttle_time_ms: int = field("int32", default=0, ignorable=True)
    transaction_states: list[DescribeTransactionsResponseTransactionState] = array(
        DescribeTransactionsResponseTransactionState, factory=list
    )


@message(key=66, versions=(0, 0), flexible=0, kind="request")
class ListTransactionsRequest(Message):
    """Ask a coordinator for the transactions that it has, in these states and of these producers; empty: any
    (ListTransactions, API 66, v0; KIP-664)."""

    state_filters: list[str] = array("string", factory=list)
    producer_id_filters: list[int] = array("int64", factory=list)


@struct
class ListTransactionsResponseTransactionState:
    """One of `ListTransactionsResponse.transaction_states`."""

    transactional_id: str = field("string", default="")
    producer_id: int = field("int64", default=0)
    transaction_state: str = field("string", default="")


@message(key=66, versions=(0, 0), flexible=0, kind="response")
class ListTransactionsResponse(Message):
    """Those that the asker may describe (ListTransactions, API 66, v0; KIP-664)."""

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    unknown_state_filters: list[str] = array("string", factory=list)
    transaction_states: list[ListTransactionsResponseTransactionState] = array(
        ListTransactionsResponseTransactionState, factory=list
    )

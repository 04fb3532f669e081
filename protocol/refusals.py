"""The answer to a whole request that cannot be served: each API has its own place for an error code.

As Kafka's `AbstractRequest.getErrorResponse`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import response_class
from ringleader.protocol.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseDescribedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    FetchRequest,
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
    JoinGroupRequest,
    JoinGroupResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

FIRST_NULLABLE_PROTOCOL_NAME = 7
"""Of JoinGroup: below it the protocol name cannot be null."""
SEVERAL_KEYS_VERSION = 4
"""The first version of FindCoordinator that asks for several keys, and has an error code for each."""
SEVERAL_GROUPS_VERSION = 8
"""The first version of OffsetFetch that asks for several groups, and has an error code for each."""
TOP_LEVEL_ERROR_VERSION = 2
"""The first version of OffsetFetch that has an error code for the whole."""


def refusal(request: Any, version: int, error_code: int) -> Any:
    """The response that says `error_code` to all of `request`."""
    build = _BUILDERS.get(type(request))
    if build is not None:
        return build(request, version, error_code)
    response: Any = response_class(request.API_KEY)
    return response(error_code=error_code) if hasattr(response, "error_code") else response()


def join_refusal(version: int, error_code: int, member_id: str) -> JoinGroupResponse:
    """A refused JoinGroup: generation -1, no leader, no members, no protocol type (KIP-559)."""
    return JoinGroupResponse(
        error_code=error_code,
        generation_id=-1,
        protocol_type=None,
        protocol_name=None if version >= FIRST_NULLABLE_PROTOCOL_NAME else "",
        member_id=member_id,
    )


def _join(request: JoinGroupRequest, version: int, error_code: int) -> JoinGroupResponse:
    return join_refusal(version, error_code, request.member_id)


def _find(request: FindCoordinatorRequest, version: int, error_code: int) -> FindCoordinatorResponse:
    if version < SEVERAL_KEYS_VERSION:
        return FindCoordinatorResponse(error_code=error_code, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponseCoordinator(key, node_id=-1, port=-1, error_code=error_code)
            for key in request.coordinator_keys
        ]
    )


def _commit(request: OffsetCommitRequest, version: int, error_code: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(one.partition_index, error_code) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _commit_in_transaction(
    request: TxnOffsetCommitRequest, version: int, error_code: int
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(one.partition_index, error_code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


_SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""These of Fetch are about the whole request."""


def _produce(request: ProduceRequest, version: int, error_code: int) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            ProduceResponseTopicProduceResponse(
                topic.name,
                topic.topic_id,
                [
                    ProduceResponsePartitionProduceResponse(
                        one.index, error_code, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1
                    )
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _fetch(request: FetchRequest, version: int, error_code: int) -> FetchResponse:
    if error_code in _SESSION_ERRORS:
        return FetchResponse(error_code=error_code)
    return FetchResponse(
        responses=[
            FetchResponseFetchableTopicResponse(
                topic.topic,
                topic.topic_id,
                [
                    FetchResponsePartitionData(
                        one.partition, error_code, high_watermark=-1, aborted_transactions=None
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _list_offsets(request: ListOffsetsRequest, version: int, error_code: int) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponseListOffsetsTopicResponse(
                topic.name,
                [
                    ListOffsetsResponseListOffsetsPartitionResponse(one.partition_index, error_code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _fetch_offsets(request: OffsetFetchRequest, version: int, error_code: int) -> OffsetFetchResponse:
    if version >= SEVERAL_GROUPS_VERSION:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=error_code)
                for group in request.groups
            ]
        )
    if version >= TOP_LEVEL_ERROR_VERSION:
        return OffsetFetchResponse(error_code=error_code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=error_code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _describe_consumer(
    request: ConsumerGroupDescribeRequest, version: int, error_code: int
) -> ConsumerGroupDescribeResponse:
    described = ConsumerGroupDescribeResponseDescribedGroup
    groups = [described(error_code, group_id=group_id) for group_id in request.group_ids]
    return ConsumerGroupDescribeResponse(groups=groups)


def _describe(request: DescribeGroupsRequest, version: int, error_code: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[
            DescribeGroupsResponseDescribedGroup(error_code=error_code, group_id=group_id)
            for group_id in request.groups
        ]
    )


def _delete(request: DeleteGroupsRequest, version: int, error_code: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeleteGroupsResponseDeletableGroupResult(group_id=group_id, error_code=error_code)
            for group_id in request.groups_names
        ]
    )


def _add_partitions(
    request: AddPartitionsToTxnRequest, version: int, error_code: int
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult(
                topic.name,
                [
                    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult(index, error_code)
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )


_BUILDERS: dict[type[Any], Callable[[Any, int, int], Any]] = {
    FindCoordinatorRequest: _find,
    JoinGroupRequest: _join,
    OffsetCommitRequest: _commit,
    TxnOffsetCommitRequest: _commit_in_transaction,
    FetchRequest: _fetch,
    ProduceRequest: _produce,
    ListOffsetsRequest: _list_offsets,
    OffsetFetchRequest: _fetch_offsets,
    DescribeGroupsRequest: _describe,
    ConsumerGroupDescribeRequest: _describe_consumer,
    DeleteGroupsRequest: _delete,
    AddPartitionsToTxnRequest: _add_partitions,
}

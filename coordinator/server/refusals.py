"""The answer to a whole request that cannot be served: each API has its own place for an error code.

As Kafka's `AbstractRequest.getErrorResponse`. Here are the APIs whose requests may have to wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.coordinator.groups.replies import commit_answer, join_error, txn_commit_answer
from ringleader.protocol.frames import response_class
from ringleader.protocol.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteGroupsResponseDeletableGroupResult,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
    TxnOffsetCommitRequest,
)

SEVERAL_GROUPS_VERSION = 8
"""The first version of OffsetFetch that asks for several groups, and has an error code for each."""
TOP_LEVEL_ERROR_VERSION = 2
"""The first version of OffsetFetch that has an error code for the whole."""


def refusal(request: Any, version: int, error_code: int) -> Any:
    """The response that says `error_code` to all of `request`."""
    build = _BUILDERS.get(type(request))
    if build is not None:
        return build(request, version, error_code)
    response = response_class(request.API_KEY)
    assert response is not None
    return response(error_code=error_code)  # type: ignore[call-arg]  # all others have the field


def _join(request: JoinGroupRequest, version: int, error_code: int) -> Any:
    return join_error(version, error_code, request.member_id)


def _commit(request: OffsetCommitRequest, version: int, error_code: int) -> Any:
    return commit_answer(request, error_code)


def _commit_in_transaction(request: TxnOffsetCommitRequest, version: int, error_code: int) -> Any:
    return txn_commit_answer(request, error_code)


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
    JoinGroupRequest: _join,
    OffsetCommitRequest: _commit,
    TxnOffsetCommitRequest: _commit_in_transaction,
    OffsetFetchRequest: _fetch_offsets,
    DescribeGroupsRequest: _describe,
    DeleteGroupsRequest: _delete,
    AddPartitionsToTxnRequest: _add_partitions,
}

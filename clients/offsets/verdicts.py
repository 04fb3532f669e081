"""The meaning of answers to OffsetCommit and OffsetFetch for a member, in both of Kafka's group protocols."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    RebalanceInProgressError,
    RetriableError,
    is_retriable,
)
from ringleader.clients.model import TopicPartition
from ringleader.protocol.errors import ErrorCode, error_name

COORDINATOR_MOVED = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT}
)
TRY_AGAIN = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
MEMBERSHIP = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


class Verdict(enum.Enum):
    """The next step after an answer."""

    DONE = "done"
    RETRY = "try again after a while"
    FIND = "find the coordinator, then try again"
    MEMBERSHIP = "it says something about the membership"
    REFUSED = "an error for the application"


def judge_commit(errors: Mapping[TopicPartition, int]) -> tuple[Verdict, int]:
    """The verdict over the error codes by partition, and the code that decided. Codes about the group go
    first: they are the same for all partitions."""
    codes = set(errors.values())
    for verdict, known in (
        (Verdict.MEMBERSHIP, MEMBERSHIP),
        (Verdict.FIND, COORDINATOR_MOVED),
        (Verdict.REFUSED, codes - TRY_AGAIN),
        (Verdict.RETRY, TRY_AGAIN),
    ):
        if found := codes & known:
            return verdict, min(found)
    return Verdict.DONE, 0


def judge_fetch(code: int, errors: Mapping[TopicPartition, int]) -> tuple[Verdict, int]:
    """The same for OffsetFetch: the group's code first, then those by partition."""
    if code in COORDINATOR_MOVED:
        return Verdict.FIND, code
    if code in MEMBERSHIP:
        return Verdict.MEMBERSHIP, code
    if code:
        return (Verdict.RETRY if is_retriable(code) else Verdict.REFUSED), code
    codes = set(errors.values())
    if hard := codes - {ErrorCode.UNSTABLE_OFFSET_COMMIT}:
        return Verdict.REFUSED, min(hard)
    return (Verdict.RETRY, ErrorCode.UNSTABLE_OFFSET_COMMIT) if codes else (Verdict.DONE, 0)


def commit_error(
    code: int, group_id: str, generation: int, errors: Mapping[TopicPartition, int]
) -> ClientError:
    """The exception for a commit that will not be made."""
    head = f"group {group_id!r}: commit of generation {generation} refused"
    if code == ErrorCode.REBALANCE_IN_PROGRESS:
        return RebalanceInProgressError(f"{head}: the group is rebalancing", code)
    if code in MEMBERSHIP:
        why = "this member is not part of that generation any more"
        return CommitFailedError(f"{head}: {why} ({error_name(code)})", code)
    where = ", ".join(f"{topic}-{p}" for (topic, p), found in errors.items() if found == code)
    kind = RetriableError if is_retriable(code) else BrokerError
    return kind(f"{head} for {where}: {error_name(code)}", code)

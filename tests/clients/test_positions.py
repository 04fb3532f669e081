"""Commit and fetch of offsets, answer by answer (K10, K11), by a member of a scripted group."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    CoordinatorUnavailableError,
    MembershipOverError,
    RebalanceInProgressError,
    RetriableError,
)
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.model import MemberProtocol, OffsetAndMetadata
from ringleader.clients.offsets.verdicts import Verdict, judge_commit, judge_fetch
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
    SyncGroupResponse,
)
from tests.support.scripted_broker import CLOSE, VERSIONS, ScriptedBroker

PATIENCE_S = 20.0


class ScriptedGroup:
    """A group of one: joins are answered with the next generation, commits and fetches as the test says."""

    def __init__(self, *, commits: list[Any] | None = None, fetches: list[Any] | None = None) -> None:
        self.generation = 0
        self.commits = list(commits or [])
        self.fetches = list(fetches or [])
        self.handlers = {
            8: self._commit,
            9: self._fetch,
            11: self._join,
            12: lambda *_: HeartbeatResponse(),
            13: lambda *_: LeaveGroupResponse(),
            14: lambda *_: SyncGroupResponse(assignment=b"all"),
        }

    def _join(self, _request: Any, version: int, _id: int) -> Any:
        self.generation += 1
        return JoinGroupResponse(
            generation_id=self.generation, protocol_name="p", leader="other", member_id="m"
        )

    def _commit(self, request: Any, _version: int, _id: int) -> Any:
        codes = self.commits.pop(0) if self.commits else 0
        if codes is CLOSE:
            return CLOSE
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(
                            partition_index=part.partition_index,
                            error_code=codes.get(part.partition_index, 0)
                            if isinstance(codes, dict)
                            else codes,
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _fetch(self, request: Any, version: int, _id: int) -> Any:
        top, part = self.fetches.pop(0) if self.fetches else (0, 0)
        if top is CLOSE:
            return CLOSE
        values: dict[str, Any] = {"partition_index": 0, "committed_offset": 4, "error_code": part}
        values["metadata"] = None
        if version >= 8:
            parts = [OffsetFetchResponsePartitions(**values)]
            topics = [OffsetFetchResponseTopics(name="t", partitions=parts)]
            return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", topics, top)])
        older = [OffsetFetchResponseTopic(name="t", partitions=[OffsetFetchResponsePartition(**values)])]
        return OffsetFetchResponse(topics=older, error_code=top)


def commits_of(broker: ScriptedBroker) -> list[Any]:
    return [request for request, _ in broker.requests if isinstance(request, OffsetCommitRequest)]


@asynccontextmanager
async def joined(
    group: ScriptedGroup, **versions: tuple[int, int]
) -> AsyncIterator[tuple[GroupMember, ScriptedBroker]]:
    served = VERSIONS | {int(key[1:]): value for key, value in versions.items()}
    async with ScriptedBroker(group.handlers, served) as broker:
        member = GroupMember(
            broker.address,
            "g",
            protocol_type="x",
            protocols=[MemberProtocol("p")],
            assign=lambda *_: {},
            retry_backoff_ms=1,
            retry_backoff_max_ms=2,
        )
        async with member:
            await member.wait_assigned(PATIENCE_S)
            yield member, broker


@pytest.mark.parametrize(
    ("answers", "commits"),
    [
        ([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3, 4),
        ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], 2),
        ([ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT], 4),
        ([CLOSE, ErrorCode.NOT_COORDINATOR, CLOSE], 4),
    ],
)
async def test_commits_that_are_repeated(answers: list[Any], commits: int) -> None:
    async with joined(ScriptedGroup(commits=answers)) as (member, broker):
        await member.commit({("t", 0): 1})
        assert broker.names().count("OffsetCommit") == commits
        finds = sum(code is CLOSE or code not in (14, 3) for code in answers)
        assert broker.names().count("FindCoordinator") == 1 + finds
        assert broker.names().count("JoinGroup") == 1, "the membership is not touched"


async def test_only_what_failed_is_committed_again() -> None:
    group = ScriptedGroup(commits=[{1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}])
    async with joined(group) as (member, broker):
        await member.commit({("t", 0): 1, ("t", 1): 2})
        commits = commits_of(broker)
        sent = [[p.partition_index for topic in one.topics for p in topic.partitions] for one in commits]
        assert sent == [[0, 1], [1]]
        assert (commits[0].generation_id_or_member_epoch, commits[0].member_id) == (1, "m")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailedError),
        (ErrorCode.ILLEGAL_GENERATION, CommitFailedError),
        (ErrorCode.REBALANCE_IN_PROGRESS, RebalanceInProgressError),
    ],
)
async def test_commits_that_say_something_about_the_membership(
    code: ErrorCode, kind: type[ClientError]
) -> None:
    async with joined(ScriptedGroup(commits=[code])) as (member, broker):
        with pytest.raises(kind) as raised:
            await member.commit({("t", 0): 1})
        assert raised.value.code == code
        await broker.until("JoinGroup", 2)
        while member.generation != 2 or member.assigned is None:
            await member.wait_assigned(PATIENCE_S)
            await asyncio.sleep(0)
        await member.commit({("t", 0): 1})


async def test_a_commit_by_a_fenced_member_ends_it() -> None:
    async with joined(ScriptedGroup(commits=[ErrorCode.FENCED_INSTANCE_ID])) as (member, _):
        with pytest.raises(CommitFailedError):
            await member.commit({("t", 0): 1})
        assert member.error is not None
        with pytest.raises(MembershipOverError):
            await member.commit({("t", 0): 1})


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ],
)
async def test_commits_that_are_refused(code: ErrorCode) -> None:
    async with joined(ScriptedGroup(commits=[{1: code}])) as (member, _):
        with pytest.raises(BrokerError, match=f"t-1: {code.name}"):
            await member.commit({("t", 0): 1, ("t", 1): 1})
        await member.commit({("t", 0): 2})


async def test_a_commit_gives_up_when_its_time_is_over() -> None:
    loading = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 10_000
    async with joined(ScriptedGroup(commits=loading)) as (member, _):
        with pytest.raises(RetriableError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            await member.commit({("t", 0): 1}, timeout_s=0.1)


async def test_a_commit_without_any_coordinator() -> None:
    group = ScriptedGroup(commits=[ErrorCode.NOT_COORDINATOR])
    async with joined(group) as (member, broker):
        broker.handlers[10] = lambda *_: CLOSE
        with pytest.raises(RetriableError) as raised:
            await member.commit({("t", 0): 1}, timeout_s=0.2)
        assert isinstance(raised.value, CoordinatorUnavailableError) or raised.value.code is not None
        del broker.handlers[10]
        await member.commit({("t", 0): 1})


async def test_an_older_commit_that_is_repeated_is_not_overtaken() -> None:
    group = ScriptedGroup(commits=[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, CLOSE])
    async with joined(group) as (member, broker):
        await asyncio.gather(*(member.commit({("t", 0): n}) for n in (1, 2, 3)))
        commits = commits_of(broker)
        assert [one.topics[0].partitions[0].committed_offset for one in commits] == [1, 1, 1, 2, 3]


@pytest.mark.parametrize("version", range(1, 10))
async def test_committed_in_every_version(version: int) -> None:
    async with joined(ScriptedGroup(), v9=(0, version)) as (member, broker):
        assert await member.committed([("t", 0)]) == {("t", 0): OffsetAndMetadata(4)}
        request, used = broker.requests[-1]
        assert used == version
        assert request.require_stable is (version >= 7)


@pytest.mark.parametrize("version", [7, 9])
@pytest.mark.parametrize(
    "answers",
    [
        [(0, ErrorCode.UNSTABLE_OFFSET_COMMIT)] * 3,
        [(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 0)],
        [(ErrorCode.NOT_COORDINATOR, 0), (ErrorCode.COORDINATOR_NOT_AVAILABLE, 0)],
        [(CLOSE, 0)],
    ],
    ids=["unstable", "loading", "moved", "closed"],
)
async def test_fetches_that_are_repeated(version: int, answers: list[Any]) -> None:
    async with joined(ScriptedGroup(fetches=answers), v9=(0, version)) as (member, broker):
        assert await member.committed() == {("t", 0): OffsetAndMetadata(4)}
        assert broker.names().count("OffsetFetch") == len(answers) + 1


@pytest.mark.parametrize(
    "answer",
    [
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, 0),
        (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_fetches_that_are_refused(answer: tuple[int, int]) -> None:
    async with joined(ScriptedGroup(fetches=[answer])) as (member, _):
        with pytest.raises(BrokerError) as raised:
            await member.committed([("t", 0)])
        assert raised.value.code == max(answer)


def test_the_worst_of_several_codes_decides() -> None:
    a, b, c = ("t", 0), ("t", 1), ("t", 2)
    assert judge_commit({}) == (Verdict.DONE, 0)
    assert judge_commit({a: 3, b: 12, c: 22}) == (Verdict.MEMBERSHIP, 22)
    assert judge_commit({a: 3, b: 12, c: 16}) == (Verdict.FIND, 16)
    assert judge_commit({a: 3, b: 12}) == (Verdict.REFUSED, 12)
    assert judge_commit({a: 14}) == (Verdict.RETRY, 14)
    assert judge_fetch(0, {a: 88, b: 29}) == (Verdict.REFUSED, 29)
    assert judge_fetch(30, {}) == (Verdict.REFUSED, 30)

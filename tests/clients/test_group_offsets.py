"""A member's commits at its coordinator, where the test plays that, the clock, and the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import ConnectionLostError, RequestTimedOutError
from ringleader.clients.model import Node, TopicPartition
from ringleader.clients.offsets.commit_queue import Commit
from ringleader.clients.offsets.group_offsets import GroupOffsets
from ringleader.clients.offsets.member_offsets import MemberOffsets
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.support.consumer_protocol_script import INTERVAL_MS, ConsumerProtocolScript
from tests.support.member_script import TellLost

COMMITTED = OffsetCommitResponse(
    topics=[OffsetCommitResponseTopic("t", partitions=[OffsetCommitResponsePartition(0)])]
)


class Played:
    """See `Host`. Each request is answered by the next one of `answers`."""

    def __init__(self, script: ConsumerProtocolScript, *answers: Callable[[], Any]) -> None:
        self.machine = script.machine
        self._script = script
        self._answers = [*answers]
        self.nodes: list[Node] = []
        """That were asked."""
        self.requests: list[Request] = []

    def now_ms(self) -> int:
        return self._script.now_ms

    def pump(self) -> None:
        self._script.look()

    async def ask(self, node: Node, request: Request, timeout_ms: int) -> Any:
        self.nodes.append(node)
        self.requests.append(request)
        return self._answers.pop(0)()

    async def change(self) -> None:
        raise AssertionError("it waits for the machine")

    def over_text(self) -> str:
        return "over"


async def commit(script: ConsumerProtocolScript, host: Played) -> None:
    identity = script.machine.state.identity
    await GroupOffsets(host).write(Commit({("t", 0): 1}, identity, script.now_ms, 30_000, repeats=True))


async def test_an_answer_to_a_commit_proves_the_session_of_when_that_was_sent() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})

    def late() -> OffsetCommitResponse:
        script.wait(2_000)
        return COMMITTED

    script.wait(1_000)
    await commit(script, Played(script, late))
    script.wait(INTERVAL_MS - 3_000)
    script.beaten(code=ErrorCode.FENCED_MEMBER_EPOCH)
    seconds = (INTERVAL_MS - 1_000) / 1_000
    assert f"{seconds:.1f} s after the last contact" in script.last_reported(TellLost).lost.reason


async def test_a_connection_to_a_former_coordinator_that_ends_says_nothing_of_the_present_one() -> None:
    script = ConsumerProtocolScript(retry_backoff_ms=1, retry_backoff_max_ms=1).settled({"t": [0]})
    script.wait(INTERVAL_MS)

    def moved() -> Any:
        script.fail("ConsumerGroupHeartbeat")
        script.wait(1_000)
        script.find(port=9093)
        raise ConnectionLostError("the former one is gone")

    host = Played(script, moved, lambda: COMMITTED)
    await commit(script, host)
    assert [node.port for node in host.nodes] == [9092, 9093]
    assert "FindCoordinator" not in script.wanted


async def test_offsets_that_the_group_has_taken_are_not_committed_again_with_those_it_has_not() -> None:
    script = ConsumerProtocolScript(retry_backoff_ms=1, retry_backoff_max_ms=1).settled({"t": [0, 1]})
    later = OffsetCommitResponsePartition(1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    in_part = OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic("t", partitions=[OffsetCommitResponsePartition(0), later])]
    )
    host = Played(script, lambda: in_part, lambda: COMMITTED)
    offsets: dict[TopicPartition, Any] = {("t", 0): 1, ("t", 1): 2}
    identity = script.machine.state.identity
    await GroupOffsets(host).write(Commit(offsets, identity, script.now_ms, 30_000, repeats=True))
    again = host.requests[1].build(9)
    assert [part.partition_index for topic in again.topics for part in topic.partitions] == [1]


async def test_a_caller_whose_time_is_over_says_nothing_of_the_coordinator() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})

    def late() -> Any:
        script.wait(1_000)
        raise RequestTimedOutError("the caller's time is over")

    identity = script.machine.state.identity
    with pytest.raises(RequestTimedOutError):
        await GroupOffsets(Played(script, late)).write(
            Commit({("t", 0): 1}, identity, script.now_ms, 1_000, repeats=True)
        )
    assert script.machine.state.link.coordinator is not None


async def test_commits_before_a_revocation_leave_some_of_its_time(caplog: pytest.LogCaptureFixture) -> None:
    """The rest of it has to end in time, too."""
    script = ConsumerProtocolScript().settled({"t": [0]})
    offsets = MemberOffsets(Played(script), "m", lambda _name, run: run())
    offsets.queue.open()
    offsets.commit_nowait({("t", 0): 1}, None, None)
    await offsets.finish(script.now_ms + 1_000)
    assert caplog.messages == ["m: commits have not ended within 0.9 s"]
    offsets.queue.close()

"""Members that share the partitions of topics, alone and beside other clients in one group."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.requests import RawAnswer
from ringleader.clients.group.leading.leader import Leading
from ringleader.clients.group.leading.matching import Choice
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.settings import SubscriptionSettings
from ringleader.clients.group.subscription import consumer_member, partitions_of, sync_consumer_member
from ringleader.clients.model import Assigned, MemberInfo
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.frames import encode_response
from ringleader.protocol.messages import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ringleader.testing.coordinator import Coordinator
from tests.support.members import AiokafkaMember, Board, KafkaPythonMember, Stage

PATIENCE_S = 30.0
QUICK: dict[str, Any] = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 100}


class BoardMember:
    """Our member, as the board and the stage want it."""

    def __init__(
        self, board: Board, bootstrap: str, group: str, topic: str, name: str, **options: Any
    ) -> None:
        self.name = name
        self._board = board

        def shows(assigned: Assigned) -> None:
            board.owns(name, [partition for _, partition in partitions_of(assigned)])

        self.member = consumer_member(
            bootstrap, group, [topic], client_id=name, on_assigned=shows, **(QUICK | options)
        )

    async def join(self) -> None:
        await self.member.start()

    async def leave(self) -> None:
        await self.member.stop()
        self._board.owns(self.name, None)


async def test_consumers_share_the_partitions(coordinator: Coordinator) -> None:
    board = Board()
    async with Stage() as stage:
        first = BoardMember(board, coordinator.bootstrap, "g", "t", "a")
        await stage.enter(first)
        await board.until_owned({"a": (0, 1, 2, 3)})
        second = BoardMember(board, coordinator.bootstrap, "g", "t", "b")
        await stage.enter(second)
        await board.until_owned({"a": (0, 1), "b": (2, 3)})
        await stage.exit(first)
        await board.until_owned({"b": (0, 1, 2, 3)})


async def test_beside_aiokafka_and_kafka_python_in_one_group(coordinator: Coordinator) -> None:
    """All offer round-robin. With any leader, the shares are the same."""
    board, at = Board(), coordinator.bootstrap
    aiokafka_options = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 100}
    async with Stage() as stage:
        ours = BoardMember(board, at, "mixed", "t", "ours")
        await stage.enter(ours)
        await board.until_owned({"ours": (0, 1, 2, 3)})
        await stage.enter(AiokafkaMember(board, at, "mixed", "t", "aio", **aiokafka_options))
        await board.until_owned({"aio": (0, 2), "ours": (1, 3)})
        await stage.enter(KafkaPythonMember(board, at, "mixed", "t", "kpy", **aiokafka_options))
        await board.until_owned({"aio": (0, 3), "kpy": (1,), "ours": (2,)})
        async with Admin(at) as admin:
            (group,) = await admin.describe_groups(["mixed"])
        assert (group.protocol, len(group.members)) == ("roundrobin", 3)
        assert {member.client_id: member.assignment for member in group.members}["aio"] == {"t": [0, 3]}
        # Now one of the others has to lead.
        await stage.exit(ours)
        await board.until_owned({"aio": (0, 2), "kpy": (1, 3)})
        again = BoardMember(board, at, "mixed", "t", "ours")
        await stage.enter(again)
        await board.until_owned({"aio": (0, 3), "kpy": (1,), "ours": (2,)})


async def test_the_leader_watches_its_topics(coordinator: Coordinator) -> None:
    """Growth of a topic, and a topic that comes later than its subscribers."""
    board = Board()
    member = BoardMember(board, coordinator.bootstrap, "g", "later", "a", metadata_max_age_ms=50)
    async with Stage() as stage, Admin(coordinator.bootstrap) as admin:
        await stage.enter(member)
        await board.until_owned({"a": ()})
        await admin.create_topic("later", 2)
        await board.until_owned({"a": (0, 1)})
        await admin.create_partitions("later", 3)
        await board.until_owned({"a": (0, 1, 2)})


def test_a_synchronous_consumer(coordinator: Coordinator) -> None:
    with sync_consumer_member(coordinator.bootstrap, "g", "t", **QUICK) as member:
        share = member.wait_assigned(PATIENCE_S)
        assert partitions_of(share) == [("t", p) for p in range(4)]
        member.commit({("t", 3): 1})


async def test_different_topics_in_one_group(coordinator: Coordinator) -> None:
    coordinator.create_topic("u", 2)
    one = consumer_member(coordinator.bootstrap, "g", ["t"], assignors=["range"], **QUICK)
    two = consumer_member(coordinator.bootstrap, "g", ["u", "t"], assignors=["range"], **QUICK)
    async with one, two:

        def shares(member: GroupMember) -> list[Any]:
            return partitions_of(member.assigned) if member.assigned else []

        async with asyncio.timeout(PATIENCE_S):
            while len(shares(one)) + len(shares(two)) != 6 or not shares(one):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert {topic for topic, _ in shares(one)} == {"t"}
        assert [place for place in shares(two) if place[0] == "u"] == [("u", 0), ("u", 1)]


class StubCluster:
    """Partition counts without a cluster."""

    request_timeout_ms = 1_000

    def __init__(self, **counts: int) -> None:
        topics = [
            MetadataResponseTopic(
                name=name, partitions=[MetadataResponsePartition(partition_index=n) for n in range(count)]
            )
            for name, count in counts.items()
        ]
        self._frame = encode_response(MetadataResponse(topics=topics), 12, 1)[4:]

    async def send(self, node: object, request: object, *, deadline_s: float) -> RawAnswer:
        return RawAnswer(self._frame, 12)


def leading() -> Leading:
    return Leading(Choice(["t"], None), SubscriptionSettings())


async def test_a_member_that_talks_nonsense_does_not_stop_the_group() -> None:
    members = [
        MemberInfo("good", None, Subscription(["t"]).encode()),
        MemberInfo("bad", None, b"\0\1\7"),
        MemberInfo("old", None, Subscription(["t"]).encode(version=0)),
    ]
    shares = await leading().lead(StubCluster(t=4), "range", members)  # type: ignore[arg-type]
    decoded = {name: Assignment.decode(share).partitions for name, share in shares.items()}
    assert decoded == {"good": {"t": [0, 1]}, "bad": {}, "old": {"t": [2, 3]}}


async def test_large_groups_are_assigned_in_a_thread() -> None:
    members = [MemberInfo(f"m{n}", None, Subscription(["t"]).encode()) for n in range(100)]
    shares = await leading().lead(StubCluster(t=30_000), "roundrobin", members)  # type: ignore[arg-type]
    assert {len(Assignment.decode(share).partitions["t"]) for share in shares.values()} == {300}


def test_options_that_cannot_work() -> None:
    with pytest.raises(ValueError, match="no topics"):
        consumer_member("h:1", "g", [])
    with pytest.raises(ValueError, match=r"stickiest.*'range', 'roundrobin', 'sticky'"):
        consumer_member("h:1", "g", ["t"], assignors=["stickiest"])
    with pytest.raises(ValueError, match="weight"):
        consumer_member("h:1", "g", ["t"], weight=0)
    with pytest.raises(ValueError, match="assignors has to be a list of texts, not 'range'"):
        consumer_member("h:1", "g", ["t"], assignors="range")


def test_an_empty_share() -> None:
    assert partitions_of(Assigned(1, "m", "m", "range", b"")) == []
    assert partitions_of(Assigned(1, "m", "m", "range", Assignment({}).encode())) == []


def test_looks_for_a_topic_begin_with_short_waits_when_all_of_them_were_there() -> None:
    one = leading()
    for known in (False,) * 8 + (True, False):
        one._choice.known = known
        pause_s = one._pause_s()
    assert pause_s < 0.3

"""Our assignors inside of aiokafka and kafka-python: as classes of theirs, and in real groups."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from ringleader.clients import aiokafka as for_aiokafka
from ringleader.clients import kafka_python as for_kafka_python
from ringleader.clients.assignors import AssignorMember
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.testing.coordinator import Coordinator
from tests.support.members import AiokafkaMember, Board, KafkaPythonMember, Stage
from tests.support.plugged import KafkaPythonInfo, Topics

# ---- the plugs as such ----


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="aiokafka gives up all partitions"):
        for_aiokafka.cooperative_sticky()
    for make in (for_kafka_python.Weighted, for_aiokafka.weighted):
        with pytest.raises(ValueError, match="weight"):
            make(0)


def test_consumers_of_one_process_keep_apart() -> None:
    one, two = for_aiokafka.sticky(), for_aiokafka.sticky()
    assert one is not two
    assert issubclass(one, AiokafkaRange.__mro__[1])
    first = one.assign(Topics(t=4), {"a": one.metadata(["t"]), "b": two.metadata(["t"])})
    one.on_assignment(first["a"])
    two.on_assignment(first["b"])
    again = two.assign(Topics(t=4), {"b": one.metadata(["t"]), "a": two.metadata(["t"])})
    assert again["b"].assignment == first["a"].assignment
    assert again["a"].assignment == first["b"].assignment


@pytest.mark.parametrize("name", ["range_", "roundrobin", "original", "random", "sticky"])
def test_the_names_are_those_of_the_groups_vote(name: str) -> None:
    plug = getattr(for_aiokafka, name)()
    assert plug.name == name.rstrip("_")
    assigned = plug.assign(Topics(t=3), {"a": plug.metadata(["t", "gone"]), "b": plug.metadata(["t"])})
    given = sorted(p for one in assigned.values() for _, ps in one.assignment for p in ps)
    assert given == [0, 1, 2]


def test_what_a_member_of_kafka_python_says_is_read_as_ours() -> None:
    plug = for_kafka_python.Weighted(8)
    plug.on_assignment(
        ConsumerProtocolAssignment.decode(ConsumerProtocolAssignment(0, [("t", [2])], b"").encode()), 3
    )
    raw = ConsumerProtocolSubscription.decode(plug.metadata(["t"]).encode())
    found = for_kafka_python._member(KafkaPythonInfo(member_id="a", group_instance_id="i", metadata=raw))
    assert found == AssignorMember("a", "i", ["t"], {"t": [2]}, 3, None, plug._user_data())


# ---- in real groups, beside our own members ----


class OurMember:
    """One of our members, for the stage."""

    def __init__(self, board: Board, coordinator: Coordinator, name: str, assignor: str) -> None:
        self._board, self._name = board, name
        self.member: GroupMember = consumer_member(
            coordinator.bootstrap,
            "g",
            ["t"],
            assignors=[assignor],
            client_id=name,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=100,
            on_assigned=lambda share: board.owns(name, [p for _, p in partitions_of(share)]),
        )

    async def join(self) -> None:
        await self.member.start()

    async def leave(self) -> None:
        await self.member.stop()
        self._board.owns(self._name, None)


async def until_whole(board: Board, names: set[str]) -> None:
    """These own all of the four partitions, each once, none has more than two."""

    def holds(now: Board) -> bool:
        owned = {name: ps for name, ps in now.owned.items() if ps is not None}
        together = sorted(p for ps in owned.values() for p in ps)
        return owned.keys() == names and together == [0, 1, 2, 3] and max(map(len, owned.values())) <= 2

    await board.until(holds)


@pytest.mark.second_try("aiokafka and kafka-python: timeouts that run by the clock")
async def test_one_sticky_group_of_three_libraries(coordinator: Coordinator) -> None:
    board = Board()
    where = (board, coordinator.bootstrap, "g", "t")
    quick: dict[str, Any] = {"heartbeat_interval_ms": 100, "session_timeout_ms": 6_000}
    async with Stage() as stage:
        aio = AiokafkaMember(*where, "aio", partition_assignment_strategy=(for_aiokafka.sticky(),), **quick)
        await stage.enter(aio)
        await board.until_owned({"aio": (0, 1, 2, 3)})
        strategy = [for_kafka_python.Sticky]
        await stage.enter(KafkaPythonMember(*where, "kp", partition_assignment_strategy=strategy, **quick))
        await until_whole(board, {"aio", "kp"})
        ours = OurMember(board, coordinator, "ours", "sticky")
        await stage.enter(ours)
        await until_whole(board, {"aio", "kp", "ours"})
        await stage.exit(ours)
        await until_whole(board, {"aio", "kp"})


@pytest.mark.second_try("aiokafka and kafka-python: timeouts that run by the clock")
async def test_a_cooperative_group_of_kafka_python_and_ours(coordinator: Coordinator) -> None:
    board = Board()
    strategy = [for_kafka_python.CooperativeSticky]
    async with Stage() as stage:
        ours = OurMember(board, coordinator, "ours", "cooperative-sticky")
        await stage.enter(ours)
        await board.until_owned({"ours": (0, 1, 2, 3)})
        theirs = KafkaPythonMember(
            board, coordinator.bootstrap, "g", "t", "kp",
            partition_assignment_strategy=strategy, heartbeat_interval_ms=100, session_timeout_ms=6_000,
        )  # fmt: skip
        await stage.enter(theirs)
        halves = {"ours": 2, "kp": 2}
        await board.until(lambda now: {name: len(ps or ()) for name, ps in now.owned.items()} == halves)
        await stage.exit(theirs)
        await board.until_owned({"ours": (0, 1, 2, 3)})

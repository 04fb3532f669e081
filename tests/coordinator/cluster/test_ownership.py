"""The runtime follows the map, also when the store refuses, another node fences, or the map changes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from ringleader.coordinator.cluster import ownership as module
from ringleader.coordinator.cluster.map import ClusterMap, NodeInfo
from ringleader.coordinator.cluster.ownership import Ownership
from ringleader.coordinator.config import Settings
from ringleader.coordinator.runtime import GroupRuntime, moving
from ringleader.coordinator.runtime.shards import Waiting
from ringleader.coordinator.storage.base import Failure
from ringleader.protocol.errors import ErrorCode
from tests.support.cluster_nodes import Lines
from tests.support.fenced_store import FencedLog, FencedStorage
from tests.support.served import WAIT_S, until

PARTITIONS = 12


class OneNode:
    """A runtime, what makes it follow the map, and how often it has caught up."""

    def __init__(self, node_id: int, lines: Lines, log: FencedLog | None) -> None:
        self.node_id = node_id
        self.store = FencedStorage(log)
        self.settled = 0
        self.silence_s = 0.0
        """How long ago the nodes' group said that the map is the newest."""
        self.heard_s: float | None = None
        """Or when that was."""
        self._changed = asyncio.Event()
        self.ownership: Ownership
        self.runtime = GroupRuntime(
            Settings(),
            self.store,
            partitions=PARTITIONS,
            log=lines.log,
            on_lost=lambda partition, error: self.ownership.lost(partition, error),
        )
        self.ownership = Ownership(
            node_id, self.runtime, lines.log, self._on_settled, self._map_silence_s, 2.0
        )

    def _map_silence_s(self) -> float:
        return self.silence_s if self.heard_s is None else asyncio.get_running_loop().time() - self.heard_s

    def _on_settled(self) -> None:
        self.settled += 1
        self._changed.set()

    def waits_to_take(self) -> bool:
        """Whether a partition is to be taken over, but not yet."""
        return any(one.doing is module._Doing.WAITING for one in self.ownership._partitions.values())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the runtime has caught up and this holds."""
        async with asyncio.timeout(WAIT_S):
            while not (self.ownership.settled and condition()):
                self._changed.clear()
                await self._changed.wait()

    def follow(self, *partitions: int) -> None:
        """A map that gives it these."""
        owners = tuple(self.node_id if one in partitions else 99 for one in range(PARTITIONS))
        nodes = (NodeInfo(self.node_id, "127.0.0.1", 9092, "0"), NodeInfo(99, "127.0.0.1", 9093, "0"))
        self.ownership.follow(ClusterMap(1, 99, nodes, owners))

    async def has(self, *partitions: int) -> None:
        """Wait until it serves exactly these."""
        await self.until(lambda: self.runtime.serving == set(partitions))


@contextlib.asynccontextmanager
async def node(lines: Lines, log: FencedLog | None = None, node_id: int = 1) -> AsyncIterator[OneNode]:
    one = OneNode(node_id, lines, log)
    await one.runtime.start_empty()
    try:
        yield one
    finally:
        await one.ownership.stop()
        await one.runtime.stop()


async def test_it_takes_over_and_gives_up_as_the_map_says(lines: Lines) -> None:
    async with node(lines) as one:
        one.follow(1, 2, 3)
        await one.has(1, 2, 3)
        one.follow(2, 4)
        await one.has(2, 4)
        assert sorted(one.store.opened) == [1, 2, 3, 4], "what stays is not opened again"
        assert sorted(one.store.released) == [1, 3]
        moved = lines.of("partitions moved")
        assert [(line["taken"], line["given"]) for line in moved] == [("1, 2, 3", "none"), ("4", "1, 3")]
        assert one.settled == 2
        one.follow(2, 4, 5)
        await one.has(2, 4, 5)
        last = lines.of("partitions moved")[-1]
        assert (last["taken"], last["given"]) == ("5", "none"), "each move is told once"


async def test_a_map_that_changes_nothing_is_settled_at_once(lines: Lines) -> None:
    async with node(lines) as one:
        one.follow()
        await one.has()
        one.follow(1)
        await one.has(1)
        one.follow(1)
        assert one.ownership.settled


async def test_what_is_being_loaded_for_a_map_that_is_over_is_let_go(lines: Lines) -> None:
    async with node(lines) as one:
        one.store.replays.clear()
        one.follow(1)
        await until(lambda: one.store.opened == [1])
        one.follow(2)
        one.store.replays.set()
        await one.has(2)
        one.follow(1)
        await one.has(1)


async def test_a_store_that_refuses_is_asked_again(lines: Lines, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    async with node(lines) as one:
        one.store.fail_open = [Failure.AWAY, Failure.AWAY]
        one.follow(5)
        await one.has(5)
        assert [line["partition"] for line in lines.of("partition not taken over")] == [5, 5]


async def test_waits_for_a_store_begin_anew_with_another_map(lines: Lines, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "RETRY_S", 2)
    async with node(lines) as one:
        for _ in range(2):
            one.store.fail_open = [Failure.AWAY]
            one.follow(5)
            await until(lambda: not one.store.fail_open and one.waits_to_take())
        assert [line["again_in_s"] for line in lines.of("partition not taken over")] == [4, 4]


async def test_waits_for_a_store_begin_anew_once_it_gave_the_partition(
    lines: Lines, monkeypatch: Any
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    async with node(lines) as one:
        one.store.fail_open = [Failure.AWAY] * 3
        one.follow(5)
        await one.has(5)
        one.store.fail_open = [Failure.AWAY]
        one.store.fail_append[5] = Failure.AWAY
        one.ownership.prove()
        await until(lambda: len(lines.of("partition not taken over")) == 4)
        await one.has(5)
        waits_s = [line["again_in_s"] for line in lines.of("partition not taken over")]
        assert waits_s == [0.002, 0.004, 0.008, 0.004], "the loss is the first trouble, and this the second"


async def test_a_fenced_node_waits_for_another_map_before_it_takes_back(
    lines: Lines, monkeypatch: Any
) -> None:
    log = FencedLog()
    async with node(lines, log) as one, node(lines, log, 2) as two:
        one.follow(1, 2)
        await one.has(1, 2)
        two.follow(1)
        await two.has(1)
        monkeypatch.setattr(module, "FENCED_WAIT_S", 1_000)
        one.ownership.prove()
        await until(lambda: bool(lines.of("shard lost")))
        assert one.runtime.serving == {2}
        assert not one.ownership.settled
        one.follow(2)
        await one.has(2)
        one.follow(1, 2)
        await one.has(1, 2)
        assert log.epochs[1] == 3


async def test_a_fenced_node_leaves_time_for_another_map_though_its_own_is_confirmed(
    lines: Lines, monkeypatch: Any
) -> None:
    monkeypatch.setattr(module, "FENCED_WAIT_S", 1_000)
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    async with node(lines) as one:
        one.follow(1)
        await one.has(1)
        one.heard_s = asyncio.get_running_loop().time() + 1_000
        one.store.fail_append[1] = Failure.FENCED
        one.ownership.prove()
        await until(one.waits_to_take)
        assert one.store.opened == [1]
        one.follow(1)
        await one.has(1)


async def test_without_another_map_it_takes_back_what_it_lost(lines: Lines, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "FENCED_WAIT_S", 0.001)
    async with node(lines) as one:
        one.follow(1)
        await one.has(1)
        one.store.fail_append[1] = Failure.FENCED
        one.ownership.prove()
        await one.until(lambda: one.store.opened == [1, 1])
        await one.has(1)


async def test_nothing_is_taken_by_a_map_that_may_not_be_the_newest(lines: Lines) -> None:
    async with node(lines) as one:
        one.silence_s = 2.0
        one.follow(1)
        await until(lambda: one.waits_to_take())
        assert not one.store.opened
        one.silence_s = 0.0
        await one.has(1)


async def test_what_waited_for_its_turn_is_not_taken_by_a_map_that_is_doubtful_by_then(lines: Lines) -> None:
    first, last = range(module.AT_A_TIME), range(module.AT_A_TIME, PARTITIONS)
    async with node(lines) as one:
        one.store.replays.clear()
        one.follow(*first, *last)
        await until(lambda: sorted(one.store.opened) == [*first])
        one.silence_s = 2.0
        one.store.replays.set()
        await until(lambda: one.runtime.serving == {*first})
        await until(lambda: one.waits_to_take())
        assert sorted(one.store.opened) == [*first]
        one.silence_s = 0.0
        await one.has(*first, *last)


async def test_a_fenced_node_takes_nothing_back_unless_the_map_was_confirmed_since(
    lines: Lines, monkeypatch: Any
) -> None:
    """The nodes' group has ended its session, and it does not hear of that."""
    monkeypatch.setattr(module, "FENCED_WAIT_S", 0.002)
    async with node(lines) as one:
        one.follow(1)
        await one.has(1)
        one.heard_s = asyncio.get_running_loop().time()
        one.store.fail_append[1] = Failure.FENCED
        one.ownership.prove()
        await until(lambda: bool(lines.of("shard lost")))
        for _ in range(3):
            await until(lambda: one.waits_to_take())
            await until(lambda: not one.waits_to_take())
        assert one.store.opened == [1]
        one.heard_s = None
        await one.has(1)


async def test_what_the_store_does_not_give_is_late_and_what_is_being_read_is_not(lines: Lines) -> None:
    async with node(lines) as one:
        now_s = asyncio.get_running_loop().time
        one.store.replays.clear()
        one.follow(1)
        await until(lambda: one.runtime.opened(1))
        assert one.ownership.late(now_s() + 100, 5.0) == set()
        one.store.fail_open = [Failure.AWAY] * 100
        one.follow(1, 2)
        await until(lambda: bool(lines.of("partition not taken over")))
        assert one.ownership.late(now_s() + 4, 5.0) == set()
        assert one.ownership.late(now_s() + 100, 5.0) == {2}
        one.follow(1)
        assert one.ownership.late(now_s() + 100, 5.0) == set()
        one.store.fail_open.clear()
        one.store.replays.set()
        await one.has(1)


async def test_a_request_behind_an_append_that_does_not_end_is_sent_to_the_next_owner(
    lines: Lines, monkeypatch: Any
) -> None:
    monkeypatch.setattr(moving, "RELEASE_S", 0.01)
    async with node(lines) as one:
        one.follow(1)
        await one.has(1)
        one.store.hold(1)
        waiting = Waiting()
        one.runtime.list_groups(1, (), (), waiting)
        await until(lambda: one.store.appends == {1: 1})
        one.follow()
        async with asyncio.timeout(WAIT_S):
            assert await waiting.answered == ErrorCode.NOT_COORDINATOR
        one.store.resume(1)
        await one.has()


async def test_a_proof_that_succeeds_changes_nothing(lines: Lines) -> None:
    async with node(lines) as one:
        one.follow(1, 2)
        await one.has(1, 2)
        one.ownership.prove()
        await until(lambda: one.store.appends == {1: 1, 2: 1})
        assert one.runtime.serving == {1, 2}
        assert not lines.of("shard lost")


async def test_a_node_that_is_cut_off_serves_nothing_until_there_is_a_map_again(lines: Lines) -> None:
    async with node(lines) as one:
        one.follow(1, 2)
        await one.has(1, 2)
        one.ownership.give_up("cut off")
        await one.has()
        [line] = lines.of("partitions given up")
        assert (line["reason"], line["partitions"]) == ("cut off", 2)
        one.follow(1, 2)
        await one.has(1, 2)


async def test_requests_that_wait_for_an_append_hold_up_no_other_partition(lines: Lines) -> None:
    async with node(lines) as one:
        one.follow(1, 2)
        await one.has(1, 2)
        one.store.hold(1)
        one.ownership.prove()
        await until(lambda: one.store.appends == {1: 1, 2: 1})
        one.follow(3)
        await until(lambda: one.runtime.serving == {3})
        assert not one.ownership.settled
        one.store.resume(1)
        await one.has(3)


async def test_many_moves_are_one_line(lines: Lines) -> None:
    async with node(lines) as one:
        one.follow(*range(PARTITIONS))
        await one.has(*range(PARTITIONS))
        [line] = lines.of("partitions moved")
        assert line["taken"] == f"{PARTITIONS} partitions"
        expected: Mapping[str, Any] = {"given": "none", "records": 0, "serving": PARTITIONS}
        assert {name: line[name] for name in expected} == expected


async def test_what_is_being_loaded_and_is_not_wanted_any_more_is_not_waited_for(lines: Lines) -> None:
    async with node(lines) as one:
        one.store.replays.clear()
        one.follow(1)
        await until(lambda: one.store.opened == [1])
        one.follow()
        await one.has()
        one.store.replays.set()


async def test_a_new_map_is_followed_at_once_by_what_waits_for_its_next_try(
    lines: Lines, monkeypatch: Any
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 1_000)
    monkeypatch.setattr(module, "RETRY_MAX_S", 1_000)
    async with node(lines) as one:
        one.store.fail_open = [Failure.AWAY]
        one.follow(5)
        await until(lambda: bool(lines.of("partition not taken over")))
        one.follow(5)
        await one.has(5)


async def test_a_partition_is_vouched_for_while_its_map_is_known_to_be_the_newest(lines: Lines) -> None:
    async with node(lines) as one:
        one.follow(1)
        await one.has(1)
        assert [one.runtime.vouch(partition) for partition in (1, 2)] == [True, False]
        one.silence_s = 2.0
        assert not one.runtime.vouch(1)

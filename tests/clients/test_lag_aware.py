"""Groups whose leader shares out the lag."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.overview import overview
from ringleader.clients.group.leading.lags import Lags, lags_of
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.clients.model import Lost
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import Record, build_batch
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary

QUICK: dict[str, Any] = {
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 50,
    "assignors": ["lag-aware"],
    "auto_offset_reset": "earliest",
}


def consumer(where: Coordinator, name: str, diary: Diary | None = None, **options: Any) -> GroupMember:
    diary = diary or Diary()
    callbacks = dict.fromkeys(("on_assigned", "on_revoked", "on_lost", "on_failed"), diary.note)
    return consumer_member(where.bootstrap, "g", ["t"], client_id=name, **(QUICK | callbacks | options))


def produce(where: Coordinator, *counts: int) -> None:
    """Produce `counts` records into partitions 0, 1, ... of `t`."""

    async def append() -> None:
        for partition, count in enumerate(counts):
            if count:
                records = [Record(offset, 1, None, b"x") for offset in range(count)]
                await where.node.topics.append("t", partition, build_batch(records))

    where.run(append())


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def whole(*members: GroupMember) -> set[tuple[int, ...]]:
    """The shares, if everybody has one of one generation and together they are everything."""
    held = [one.assigned for one in members]
    if None in held or len({one.generation for one in held if one}) != 1:
        return set()
    shares = [tuple(partition for _, partition in partitions_of(one)) for one in held if one]
    return set(shares) if sorted(p for share in shares for p in share) == [0, 1, 2, 3] else set()


async def until_shared(*members: GroupMember) -> set[tuple[int, ...]]:
    """The shares, when they are whole."""
    await until(lambda: whole(*members) != set())
    return whole(*members)


async def until_looked(coordinator: Coordinator) -> None:
    """The leader has looked at lags some more times."""
    looks = len(coordinator.faults.seen("ListOffsets"))
    await until(lambda: len(coordinator.faults.seen("ListOffsets")) >= looks + 10)


def reasons(coordinator: Coordinator) -> list[str]:
    return list(dict.fromkeys(one.request.reason for one in coordinator.faults.seen("JoinGroup")))


# ---- in a group ----


async def test_the_member_with_the_long_partition_has_no_other(coordinator: Coordinator) -> None:
    produce(coordinator, 100, 10, 10, 10)
    async with consumer(coordinator, "a") as one, consumer(coordinator, "b") as two:
        assert await until_shared(one, two) == {(0,), (1, 2, 3)}


async def test_what_is_committed_is_not_behind(coordinator: Coordinator) -> None:
    produce(coordinator, 100, 10, 90, 10)
    async with Admin(coordinator.bootstrap) as admin:
        await admin.set_group_offsets("g", {("t", 0): 95, ("t", 3): 0})
    async with consumer(coordinator, "a") as one, consumer(coordinator, "b") as two:
        assert await until_shared(one, two) == {(2,), (0, 1, 3)}


async def test_without_commits_a_group_that_begins_at_the_end_is_not_behind(coordinator: Coordinator) -> None:
    produce(coordinator, 100, 1, 1, 1)
    options: dict[str, Any] = {"auto_offset_reset": "latest"}
    async with consumer(coordinator, "a", **options) as one, consumer(coordinator, "b", **options) as two:
        assert {len(share) for share in await until_shared(one, two)} == {2}


@pytest.mark.parametrize(
    ("policy", "shares"), [("by_duration:P1D", {2}), ("by_duration:P40000D", {1, 3})], ids=["late", "all"]
)
async def test_without_commits_records_of_a_duration_are_behind(
    coordinator: Coordinator, policy: str, shares: set[int]
) -> None:
    """These are of the first seconds of 1970."""
    produce(coordinator, 100, 1, 1, 1)
    options: dict[str, Any] = {"auto_offset_reset": policy}
    async with consumer(coordinator, "a", **options) as one, consumer(coordinator, "b", **options) as two:
        assert {len(share) for share in await until_shared(one, two)} == shares


@pytest.mark.parametrize("lost", ["ListOffsets", "OffsetFetch"])
async def test_lag_that_is_not_known_counts_as_none(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture, lost: str
) -> None:
    """The group waits for the leader: it takes what it has when the time is over."""
    produce(coordinator, 100, 1, 1, 1)
    coordinator.faults.drop(lost, times=-1)
    options: dict[str, Any] = {"rebalance_timeout_ms": 1_000}
    async with consumer(coordinator, "a", **options) as one, consumer(coordinator, "b", **options) as two:
        assert {len(share) for share in await until_shared(one, two)} == {2}
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert any("the lag of 4 partitions is not known and counts as 0: " in line for line in warnings)


async def test_a_coordinator_that_is_loading_is_asked_again(coordinator: Coordinator) -> None:
    produce(coordinator, 100, 10, 10, 10)
    rule = coordinator.faults.error("OffsetFetch", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
    coordinator.faults.drop("ListOffsets", times=2)
    async with consumer(coordinator, "a") as one, consumer(coordinator, "b") as two:
        assert await until_shared(one, two) == {(0,), (1, 2, 3)}
    assert rule.hits == 2


@pytest.mark.parametrize("assignors", [["lag-aware"], ["lag-aware", "range"]], ids=["alone", "first"])
async def test_the_leader_looks_at_lags(coordinator: Coordinator, assignors: list[str]) -> None:
    options: dict[str, Any] = {"lag_check_ms": 50, "assignors": assignors}
    first, second = Diary(), Diary()
    async with (
        consumer(coordinator, "a", first, **options) as one,
        consumer(coordinator, "b", second, **options) as two,
    ):
        halves = await until_shared(one, two)
        assert {len(share) for share in halves} == {2}
        heavy, light = next(iter(halves))
        await asyncio.to_thread(produce, coordinator, *[1_000 * (n == heavy) for n in range(4)])
        await until_looked(coordinator)
        assert whole(one, two) == halves  # it is behind in one partition alone: no move helps
        await asyncio.to_thread(produce, coordinator, *[500 * (n == light) for n in range(4)])
        await until(lambda: any("records behind, the mean is 750" in why for why in reasons(coordinator)))
        (why,) = [why for why in reasons(coordinator) if "records behind" in why]
        assert " is 1500 records behind, the mean is 750: moving t-" in why
        await until(lambda: {heavy in share and light in share for share in whole(one, two)} == {False})
        # Now it looks on, and leaves the group alone.
        generation = one.generation
        await until_looked(coordinator)
        assert (one.generation, two.generation) == (generation, generation)
    assert first.of(Lost) == second.of(Lost) == []


async def test_looks_go_on_after_the_coordinator_was_away(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Diary(), Diary()
    options: dict[str, Any] = {"lag_check_ms": 20, "metadata_max_age_ms": 20}
    async with (
        consumer(coordinator, "a", first, **options) as one,
        consumer(coordinator, "b", second, **options) as two,
    ):
        halves = await until_shared(one, two)
        for _ in range(3):
            await asyncio.to_thread(coordinator.restart)
        heavy, light = next(iter(halves))
        lags = [0, 0, 0, 0]
        lags[heavy], lags[light] = 1_000, 500
        await asyncio.to_thread(produce, coordinator, *lags)
        await until(lambda: {heavy in share and light in share for share in whole(one, two)} == {False})
    assert first.of(Lost) == second.of(Lost) == []
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_shares_are_kept_while_lags_are_even_enough(coordinator: Coordinator) -> None:
    produce(coordinator, 100, 100, 104, 96)
    async with consumer(coordinator, "a") as one, consumer(coordinator, "b") as two:
        before = await until_shared(one, two)
        await asyncio.to_thread(produce, coordinator, 5, 0, 5, 0)
        await one.rejoin("to see that nothing moves")
        generation = two.generation
        await until(lambda: two.generation > generation)
        assert await until_shared(one, two) == before


# ---- the question by itself ----


async def ask(where: Coordinator, reset: Any = "earliest", timeout_ms: int = 5_000) -> Lags:
    async with Cluster(where.bootstrap) as cluster:
        seen = await overview(cluster, ["t", "missing"], with_replicas=True, timeout_ms=5_000)
        return await lags_of(cluster, "g", seen, ["t", "missing"], reset, timeout_ms)


async def test_lags(coordinator: Coordinator) -> None:
    produce(coordinator, 7, 5, 3, 0)
    async with Admin(coordinator.bootstrap) as admin:
        await admin.set_group_offsets("g", {("t", 0): 2, ("t", 2): 9})
    assert await ask(coordinator) == Lags({"t": [5, 5, 0, 0]}, 0, "")
    for reset in ("latest", "none"):
        assert await ask(coordinator, reset) == Lags({"t": [5, 0, 0, 0]}, 0, "")


async def test_few_requests_for_many_partitions(coordinator: Coordinator) -> None:
    coordinator.create_topic("many", 500)
    async with Cluster(coordinator.bootstrap) as cluster:
        seen = await overview(cluster, ["many"], with_replicas=True, timeout_ms=5_000)
        coordinator.faults.forget_seen()
        found = await lags_of(cluster, "g", seen, ["many"], "earliest", 20_000)
    assert found == Lags({"many": [0] * 500}, 0, "")
    apis = [one.api for one in coordinator.faults.seen()]
    assert sorted(apis) == ["FindCoordinator", "ListOffsets", "ListOffsets", "OffsetFetch"]


async def test_a_topic_that_goes_meanwhile_holds_up_nothing(coordinator: Coordinator) -> None:
    produce(coordinator, 7, 5, 3, 0)
    coordinator.create_topic("gone", 1)
    async with Cluster(coordinator.bootstrap) as cluster:
        seen = await overview(cluster, ["t", "gone"], with_replicas=True, timeout_ms=5_000)
        async with Admin(coordinator.bootstrap) as admin:
            await admin.delete_topics(["gone"])
        found = await lags_of(cluster, "g", seen, ["t", "gone"], "earliest", 600_000)
    assert found == Lags({"t": [7, 5, 3, 0], "gone": [0]}, 1, "gone-0: UNKNOWN_TOPIC_OR_PARTITION")


async def test_rights_that_are_missing_are_named(coordinator: Coordinator) -> None:
    produce(coordinator, 7)
    coordinator.faults.error("OffsetFetch", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    found = await ask(coordinator, timeout_ms=600_000)
    assert found == Lags({"t": [0] * 4}, 4, "offsets of group 'g': GROUP_AUTHORIZATION_FAILED")

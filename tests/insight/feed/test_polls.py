"""The watcher asks for what records do not say: groups that move, topics, coordinators, lag."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import ConnectionLostError
from ringleader.insight.feed import watcher as watcher_module
from ringleader.insight.feed.polls import Polls, offsets_partition
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.history import History
from ringleader.insight.inference.facts import CoordinatorSeen, Described, Fact, TopicsSeen
from ringleader.insight.model import Commit, EventKind, Lag
from ringleader.testing.coordinator import Coordinator
from tests.insight.feed.watching import PARTITIONS, PATIENCE_S, TOPIC, Pods


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={TOPIC: PARTITIONS}) as started:
        yield started


@asynccontextmanager
async def asking(coordinator: Coordinator) -> AsyncIterator[tuple[Polls, list[Fact]]]:
    facts: list[Fact] = []
    async with Cluster(coordinator.bootstrap) as cluster:
        polls = Polls(cluster, facts.append, lambda: 7)
        await polls.topics()
        yield polls, facts


async def test_a_group_that_moves_is_described_until_it_rests(coordinator: Coordinator) -> None:
    pods = Pods(coordinator.bootstrap, "billing")
    await asyncio.to_thread(pods.up)
    async with asking(coordinator) as (polls, facts):
        facts.clear()
        await polls.moving(())
        assert facts == []
        await asyncio.to_thread(pods.come)
        async with asyncio.timeout(PATIENCE_S):
            while not facts:
                await polls.moving(())
        [seen] = facts
        assert isinstance(seen, Described)
        assert (seen.at_ms, seen.group, seen.state) == (7, "billing", "PreparingRebalance")
        assert {one.client_id for one in seen.members} == {"pod-0", "pod-1"}
        assert {one.host for one in seen.members} == {"/127.0.0.1"}
        await asyncio.to_thread(pods.settle)
        # Once more, so that it is known that it rests; then no more.
        facts.clear()
        await polls.moving(())
        assert [one.state for one in facts if isinstance(one, Described)] == ["Stable"]
        facts.clear()
        await polls.moving(())
        assert facts == []
        await polls.moving(["billing"])
        assert [one.group for one in facts if isinstance(one, Described)] == ["billing"]
    await asyncio.to_thread(pods.close)


async def test_the_brokers_tell_how_long_they_keep_offsets(coordinator: Coordinator, tmp_path: Path) -> None:
    async with asking(coordinator) as (polls, _):
        assert await polls.retention_ms() == 7 * 24 * 3_600_000
    async with Watcher(coordinator.bootstrap, tmp_path / "history.sqlite") as watcher:
        await watcher.caught_up(PATIENCE_S)
        with History.open(watcher.path, read_only=True) as history:
            assert history.retention_ms == 7 * 24 * 3_600_000


async def test_topics_and_coordinators(coordinator: Coordinator) -> None:
    async with asking(coordinator) as (polls, facts):
        seen = facts[0]
        assert isinstance(seen, TopicsSeen)
        assert seen.topics[TOPIC].partitions == PARTITIONS
        assert len(seen.topics[TOPIC].topic_id) == 16
        led = [one for one in facts if isinstance(one, CoordinatorSeen)]
        assert len(led) == polls.partitions("__consumer_offsets")
        assert all(one.reachable for one in led)
        facts.clear()
        coordinator._end()
        await polls.moving(())
        coordinators = [one for one in facts if isinstance(one, CoordinatorSeen)]
        assert len(coordinators) == len(led)
        assert not any(one.reachable for one in coordinators)
        facts.clear()
        coordinator.start()
        async with asyncio.timeout(PATIENCE_S):
            while polls.all_away:
                await polls.moving(())
        assert len([one for one in facts if isinstance(one, CoordinatorSeen) and one.reachable]) == len(led)


async def test_lag_is_the_end_less_what_is_committed(coordinator: Coordinator) -> None:
    coordinator.produce(TOPIC, *[b"x"] * 9, partition=2)
    async with asking(coordinator) as (polls, _):
        found = await polls.lags(
            {"g": [Commit("g", TOPIC, 2, 1, 4), Commit("g", TOPIC, 99, 1, 4), Commit("g", "gone", 0, 1, 4)]}
        )
        assert found == [Lag("g", TOPIC, 2, 7, 9, 4)]


@pytest.mark.parametrize(
    ("group", "partition"),
    # As Java's hashCode says; that of the last one is -2^31, which has no absolute value.
    [("", 0), ("a", 47), ("billing", 9), ("\U0001f680", 27), ("polygenelubricants", 0)],
)
def test_where_a_group_is_kept(group: str, partition: int) -> None:
    assert offsets_partition(group, 50) == partition


async def test_a_watcher_sees_partitions_added_and_lag(
    coordinator: Coordinator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOPICS_EVERY_S", "LAGS_EVERY_S"):
        monkeypatch.setattr(watcher_module, name, 0.2)
    coordinator.produce(TOPIC, *[b"x"] * 5)
    pods = Pods(coordinator.bootstrap, "billing")
    await asyncio.to_thread(pods.up)
    async with Watcher(coordinator.bootstrap, tmp_path / "h.sqlite") as watcher:
        await watcher.caught_up(PATIENCE_S)
        outputs = watcher.outputs()
        async with Admin(coordinator.bootstrap) as admin:
            await admin.create_topic("fresh", 2)
        async with asyncio.timeout(PATIENCE_S):
            async for one in outputs:
                if getattr(one, "kind", "") == EventKind.TOPIC_CREATED:
                    break
        await asyncio.to_thread(pods.commit, 2)
        async with asyncio.timeout(PATIENCE_S):
            while not any(one.committed == 2 for one in watcher.history.lag("billing")):
                await watcher.caught_up(PATIENCE_S)
    await asyncio.to_thread(pods.close)


async def test_a_cluster_that_is_away_is_looked_at_soon_and_is_back_once_all_of_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "AGAIN_S", 0.0)
    lines: list[str] = []
    watcher = Watcher("127.0.0.1:1", tmp_path / "h.sqlite", on_notice=lines.append)
    looks: list[bool] = []
    soon, done = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        looks.append(True)
        monkeypatch.setattr(Polls, "all_away", len(looks) < 5)
        if len(looks) < 3:
            raise ConnectionLostError("nobody is there")
        soon.set()
        if len(looks) == 6:
            done.set()

    task = asyncio.create_task(watcher._every(600.0, look))
    await asyncio.wait_for(soon.wait(), PATIENCE_S)
    task.cancel()
    assert lines == ["the cluster does not answer (nobody is there); waiting for it"]
    task = asyncio.create_task(watcher._every(0.0, look))
    await asyncio.wait_for(done.wait(), PATIENCE_S)
    task.cancel()
    assert lines[1:] == ["the cluster answers again, after 0 s"]


async def test_topics_are_looked_at_when_groups_begin_to_move_and_when_they_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher("127.0.0.1:1", tmp_path / "h.sqlite")
    moving: list[str] = []
    looks: list[bool] = []
    found: list[int] = []

    async def look(*_also: object) -> None:
        looks.append(True)

    async def nothing(*_also: object) -> None: ...

    monkeypatch.setattr(watcher, "_look_at_topics", look)
    monkeypatch.setattr(watcher._polls, "moving", nothing)
    recorder: Any = SimpleNamespace(inference=SimpleNamespace(moving=lambda: moving))
    watcher._recorder = recorder
    watcher._ahead.set()
    for groups in ([], ["billing"], ["billing"], [], []):
        moving[:] = groups
        await watcher._look_at_groups()
        found.append(len(looks))
    assert found == [0, 1, 1, 2, 2]


async def test_a_cluster_that_answers_after_it_was_away_is_there_again(coordinator: Coordinator) -> None:
    async with asking(coordinator) as (polls, facts):
        facts.clear()
        polls.lost()
        assert not any(one.reachable for one in facts if isinstance(one, CoordinatorSeen))
        away = [polls.all_away]
        facts.clear()
        await polls.topics()
        away.append(polls.all_away)
        assert away == [True, False]
        seen = [one.reachable for one in facts if isinstance(one, CoordinatorSeen)]
        assert seen
        assert all(seen)


async def test_of_brokers_and_groups_that_are_no_more_nothing_is_kept(coordinator: Coordinator) -> None:
    async with asking(coordinator) as (polls, _):
        polls._away.add(99)
        polls._modern.add("deleted")
        await polls.topics()
        await polls.moving(())
        assert (polls._away, polls._modern) == (set(), set())

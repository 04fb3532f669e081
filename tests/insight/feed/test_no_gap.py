"""A watcher that is killed, at any moment and more than once, has the same history as one that was not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ringleader.insight.feed.catch_up import history_of
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.history import History, HistoryLockedError
from ringleader.insight.model import Cause, Confidence, GroupState
from ringleader.testing.coordinator import Coordinator
from tests.insight.feed.watching import PARTITIONS, PATIENCE_S, TOPIC, Pods, Watching, contents, watching


def test_killed_and_started_again_it_knows_the_same(tmp_path: Path) -> None:
    with Coordinator(topics={TOPIC: PARTITIONS}) as coordinator:
        for partition in range(PARTITIONS):
            coordinator.produce(TOPIC, *[b"x"] * 10, partition=partition)
        whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
        with watching(coordinator.bootstrap, whole) as one:
            pods = Pods(coordinator.bootstrap, "billing")
            for number in range(3):
                other = Watching(coordinator.bootstrap, killed)
                pods.up()
                pods.commit(number)
                if number == 1:
                    other.catch_up()
                other.kill()
                pods.up()
                pods.down()
                pods.commit(number + 1)
            pods.close()
            with watching(coordinator.bootstrap, killed) as other:
                other.catch_up()
            one.catch_up()
        assert contents(killed) == contents(whole)
        with History.open(whole, read_only=True) as history:
            # Ringleader's journal knows.
            rebalances = history.rebalances("billing")
            assert {one.confidence for one in rebalances} == {Confidence.EXACT}
            assert sum(one.cause is Cause.MEMBER_JOINED for one in rebalances) == 6
            assert rebalances[-1].members == ()
            assert any(one.first_commit_ms for one in rebalances)


async def test_a_single_question_gets_all_that_is_there_alongside_a_watcher(tmp_path: Path) -> None:
    with Coordinator(topics={TOPIC: PARTITIONS}) as coordinator:
        pods = Pods(coordinator.bootstrap, "billing")
        path = tmp_path / "h.sqlite"

        async def members() -> list[list[str]]:
            """Client ids after each rebalance."""
            with await history_of(coordinator.bootstrap, path) as history:
                assert f'"{history.cluster_id}"' in (coordinator.data_dir / "node.json").read_text()
                assert history.address == coordinator.bootstrap
                return [sorted(m.client_id for m in one.members) for one in history.rebalances("billing")]

        async def until(expected: list[list[str]]) -> None:
            """The daemon writes a rebalance when its last follower has its share."""
            async with asyncio.timeout(PATIENCE_S):
                while await members() != expected:
                    pass

        pods.up()
        await until([["pod-0"]])
        pods.up()
        await until([["pod-0"], ["pod-0", "pod-1"]])
        async with Watcher(coordinator.bootstrap, path) as watcher:
            await watcher.caught_up(PATIENCE_S)
            with pytest.raises(HistoryLockedError):
                await Watcher(coordinator.bootstrap, path).start()
            outputs = watcher.outputs()
            pods.close()
            async for one in outputs:
                if isinstance(one, GroupState) and one.state == "Empty":
                    break
            assert (await members())[-1] == []

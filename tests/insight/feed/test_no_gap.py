"""A watcher that is killed, at any moment and more than once, has the same history as one that was not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import confluent_kafka
import pytest

from ringleader.insight.feed.catch_up import history_of
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.history import History, HistoryLockedError
from ringleader.insight.model import Cause, Confidence, GroupState
from ringleader.testing.coordinator import Coordinator
from tests.insight.feed.watching import PATIENCE_S, Watching, told, watching

TOPIC = "orders"


class Pods:
    """Members of one group, as librdkafka has them."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "partition.assignment.strategy": "range",
        }
        self._running: list[confluent_kafka.Consumer] = []

    def up(self) -> None:
        """One more, and all have their partitions."""
        made = confluent_kafka.Consumer({**self._settings, "client.id": f"pod-{len(self._running)}"})
        made.subscribe([TOPIC])
        self._running.append(made)
        self._settle()

    def down(self) -> None:
        """The newest leaves, and the others have its partitions."""
        self._running.pop().close()
        self._settle()

    def commit(self, offset: int) -> None:
        """All commit."""
        for one in self._running:
            owned = [
                confluent_kafka.TopicPartition(tp.topic, tp.partition, offset) for tp in one.assignment()
            ]
            one.commit(offsets=owned, asynchronous=False)

    def close(self) -> None:
        """All leave."""
        while self._running:
            self._running.pop().close()

    def _settle(self) -> None:
        for _ in range(int(PATIENCE_S * 20)):
            for one in self._running:
                one.poll(0.05 / len(self._running))
            owned = [tp.partition for one in self._running for tp in one.assignment()]
            if sorted(owned) == list(range(6)) and all(one.assignment() for one in self._running):
                return
        raise AssertionError("the group did not settle")


def test_killed_and_started_again_it_knows_the_same(tmp_path: Path) -> None:
    with Coordinator(topics={TOPIC: 6}) as coordinator:
        for partition in range(6):
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
        assert told(killed) == told(whole)
        with History.open(whole, read_only=True) as history:
            # Ringleader's journal knows.
            rebalances = history.rebalances("billing")
            assert {one.confidence for one in rebalances} == {Confidence.EXACT}
            assert sum(one.cause is Cause.MEMBER_JOINED for one in rebalances) == 6
            assert rebalances[-1].members == ()
            assert any(one.first_commit_ms for one in rebalances)


async def test_who_asks_once_gets_all_that_is_there_and_reads_beside_a_watcher(tmp_path: Path) -> None:
    with Coordinator(topics={TOPIC: 6}) as coordinator:
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

"""Watchers as processes of their own, which can be killed, and what their histories say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka

from ringleader.insight.history import History

PATIENCE_S = 120.0
TOPIC, PARTITIONS = "orders", 6

_SCRIPT = """
import asyncio, sys
from ringleader.insight.feed.watcher import Watcher

async def main():
    async with Watcher(sys.argv[1], sys.argv[2], poll=False) as watcher:
        print("watching", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            await watcher.caught_up(100)
            print("caught up", flush=True)

asyncio.run(main())
"""


class Watching:
    """A process that watches without asking: what it knows comes from records alone."""

    def __init__(self, bootstrap: str, history: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, bootstrap, str(history)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._says("watching")

    def _says(self, text: str) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line == text, f"{line!r}, exit code {self._process.poll()}"

    def catch_up(self) -> None:
        """Wait until all that is there now is in its history."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._says("caught up")

    def kill(self) -> None:
        """SIGKILL, wherever it is."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._end()

    def stop(self) -> None:
        """Let it end in order."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(PATIENCE_S) == 0
        self._end()

    def _end(self) -> None:
        self._process.wait(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def watching(bootstrap: str, history: Path) -> Iterator[Watching]:
    """One that ends with the block."""
    made = Watching(bootstrap, history)
    try:
        yield made
        made.stop()
    finally:
        if made._process.poll() is None:
            made.kill()


class Pods:
    """Members of one group, as librdkafka has them."""

    def __init__(self, bootstrap: str, group: str, topic: str = TOPIC, **settings: str | int) -> None:
        self._topic = topic
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **settings,
        }
        self._running: list[confluent_kafka.Consumer] = []

    def up(self) -> None:
        """One more, and all have their partitions."""
        self.come()
        self.settle()

    def come(self) -> None:
        """One more, that asks to join. The others do not look up from their work."""
        made = confluent_kafka.Consumer({**self._settings, "client.id": f"pod-{len(self._running)}"})
        made.subscribe([self._topic])
        made.poll(0.1)
        self._running.append(made)

    def down(self) -> None:
        """The newest leaves, and the others have its partitions."""
        self._running.pop().close()
        self.settle()

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

    def settle(self) -> None:
        """Wait until all partitions have an owner, and all members some."""
        for _ in range(int(PATIENCE_S * 20)):
            for one in self._running:
                one.poll(0.05 / len(self._running))
            owned = [tp.partition for one in self._running for tp in one.assignment()]
            if sorted(owned) == list(range(PARTITIONS)) and all(one.assignment() for one in self._running):
                return
        raise AssertionError("the group did not settle")


def contents(path: Path) -> dict[str, Any]:
    """All that a history says, but for which of several commits it kept."""
    with History.open(path, read_only=True) as history:
        groups = history.groups()
        return {
            "groups": groups,
            "rebalances": history.rebalances(limit=100_000),
            "events": history.events(),
            "members": [history.members(one.group) for one in groups],
            "ownership": [history.ownership(one.group) for one in groups],
            "positions": history.positions(),
        }

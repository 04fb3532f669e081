"""Simulations whose shards are recorded, each from some quiet moment of its life on."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import pytest

from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.recording.file import as_line
from ringleader.coordinator.recording.state import is_quiet
from ringleader.coordinator.recording.tap import Line, Tap
from ringleader.coordinator.runtime import GroupRuntime
from tests.simulation.partition import Partition


@dataclass
class Recorded:
    """One life of a shard, or the rest of it."""

    first: Line
    lines: list[bytes]


class Listeners:
    """Recordings of all shards of a run: of each life one, that begins when a coin says so."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        """Of the simulation of one process, and of that of several nodes."""
        self._rng = random.Random(f"recordings {seed}")
        self.found: list[Recorded] = []
        self._known: set[Shard] = set()
        drain_partition, drain_runtime = Partition.drain, GroupRuntime._drain

        def of_partition(partition: Partition) -> None:
            drain_partition(partition)
            if partition.serving:
                self._look(partition.shard)

        def of_runtime(runtime: GroupRuntime) -> None:
            drain_runtime(runtime)
            for number in runtime.serving:
                if self._look(runtime.shards[number]):
                    runtime.rewire(number)

        patch.setattr(Partition, "drain", of_partition)
        patch.setattr(GroupRuntime, "_drain", of_runtime)

    def _look(self, shard: Shard) -> bool:
        if shard in self._known or not is_quiet(shard) or self._rng.random() > 0.2:
            return False
        self._known.add(shard)
        # Written at once: what is changed later must not change what was recorded.
        lines: list[bytes] = []
        tap = Tap(shard, lambda line: lines.append(as_line(line)))
        self.found.append(Recorded(json.loads(as_line({"group": "g", **tap.begin()})), lines))
        return True


def loaded(recorded: Recorded) -> list[dict[str, Any]]:
    """The calls, as a file would give them back; not the last one, if a part of the machine was made to fail
    in it: the next machine would not."""
    lines = [json.loads(one) for one in recorded.lines]
    if lines and lines[-1].get("raised") == "InjectedError":
        lines.pop()
    return lines

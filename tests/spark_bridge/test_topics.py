"""When the query looks for topics and partitions that have come."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ringleader.spark_bridge.batch import topics
from tests.spark_bridge.fakes import World


def test_a_topic_that_comes_to_match_a_pattern_is_seen_at_the_next_trigger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, took_s, asked = [1_000.0], [0.0], []
    monkeypatch.setattr(topics, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    world = World(10, subscribe="", subscribePattern="t|u")
    ask = world.log.topics

    def look(pattern: str) -> tuple[str, ...]:
        clock[0] += took_s[0]
        asked.append(pattern)
        return ask(pattern)

    monkeypatch.setattr(world.log, "topics", look)
    world.assign(0)
    world.plan()
    world.log.end["u", 0] = 5
    clock[0] += topics.LOOK_S
    world.plan()
    assert world.group.rebalanced == ["u-0 came into being"]
    # Where looking takes long, it takes a twentieth of the time at most.
    took_s[0] = 2.0
    asked.clear()
    for _ in range(2 * (2 * topics.REST + 2)):
        clock[0] += 1.0
        world.plan()
    assert len(asked) == 3

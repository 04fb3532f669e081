"""When the query looks for topics and partitions that have come."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from ringleader.spark_bridge.batch import topics
from tests.spark_bridge.fakes import FakeLog, World


def test_a_topic_that_comes_to_match_a_pattern_is_seen_at_the_next_trigger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, took_s, requests = [1_000.0], [0.0], []
    monkeypatch.setattr(topics, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    world = World(10, subscribe="", subscribePattern="t|u")
    ask = world.log.topics

    def look(pattern: str) -> tuple[str, ...]:
        clock[0] += took_s[0]
        requests.append(pattern)
        return ask(pattern)

    monkeypatch.setattr(world.log, "topics", look)
    world.assign(0)
    world.plan()
    world.log.end["u", 0] = 5
    clock[0] += topics.LOOK_S
    world.plan()
    assert world.group.rebalanced == ["u-0 came into being"]
    # Where looking takes long, it takes a twentieth of the time at most.
    took_s[0] = 1.0
    requests.clear()
    for _ in range(2 * (topics.REST + 2)):
        clock[0] += 1.0
        world.plan()
    assert len(requests) == 3


@pytest.mark.parametrize(("named", "rest_s"), [(True, topics.LOOK_S), (False, 30.0)])
def test_a_look_in_an_outage_does_not_put_off_the_next_one_for_long(
    monkeypatch: pytest.MonkeyPatch, named: bool, rest_s: float
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(topics, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    world = World(10) if named else World(10, subscribe="", subscribePattern="t|u")
    world.assign(0)
    world.plan()
    ask = topics.Topics.ask

    def slow(self: topics.Topics) -> list[tuple[str, int]]:
        clock[0] += 50.0
        return ask(self)

    with monkeypatch.context() as patched:
        patched.setattr(topics.Topics, "ask", slow)
        clock[0] += topics.LOOK_S
        world.plan()
    world.log.end["t", 1] = 5
    clock[0] += rest_s
    world.plan()
    assert world.group.rebalanced == ["t-1 came into being"]


def test_a_partition_is_remembered_until_it_was_unknown_for_a_time_without_a_break(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moments in which it is not known do not add up."""
    drawn, clock, missing_s = random.Random(seed), [1_000.0], 10.0
    monkeypatch.setattr(topics, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    tp = ("t", 0)
    log = FakeLog({tp: 5, ("t", 1): 5})
    looks = topics.Topics(World(5).options, log, missing_s)
    looks.look()
    unknown_since_s = None
    for _ in range(40):
        there = drawn.randrange(2) == 0
        for _ in range(drawn.randint(1, 16)):
            clock[0] += topics.LOOK_S
            if there:
                log.end[tp] = 5
                unknown_since_s = None
            elif log.end.pop(tp, None) is not None:
                unknown_since_s = clock[0]
            looks.look()
            late = unknown_since_s is not None and clock[0] - unknown_since_s >= missing_s
            assert (tp in looks.remembered({tp: 3})) is not late

"""Each run of the simulations, recorded from some moment on, is played the same by another machine."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.coordinator import deadlines
from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.states import HEARTBEAT_CODES, GroupState
from ringleader.coordinator.recording.anonymous import CONSTANTS, Masks
from ringleader.coordinator.recording.file import as_line
from ringleader.coordinator.recording.plain import Writer
from ringleader.coordinator.recording.play import Player
from ringleader.coordinator.recording.state import state_of
from tests.coordinator.recording.listening import Listeners, Recorded, loaded
from tests.simulation import world
from tests.simulation.nodes import world as nodes
from tests.support.shares import share

RUNS = share(5, whole=25)
NODES_RUNS = share(4, whole=20)
SECRET = b"\x17" * 32


@pytest.fixture(autouse=True)
def compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines are compacted in these small worlds, too: while they are recorded, and while they play."""
    monkeypatch.setattr(deadlines, "_COMPACT_ABOVE", 4)


def _record(seed: int, simulate: Callable[[int], Any] = world.simulate) -> list[Recorded]:
    with pytest.MonkeyPatch.context() as patch:
        listeners = Listeners(seed, patch)
        simulate(seed)
    return listeners.found


def _difference(recorded: Recorded) -> tuple[int, object] | None:
    player = Player(recorded.first)
    for number, line in enumerate(loaded(recorded), 1):
        played = player.step(line)
        if played.difference is not None:
            return number, played.difference
    return None


@pytest.mark.draws
@pytest.mark.share
def test_every_run_of_one_process_is_played_the_same() -> None:
    counts: Counter[str] = Counter()
    runs = 0
    while runs < RUNS or not counts["while somebody waits"]:
        runs += 1
        seed = secrets.randbits(48)
        for recorded in _record(seed):
            assert (seed, _difference(recorded)) == (seed, None)
            counts["in the middle"] += _has_members(recorded)
            counts["while somebody waits"] += bool(recorded.first["state"]["parked"])
            counts.update(line["do"] for line in loaded(recorded))
    for what in ("in the middle", "handle", "heartbeat", "commit_one", "tick", "drain"):
        assert counts[what] > RUNS, f"{what} was rare"


@pytest.mark.draws
@pytest.mark.share
def test_every_run_of_several_nodes_is_played_the_same() -> None:
    recorded: list[Recorded] = []
    rare, runs = {"topics", "configs"}, 0
    while runs < NODES_RUNS or rare:
        runs += 1
        seed = secrets.randbits(48)
        found = _record(seed, nodes.simulate)
        assert [(seed, _difference(one)) for one in found] == [(seed, None)] * len(found)
        recorded += found
        rare -= {what for what in rare for one in found for line in loaded(one) if what in line}
    assert all(one.first["state"]["confirms"] for one in recorded)
    assert sum(len(one.lines) for one in recorded) > 1_000
    assert any(group["consumer"] for one in recorded for group in one.first["state"]["groups"])


def _has_members(recorded: Recorded) -> bool:
    return any(group["members"]["d"] for group in recorded.first["state"]["groups"])


@pytest.mark.draws
@pytest.mark.share
def test_a_machine_made_of_a_state_has_that_state() -> None:
    looked = 0
    while looked < RUNS:
        for recorded in _record(secrets.randbits(48)):
            shard = Player(recorded.first).shard
            writer = Writer(lambda ticket: ticket.number, lambda name: name, names_objects=True)
            assert json.loads(as_line(state_of(shard, writer))) == recorded.first["state"]
            looked += _has_members(recorded)


@pytest.mark.draws
@pytest.mark.share
@pytest.mark.parametrize("simulate", [world.simulate, nodes.simulate])
def test_without_names_a_recording_is_played_and_names_nothing(simulate: Callable[[int], Any]) -> None:
    """The words of the simulation are short, so it is looked at whole texts."""
    played = 0
    for seed in (secrets.randbits(48) for _ in range(share(2, whole=5))):
        for recorded in _record(seed, simulate):
            masks = Masks(SECRET, "g", everything=True)
            lines = loaded(recorded)
            first = json.loads(as_line(masks.first(recorded.first)))
            player, again, names = Player(first), Player(first), _texts([recorded.first["state"]["groups"]])
            for line in lines:
                masked = masks.line(line)
                made = json.loads(as_line({**masked, **player.step(masked).outcome}))
                assert (seed, again.step(made).difference) == (seed, None)
                assert len(as_line(masked["with"])) == pytest.approx(
                    len(as_line(line["with"])), rel=0.5, abs=40
                ), seed
                played += 1
                named = _texts(made) & (names := names | _texts(line["with"])) - _KNOWN
                assert (seed, named) == (seed, set())
    assert played > 100


@pytest.mark.draws
def test_topics_with_other_names_are_no_news_to_a_group() -> None:
    """Else the machine without names begins an epoch that the recorded one did not begin."""
    counts: Counter[bool] = Counter()
    while not counts[True]:
        seed = secrets.randbits(48)
        for recorded in _record(seed, nodes.simulate):
            first = json.loads(as_line(Masks(SECRET, "g", everything=True).first(recorded.first)))
            seen = [_up_to_date(Player(one).shard) for one in (recorded.first, first)]
            assert (seed, seen[1]) == (seed, seen[0])
            counts.update(seen[0])


def _up_to_date(shard: Shard) -> list[bool]:
    """Of each group of the consumer protocol: whether its topics are as it saw them last."""
    core = shard._core
    consumers = [one.consumer for one in core.groups.values() if one.consumer is not None]
    return [one.metadata_hash == core.topics.metadata_hash(one.all_topics()) for one in consumers]


_KNOWN = {*CONSTANTS, "User:1"}


def _texts(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value} if len(value) > 3 else set()
    if isinstance(value, list):
        return set().union(*map(_texts, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    return set().union(
        *(_texts(one) for name, one in value.items() if name not in ("c", "e", "do", "raised", "b"))
    )


def _long_run() -> Recorded:
    """A recording with members in it from the beginning, and commits."""
    while True:
        for recorded in _record(secrets.randbits(48)):
            lines = loaded(recorded)
            if _has_members(recorded) and any(one["do"] == "commit_one" and one["gave"] for one in lines):
                return recorded


@pytest.mark.draws
def test_a_changed_outcome_is_noticed_where_it_stands() -> None:
    recorded = _long_run()
    lines = loaded(recorded)
    at = next(n for n, one in enumerate(lines) if one["do"] == "drain" and one["gave"]["appends"])
    lines[at]["gave"]["appends"][0][0] += 1
    recorded.lines = [as_line(one) for one in lines]
    found = _difference(recorded)
    assert found is not None
    assert found[0] == at + 1
    assert getattr(found[1], "what", "") == "records"


@pytest.mark.draws
def test_a_call_that_is_missing_is_noticed() -> None:
    recorded = _long_run()
    lines = loaded(recorded)
    at = next(n for n, one in enumerate(lines) if one["do"] == "commit_one" and one["gave"])
    del lines[at]
    recorded.lines = [as_line(one) for one in lines]
    found = _difference(recorded)
    assert found is not None
    assert found[0] > at


@pytest.mark.draws
def test_another_machine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two faults, each in a place of its own."""
    recorded: list[Recorded] = []
    while len(recorded) < 5:
        recorded.append(_long_run())
    assert [_difference(one) for one in recorded] == [None] * 5
    former = Core.arm_session

    def later(core: Core, member: Any, now_ms: int) -> None:
        former(core, member, now_ms + 1)

    with monkeypatch.context() as patch:
        patch.setattr(Core, "arm_session", later)
        assert any(_difference(one) is not None for one in recorded)
    with monkeypatch.context() as patch:
        patch.setitem(HEARTBEAT_CODES, GroupState.STABLE, 27)
        assert any(_difference(one) is not None for one in recorded)

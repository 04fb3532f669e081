"""Where another node may own the shard unnoticed: what is said is proven first, and is the same otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.coordinator.groups.records import READ_BARRIER_RECORD
from tests.coordinator.groups.script import Script, Step, parse, play

_SCENARIOS = [
    pytest.param(steps, id=f"{path.stem}: {title}")
    for path in sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
    for title, steps in parse(path.read_text())[1]
    if not any("store" in command or "restart" in command for _, command, _ in steps)
]
FORM = "join a v=3; tick 3s; sync a; commit a t/0@5"
"""A group of one, stable, with an offset."""


@pytest.mark.parametrize("steps", _SCENARIOS)
def test_a_log_that_stays_ours_changes_nothing_that_is_said(steps: list[Step]) -> None:
    for (_, command, expected), (_, _, actual) in zip(steps, play(steps, confirmed_reads=True), strict=True):
        assert sorted(actual) == sorted(expected), command


def stable(*commands: str) -> Script:
    """A group of one; from here on nothing becomes durable."""
    script = Script(confirmed_reads=True)
    script.play(FORM)
    for command in commands:
        script.play(command)
    script.play("store hold")
    return script


PROVEN = [
    "fetch t/0",
    "fetch",
    "fetch group=other",
    "fetch stable=1",
    "describe",
    "describe other",
    "list",
    "sync a",
    "sync a gen=7",
    "sync a id=nobody",
    "sync x group=other id=nobody gen=1",
    "join a",
    "join x v=5",
    "join x v=3 id=nobody",
    "join x v=3 id=nobody group=other",
    "join x v=3 type=connect",
    "leave a id=nobody",
    "leave x id=nobody group=other",
    "commit a t/0@6",
    "commit a t/0@6 gen=7",
    "commit a t/0@6 id=nobody",
    "commit a t/0@6 gen=-1 id=",
    "commit x t/0@6 group=other gen=3 id=nobody",
    "commit a t/0@6 meta=" + "x" * 5_000,
    "txn-commit p t/0@9 gen=9 id=nobody",
    "end commit",
    "offset-delete t/0",
    "offset-delete group=other t/0",
    "topic-deleted u",
    "delete",
    "delete other",
    "heartbeat a gen=7",
    "heartbeat a id=nobody",
    "heartbeat a instance=i",
    "heartbeat x group=other gen=1 id=nobody",
]


@pytest.mark.parametrize("command", PROVEN)
def test_what_is_said_of_a_group_is_proven(command: str) -> None:
    script = stable()
    [waits] = script.play(command)
    assert waits.endswith(" waits")
    assert script.in_flight, "what it waits for is on its way"
    lines = script.play("store ok")
    assert any(waits.removesuffix(" waits") in line for line in lines)
    # A zombie never says it.
    script = stable()
    script.play(command)
    assert [line.split("  ")[1] for line in script.play("store fail")] == [
        waits.split("  ")[1].removesuffix(" waits") + " refused NOT_COORDINATOR"
    ]


def test_what_is_on_its_way_already_proves_nothing() -> None:
    script = stable()
    script.play("commit a t/1@1")
    assert script.play("fetch t/0") == ["3s  -: fetch waits"]
    lines = script.play("store ok 1")
    assert lines == ["3s  a: commit t/1:NONE"], "it may have been taken before the question came"
    assert script.play("store ok") == ["3s  -: fetch t/0@5"]


def test_one_append_proves_all_that_is_said_in_a_turn() -> None:
    script = stable()
    calls = [script.shard.fetch_offsets("g", None, False, object()) for _ in range(5)]  # type: ignore[arg-type]
    calls.append(script.shard.describe("g", 5, object()))  # type: ignore[arg-type]
    assert calls == [None] * 6
    [append] = script.shard.drain().appends
    assert append.records == [READ_BARRIER_RECORD]
    script.shard.durable(append.position, script.now_ms)
    assert len(script.shard.drain().answers) == 6


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("heartbeat a", "a: heartbeat ok"),
        ("join x v=3 group=", "x: join INVALID_GROUP_ID"),
        ("join x v=3 session=1", "x: join INVALID_SESSION_TIMEOUT"),
        ("list types=share", "list nothing"),
    ],
)
def test_what_no_state_of_a_group_is_behind_needs_no_proof(command: str, expected: str) -> None:
    script = stable()
    [line] = script.play(command)
    assert expected in line
    assert not line.endswith("waits")
    assert not script.in_flight


@pytest.mark.parametrize("command", PROVEN)
def test_a_shard_that_does_not_serve_refuses_at_once(command: str) -> None:
    for phase in ("loading", "unload"):
        script = stable(phase)
        lines = script.play(command)
        assert not any(line.endswith("waits") for line in lines)
        assert not script.in_flight


def test_a_member_that_rebalances_hears_of_it_when_that_is_proven() -> None:
    script = stable("join b v=3")
    assert script.play("heartbeat a") == ["3s  a: heartbeat waits"]
    assert script.play("store ok") == ["3s  a: heartbeat REBALANCE_IN_PROGRESS"]


def test_a_join_phase_that_completes_is_told_when_that_is_proven() -> None:
    script = stable("join b v=3")
    assert script.play("join a") == ["3s  a: join waits"]
    assert script.in_flight
    assert len(script.play("store ok")) == 2, "a and b"


def test_a_zombie_that_wakes_says_nothing_of_what_it_thinks_has_expired() -> None:
    script = stable("join b v=3; join a; sync a; sync b")
    script.now_ms += 60_000  # it did not run
    script.play("tick 0s")
    assert script.play("heartbeat a") == ["63s  a: heartbeat waits"]
    assert script.play("heartbeat b; commit b t/0@9") == ["63s  b: heartbeat waits", "63s  b: commit waits"]
    assert script.play("store fail") == [
        "63s  a: heartbeat refused NOT_COORDINATOR",
        "63s  b: heartbeat refused NOT_COORDINATOR",
        "63s  b: commit refused NOT_COORDINATOR",
    ]
    assert script.play("heartbeat a; heartbeat b") == ["63s  a: heartbeat ok", "63s  b: heartbeat ok"]


def test_nobody_is_thought_to_have_expired_while_the_log_is_silent() -> None:
    script = stable("join b v=3; join a; sync a; sync b")
    script.play("tick 60s")
    assert script.play("heartbeat a; heartbeat b") == ["63s  a: heartbeat ok", "63s  b: heartbeat ok"]


def test_a_commit_that_takes_the_short_way_waits_for_the_log_too() -> None:
    script = Script()
    script.play(f"{FORM}; store hold")
    assert script.shard.commit_one("g", 1, "a-1", None, "t", 0, 6, -1, object(), script.now_ms)  # type: ignore[arg-type]
    assert script.play("tick 60s; state") == ["63s  state Stable generation 1 members [a-1*]"]


def test_a_shard_whose_members_only_send_heartbeats_is_proven_every_few_seconds() -> None:
    script = stable()
    for count in (1, 2, 3):
        for _ in range(5):
            script.play("tick 1s; heartbeat a")
        assert [append.records for append in script.in_flight] == [[READ_BARRIER_RECORD]] * count


def test_a_shard_without_members_proves_nothing() -> None:
    script = Script(confirmed_reads=True)
    script.play("commit x t/0@1 group=simple gen=-1; store hold; tick 60s")
    assert script.in_flight == []


def test_where_reads_are_not_fenced_there_is_no_barrier() -> None:
    script = Script()
    script.play(f"{FORM}; fetch; tick 8s; heartbeat a; tick 8s; list")
    assert READ_BARRIER_RECORD not in script.log

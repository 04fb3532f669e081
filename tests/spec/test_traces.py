"""Fresh runs of simulated groups are what docs/spec allows, and what is not is refused, with its step.

A refused seed prints the command that checks it again: `python -m tests.spec.traces --seed N`.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.reconciliation import reconcile
from tests.spec.recorder import record
from tests.spec.tlc import SPEC
from tests.spec.traces import Line, Trace, check
from tests.spec.wire import WireWorld, judge_wire
from tests.support.daemon import Daemon
from tests.support.shares import share

pytestmark = [pytest.mark.xdist_group("tlc"), pytest.mark.draws, pytest.mark.share]

SEEDS = share(3, whole=12)


def _wrong_epoch(lines: list[Line]) -> int:
    for place, line in enumerate(lines):
        if line["kind"] == "receive":
            line["answer"]["epoch"] += 1
            return place
    raise AssertionError("no answer arrived")


def _given_twice(lines: list[Line]) -> int:
    """Of what a member has, another one gets a partition, too."""
    had: dict[str, Any] = {}
    for place, line in enumerate(lines):
        for name, row in line.get("rows", {}).items():
            held = {one for other, some in had.items() if other != name for one in some} - row["got"].keys()
            if held and line["kind"] == "handle" and name == line["m"]:
                row["got"][min(held)] = line["aim"]
                return place
            had[name] = {**row["got"], **row["due"]}
    raise AssertionError("never two members")


def _revocation_lost(lines: list[Line]) -> int:
    """Partitions that a member has to give up are nobody's at once."""
    for place, line in enumerate(lines):
        row = line.get("rows", {}).get(line["m"]) if line["kind"] == "handle" else None
        if row is not None and row["state"] == "unrevoked":
            row["state"], row["due"], row["prev"], row["at"] = "stable", {}, row["at"], line["aim"]
            return place
    raise AssertionError("nothing was given up")


def _refused_commit_counts(lines: list[Line]) -> int:
    for place, line in enumerate(lines):
        if line["kind"] == "committed" and not line["ok"]:
            line["ok"] = True
            return place
    raise AssertionError("no commit was refused")


def _another_offset(lines: list[Line]) -> int:
    for place, line in enumerate(lines):
        if line["kind"] == "fetch":
            line["shows"] += 1
            return place
    raise AssertionError("nothing was fetched")


def _commit_answered_before_it_is_durable(lines: list[Line]) -> int:
    for place, line in enumerate(lines[:-1]):
        if line["kind"] == "committed" and line["ok"] and lines[place + 1]["kind"] == "flush":
            lines.insert(place + 1, {"kind": "acknowledged", "m": line["m"]})
            return place + 1
    raise AssertionError("no commit was accepted")


def _topics_not_noticed(lines: list[Line]) -> int:
    there: set[str] | None = None
    for place, line in enumerate(lines):
        if line["kind"] == "topics":
            there = line["there"]
        elif line["kind"] == "handle" and "seen" in line and there is not None and line["seen"] == there:
            line["seen"] = line["seen"] ^ {min(there)} if there else {"a0_0"}
            return place
    raise AssertionError("no topic changed")


def _synced_with_anothers(lines: list[Line]) -> int:
    """SyncGroup gives a classic member a partition that another one has, too."""
    owned: dict[str, set[str]] = {}
    for place, line in enumerate(lines):
        if line["kind"] == "receive":
            others = {one for name, some in owned.items() if name != line["m"] for one in some}
            owned[line["m"]] = line["client"]["owned"]
            fresh = others - line["client"]["owned"]
            if fresh and "does" in line["client"] and line["answer"].get("news"):
                line["answer"]["all"] = line["client"]["owned"] = line["answer"]["all"] | {min(fresh)}
                return place
    raise AssertionError("no classic member got an assignment")


def _never_called_to_rejoin(lines: list[Line]) -> int:
    """A classic member is not told that there is something to give up, or to receive."""
    for place, line in enumerate(lines):
        if line["kind"] == "receive" and line["answer"].get("again"):
            line["answer"]["again"], line["client"]["does"] = False, "stay"
            return place
    raise AssertionError("no classic member was told")


def _conversions(lines: list[Line], protocol: str) -> Iterator[tuple[int, Line]]:
    """The lines by which the group comes to speak another protocol."""
    before = "consumer"
    for place, line in enumerate(lines):
        if line["kind"] != "failover" and before != line.get("protocol", before) == protocol:
            yield place, line
        before = line.get("protocol", before)


def _upgraded_with_two_holders(lines: list[Line]) -> int:
    """The member that upgrades the group gets a partition that a classic one has, or has to give up."""
    for place, line in _conversions(lines, "consumer"):
        rows = line["rows"]
        held = {one for name, row in rows.items() if name != line["m"] for one in (*row["got"], *row["due"])}
        if held:
            rows[line["m"]]["got"][min(held)] = line["aim"]
            return place
    raise AssertionError("no group was upgraded")


def _downgraded_in_a_former_epoch(lines: list[Line]) -> int:
    for place, line in _conversions(lines, "classic"):
        for name in ("epoch", "aim"):
            line[name] -= 1
        for row in line["rows"].values():
            for name in ("at", "prev"):
                row[name] = max(0, row[name] - 1)
            row["got"] = dict.fromkeys(row["got"], line["aim"])
        return place
    raise AssertionError("no group was downgraded")


def _same_generation_again(lines: list[Line]) -> int:
    """After the downgrade the group goes on in the epoch that it had."""
    for place, line in enumerate(lines):
        if line["kind"] == "generation":
            line["gen"], line["epoch"] = line["gen"] - 1, line["epoch"] - 1
            return place
    raise AssertionError("no classic group began a generation")


def _has(trace: Trace, change: Callable[[list[Line]], int]) -> bool:
    try:
        change(deepcopy(trace.lines))
    except AssertionError:
        return False
    return True


PLANTED = (
    *(_wrong_epoch, _given_twice, _revocation_lost),
    *(_refused_commit_counts, _another_offset, _commit_answered_before_it_is_durable),
    _topics_not_noticed,
    *(_synced_with_anothers, _never_called_to_rejoin),
    *(_upgraded_with_two_holders, _downgraded_in_a_former_epoch, _same_generation_again),
)


@pytest.mark.timeout(400)
def test_fresh_runs_are_what_the_specification_allows_and_planted_faults_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traces = [record(secrets.randbits(48)) for _ in range(SEEDS)]
    planted: dict[str, int] = {}
    fresh = (record(secrets.randbits(48)) for _ in range(200))
    spoiled = list[Trace]()
    for change in PLANTED:
        whole = next(one for one in chain(traces, fresh) if _has(one, change))
        lines = deepcopy(whole.lines)
        planted[change.__name__] = place = change(lines)
        spoiled.append(replace(whole, title=change.__name__, lines=lines[: place + 1]))

    def forgetful(*given: Any, **named: Any) -> Any:
        after = reconcile(*given, **named)
        return replace(after, previous_epoch=given[0].previous_epoch) if after is not given[0] else after

    monkeypatch.setattr("ringleader.coordinator.groups.consumer.reconcile", forgetful)
    code = replace(record(secrets.randbits(48)), title="code")
    found = check([*traces, *spoiled, code])
    for title, place in planted.items():
        assert f"{title}: step {place + 1} of {place + 1}, " in found.refused.pop(title)
    assert "the specification says: [" in found.refused.pop("code")
    assert found.refused == {}
    assert found.steps > 100 * SEEDS
    assert found.kinds["acknowledged"] > SEEDS
    assert found.kinds["topics"]


def test_the_daemon_answers_as_the_specification_allows(tmp_path: Path) -> None:
    at_once = ["--group-consumer-assignment-interval-ms", "0"]
    with Daemon(tmp_path / "data", topics=["t:4"], options=at_once) as daemon:
        seed = secrets.randbits(48)
        judge_wire(WireWorld(daemon.bootstrap, "g", "t", seed).record(tmp_path / "trace.json"))


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    trace = record(secrets.randbits(48))
    trace.write(tmp_path / "trace.json")
    read = Trace.read(tmp_path / "trace.json")
    assert read.again == f"python -m tests.spec.traces {tmp_path / 'trace.json'}"
    assert replace(read, again=trace.again) == trace


def test_an_answer_that_waits_for_commits_would_not_be_what_the_coordinator_does(tmp_path: Path) -> None:
    for one in SPEC.glob("*.tla"):
        shutil.copy(one, tmp_path)
    spec, narrow = tmp_path / "ConsumerGroup.tla", "all |-> Given(s, m), after |-> Len(lag')]"
    text, wide = spec.read_text(), "all |-> Given(s, m), after |-> ToTheGroups(lag')]"
    assert text.count(wide) == 1
    spec.write_text(text.replace(wide, narrow))
    traces = [record(secrets.randbits(48)) for _ in range(5)]
    refused = check(traces, spec=tmp_path).refused
    assert any(" receive: " in text and "it is none of its steps" in text for text in refused.values())


def test_an_invariant_that_does_not_hold_is_named_with_its_step(tmp_path: Path) -> None:
    for one in SPEC.glob("*.tla"):
        shutil.copy(one, tmp_path)
    spec, line = tmp_path / "ConsumerGroup.tla", "EpochsAreInOrder == "
    spec.write_text(spec.read_text().replace(line, f"{line} mem.aim < 2 /\\ "))
    trace = record(secrets.randbits(48))
    (text,) = check([trace], spec=tmp_path).refused.values()
    first = next(place for place, one in enumerate(trace.lines) if one.get("aim", 0) >= 2)
    assert f"{trace.title}: step {first + 1} of " in text
    assert f"EpochsAreInOrder does not hold after it; again: {trace.again}" in text

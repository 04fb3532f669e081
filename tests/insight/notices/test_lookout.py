"""Problems that a history shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.insight.advice import Past, Thresholds, advise
from ringleader.insight.history import Away, History, HistoryError
from ringleader.insight.model import Confidence
from ringleader.insight.notices import lookout as module
from ringleader.insight.notices.incidents import Key, Problem
from ringleader.insight.notices.lookout import Lookout
from tests.insight.advice.test_patterns import stopped_in_order
from tests.insight.made import Made

HOUR_MS = 3_600_000
INTERVAL_MS = 1_000


def lookout(made: Made, thresholds: Thresholds | None = None) -> Lookout:
    return Lookout(made.path, thresholds or Thresholds(), HOUR_MS, INTERVAL_MS)


def looked(made: Made, thresholds: Thresholds | None = None) -> dict[Key, Problem]:
    made.write()
    out = lookout(made, thresholds)
    try:
        return out.look(made.now_ms, set())
    finally:
        out.close()


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "one.sqlite", exact=True)


def test_a_finding_is_a_problem_with_its_evidence_and_change(made: Made) -> None:
    group = made.group("orders", {"orders": 12}, ["app-1", "app-2", "app-3"])
    made.group("fine", {"orders": 12}, ["fine-1"])
    for name in ("app-4", "app-5"):
        group.join(name, leader_s=4)
        made.wait(60)
    found = looked(made)
    [problem] = found.values()
    assert [*found] == [("orders", "slow leader")]
    assert problem.text.startswith("Slow leader: The leader took 4 s (median of 2 rebalances)")
    assert "In 2 of 3 rebalances it took 2 s or more" in problem.text
    assert "Change partition.assignment.strategy: " in problem.text
    assert looked(made, Thresholds(slow_leader_ms=5_000)) == {}
    made.wait(HOUR_MS / 1000 + 1)
    assert looked(made) == {}


def test_a_finding_that_is_only_possible_is_no_problem(made: Made) -> None:
    stopped_in_order(made)
    made.write()
    with History.open(made.path, read_only=True) as history:
        past = Past.read(history, "orders", made.now_ms - HOUR_MS, made.now_ms)
    advice = advise(past, replay=False)
    assert {one.confidence for one in advice.findings} == {Confidence.POSSIBLE}
    assert looked(made) == {}


def test_a_group_that_lost_all_members_is_a_problem_while_records_wait(made: Made) -> None:
    group = made.group("orders", {"orders": 3}, ["app-1", "app-2"])
    made.group("idle", {"orders": 3})
    made.wait(60)
    group.leave("app-1", "app-2")
    made.wait(60)
    found = looked(made)
    assert [*found] == [("orders", "group without members")]
    assert "and is 6,129 records behind." in found["orders", "group without members"].text
    group.join("app-1")
    made.wait(60)
    assert looked(made) == {}
    group.leave("app-1")
    group.delete()
    assert looked(made) == {}


def test_a_group_that_is_deleted_takes_its_problems_along(made: Made) -> None:
    group = made.group("orders", {"orders": 3}, ["app-1"])
    made.wait(60)
    group.leave("app-1")
    made.wait(60)
    made.write()
    out = lookout(made)
    assert [*out.look(made.now_ms, set())] == [("orders", "group without members")]
    group.delete()
    made.write()
    assert out.look(made.now_ms, set()) == {}
    assert out._looked == {}
    out.close()


def test_a_cluster_that_does_not_answer_is_a_problem(made: Made) -> None:
    made.write()
    made.answers(Away(made.now_ms, "no broker answers."))
    [problem] = looked(made).values()
    assert (problem.group, problem.title) == ("", "cluster away")
    assert problem.text.startswith("The cluster prod:9092 does not answer since 20")
    assert problem.text.endswith("Z: no broker answers.")
    made.answers(None)
    assert looked(made) == {}


def test_only_groups_in_which_something_happened_are_looked_at_each_time(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = made.group("orders", {"orders": 3}, ["app-1"])
    made.group("billing", {"orders": 3}, ["bill-1"])
    made.write()
    seen: list[str] = []
    real = module.problems

    def counted(past: Past, thresholds: Thresholds) -> object:
        seen.append(past.group)
        return real(past, thresholds)

    monkeypatch.setattr(module, "problems", counted)
    out = lookout(made)
    began_ms = made.now_ms
    out.look(began_ms, set())
    assert seen == ["billing", "orders"]
    out.look(began_ms + INTERVAL_MS, set())
    out.look(began_ms + 2 * INTERVAL_MS, {"billing"})
    assert seen[2:] == ["billing"]
    made.wait(1)
    orders.join("app-2")
    groups, made.groups = made.groups, {"orders": orders}
    made.write()
    made.groups = groups
    out.look(began_ms + 3 * INTERVAL_MS, set())
    assert seen[3:] == ["orders"]
    out.look(began_ms + 20 * INTERVAL_MS, set())
    assert seen[4:] == ["billing", "orders"]
    out.close()


def test_a_history_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="there is no history"):
        Lookout(tmp_path / "none", Thresholds(), HOUR_MS, INTERVAL_MS).look(0, set())

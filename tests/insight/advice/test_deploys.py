"""Deploys that were marked or recognised, and what they cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.insight.advice import Past
from ringleader.insight.advice.deploys import Deploy, deploys, marks_of, with_static_ids
from ringleader.insight.history import History
from ringleader.insight.model import Event, EventKind
from tests.insight.made import Made

HOUR_MS = 3_600_000
NAMES = [f"app-{number}" for number in range(4)]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "one.sqlite", exact=True)


def found(made: Made, group: str = "orders", since_ms: int | None = None) -> list[Deploy]:
    made.write()
    since_ms = made.now_ms - HOUR_MS if since_ms is None else since_ms
    with History.open(made.path, read_only=True) as history:
        past = Past.read(history, group, since_ms, made.now_ms)
        return deploys(past, marks_of(history, group, since_ms, made.now_ms))


def test_replaced_members_are_a_deploy_with_its_cost(made: Made) -> None:
    group = made.group("orders", {"orders": 12}, NAMES)
    made.wait(600)
    rolled = group.deploy(pause_s=20)
    made.wait(600)
    group.restart("app-1")  # none by itself
    made.wait(600)
    [deploy] = found(made)
    assert (deploy.label, deploy.marked, deploy.rebalances) == ("", False, 4)
    assert deploy.until_ms == rolled[-1].at_ms
    assert deploy.unowned_ms == sum(one.unowned_ms or 0 for one in rolled) > 0
    assert deploy.text.startswith("4 rebalances, ")


def test_a_marked_deploy_is_recognised_once(made: Made) -> None:
    group = made.group("orders", {"orders": 12}, NAMES)
    made.group("billing", {"orders": 12}, NAMES)
    made.wait(600)
    began_ms = made.now_ms
    made.event(EventKind.DEPLOY_BEGAN, "v2", "orders")
    group.deploy(pause_s=20)
    made.event(EventKind.DEPLOY_ENDED, "", "orders")
    ended_ms = made.now_ms
    made.wait(600)
    [deploy] = found(made)
    assert deploy[:5] == ("v2", True, began_ms, ended_ms, 4)
    assert found(made, "billing") == []


def test_a_deploy_of_all_groups_is_one_of_each_and_goes_on_until_it_ends(made: Made) -> None:
    group = made.group("orders", {"orders": 12}, NAMES)
    made.wait(600)
    made.event(EventKind.DEPLOY_BEGAN, "v2")
    made.wait(60)
    group.restart("app-1")
    [deploy] = found(made)
    assert (deploy.label, deploy.until_ms, deploy.rebalances) == ("v2", None, 1)
    # It began before the time that is asked for.
    [deploy] = found(made, since_ms=made.now_ms - 1)
    assert deploy.label == "v2"
    made.wait(60)
    first_ended_ms = made.now_ms
    made.event(EventKind.DEPLOY_BEGAN, "v3")
    made.wait(60)
    made.event(EventKind.DEPLOY_ENDED, "")
    made.event(EventKind.DEPLOY_ENDED, "twice")
    assert [(one.label, one.until_ms) for one in found(made)] == [
        ("v2", first_ended_ms),
        ("v3", made.now_ms),
    ]
    assert found(made, since_ms=made.now_ms + 1) == []


def test_a_rebalance_that_goes_on_when_a_deploy_is_marked_as_over_is_a_part_of_it(made: Made) -> None:
    group = made.group("orders", {"orders": 12}, NAMES)
    made.wait(600)
    made.event(EventKind.DEPLOY_BEGAN, "v2", "orders")
    *_, last = rolled = group.deploy(pause_s=20)
    assert last.began_ms is not None
    assert last.began_ms < last.at_ms - 1
    made.add(Event("made-end", "orders", last.at_ms - 1, EventKind.DEPLOY_ENDED, ""))
    made.wait(600)
    [deploy] = found(made)
    assert (deploy.label, deploy.until_ms, deploy.rebalances) == ("v2", last.at_ms - 1, len(rolled))


def test_the_cost_with_static_ids_is_played(made: Made) -> None:
    group = made.group("orders", {"orders": 12}, NAMES)
    static = made.group("static", {"orders": 12}, NAMES, static=True)
    made.wait(600)
    for one in (group, static):
        one.deploy(pause_s=20)
    made.write()
    with History.open(made.path, read_only=True) as history:
        [deploy] = deploys(Past.read(history, "orders", made.now_ms - HOUR_MS, made.now_ms))
        saving = with_static_ids(Past.read(history, "orders", deploy.since_ms, deploy.until_ms or 0))
        assert saving is not None
        assert saving.claimed
        assert (saving.rebalances_as_was, saving.rebalances) == (4, 0)
        assert with_static_ids(Past.read(history, "static", 0, made.now_ms)) is None
    assert with_static_ids(Past("nobody", 0, 1)) is None

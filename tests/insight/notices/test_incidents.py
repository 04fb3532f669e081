"""An incident is told once, after a time of quiet."""

from __future__ import annotations

from ringleader.insight.model import Event, EventKind
from ringleader.insight.notices.incidents import Incidents, Key, Problem

QUIET_MS, AGAIN_MS = 1_000, 10_000


def problem(group: str = "orders", title: str = "flapping member", text: str = "It flaps.") -> Problem:
    return Problem(group, title, text)


def found(*problems: Problem) -> dict[Key, Problem]:
    return {(one.group, one.title): one for one in problems}


def test_a_problem_that_lasts_is_told_once() -> None:
    incidents = Incidents(QUIET_MS, AGAIN_MS)
    assert incidents.look(found(problem()), 0) == []
    assert incidents.waiting() == {"orders"}
    assert incidents.look(found(problem()), QUIET_MS - 1) == []
    [event] = incidents.look(found(problem(text="It flaps still.")), QUIET_MS)
    assert event == Event(
        "incident-orders-flapping member-0", "orders", QUIET_MS, EventKind.INCIDENT, "It flaps still."
    )
    assert incidents.waiting() == set()
    for now_ms in (QUIET_MS + 1, 100 * AGAIN_MS):
        assert incidents.look(found(problem()), now_ms) == []


def test_a_problem_that_is_over_in_time_is_not_told() -> None:
    incidents = Incidents(QUIET_MS, AGAIN_MS)
    incidents.look(found(problem()), 0)
    assert incidents.look({}, QUIET_MS - 1) == []
    # It begins again: its time of quiet, too.
    assert incidents.look(found(problem()), QUIET_MS) == []
    assert len(incidents.look(found(problem()), 2 * QUIET_MS)) == 1


def test_without_a_time_of_quiet_it_is_told_at_once() -> None:
    assert len(Incidents(0, AGAIN_MS).look(found(problem()), 5)) == 1


def test_what_comes_back_soon_is_the_same_incident_and_later_another() -> None:
    incidents = Incidents(0, AGAIN_MS)
    [first] = incidents.look(found(problem()), 0)
    assert incidents.look({}, 1) == []
    assert incidents.look(found(problem()), AGAIN_MS - 1) == []
    assert incidents.look({}, 2 * AGAIN_MS - 1) == []
    [second] = incidents.look(found(problem()), 2 * AGAIN_MS)
    assert second.id != first.id


def test_a_problem_that_is_old_is_the_same_after_a_moment_without_it() -> None:
    incidents = Incidents(0, AGAIN_MS)
    for now_ms in (0, 2 * AGAIN_MS):
        incidents.look(found(problem()), now_ms)
    assert incidents.look({}, 2 * AGAIN_MS + 1) == []
    assert incidents.look(found(problem()), 2 * AGAIN_MS + 2) == []


def test_groups_and_titles_tell_problems_apart() -> None:
    every = found(problem(), problem("billing"), problem(title="storm"), problem("", "cluster away"))
    assert len({one.id for one in Incidents(0, 0).look(every, 0)}) == 4


def test_a_problem_that_a_watcher_before_told_late_was_there_until_then() -> None:
    late_ms = AGAIN_MS + 1
    incidents = Incidents(late_ms, AGAIN_MS)
    assert incidents.look(found(problem()), 0) == []
    event = incidents.look(found(problem()), late_ms)
    incidents = Incidents(0, AGAIN_MS)
    incidents.restore(event)
    assert incidents.look({}, late_ms + 1) == []
    assert incidents.look(found(problem()), late_ms + 2) == []


def test_what_a_watcher_before_has_told_is_not_told_again() -> None:
    problems = found(problem(), problem("a-b", "group without members"), problem("", "cluster away"))
    events = Incidents(0, AGAIN_MS).look(problems, 1_790_000_000_000)
    incidents = Incidents(0, AGAIN_MS)
    incidents.restore([*events, Event("odd", "orders", 1, EventKind.INCIDENT, "of another version")])
    assert incidents.look(problems, 1_790_000_000_001) == []
    assert incidents.look({}, 1_790_000_000_001 + AGAIN_MS) == []
    assert len(incidents.look(problems, 1_790_000_000_002 + AGAIN_MS)) == 3

"""A node's reports of shards that it cannot serve: soon, not too often, and with care when it is well
again."""

from __future__ import annotations

import itertools

from ringleader.coordinator.cluster.ability import (
    AGAIN_MAX_S,
    AGAIN_S,
    CALM_MAX_S,
    CALM_S,
    REFUSED_S,
    Ability,
)

NONE: frozenset[int] = frozenset()
MINE = frozenset({1, 2, 3})
AGAIN = "it can serve all partitions again"


def look(
    ability: Ability,
    now_s: float,
    *,
    silent: frozenset[int] = NONE,
    lost: frozenset[int] = NONE,
    late: frozenset[int] = NONE,
    wanted: frozenset[int] = MINE,
) -> str:
    """The reason for a join, with which the node reports its state."""
    reason = ability.look(now_s, wanted, wanted - late, silent | lost, lost, late)
    if reason:
        ability.report()
    return reason


def test_a_short_silence_is_told_when_somebody_asks_and_is_no_reason_to_say_so() -> None:
    ability = Ability()
    assert look(ability, 0.0, silent=frozenset({1, 9})) == ""
    assert (ability.unable, ability.wary) == (frozenset({1, 9}), False)
    assert look(ability, 1.0) == ""
    assert ability.unable == NONE


def test_a_silence_that_the_controller_was_told_of_is_said_to_be_over() -> None:
    """However short: nothing is given to a node that reported one."""
    ability = Ability()
    look(ability, 0.0, silent=frozenset({9}))
    assert ability.report() == (frozenset({9}), False)
    assert look(ability, 1.0, silent=frozenset({9})) == ""
    assert look(ability, 2.0) == AGAIN
    assert look(ability, 3.0) == ""


def test_all_is_well_only_when_no_broker_is_silent() -> None:
    ability = Ability()
    assert look(ability, 0.0, lost=frozenset({1}))
    assert look(ability, CALM_S, silent=frozenset({1})) == ""
    assert ability.report() == (frozenset({1}), False)
    assert look(ability, CALM_S + 1) == AGAIN
    assert ability.report() == (NONE, False)


def test_what_is_lost_is_said_at_once_and_again_less_and_less_often() -> None:
    ability = Ability()
    reported_s = [now_s for now_s in range(150) if look(ability, float(now_s), lost=frozenset({1, 9}))]
    gaps = [after - before for before, after in itertools.pairwise(reported_s)]
    assert (reported_s[0], gaps) == (0, [AGAIN_S, 10, 20, 40, AGAIN_MAX_S])
    assert look(ability, 150.0, lost=frozenset({1, 2})) == "it cannot serve 2 of its partitions"


def test_what_others_own_is_no_reason_to_say_anything() -> None:
    ability = Ability()
    assert look(ability, 0.0, lost=frozenset({9})) == ""
    assert (ability.unable, ability.wary) == (frozenset({9}), True)


def test_a_node_that_was_in_trouble_is_wary_for_longer_each_time() -> None:
    ability, now_s, waits = Ability(), 0.0, []
    for _ in range(7):
        assert look(ability, now_s, lost=frozenset({1}))
        began_s = now_s
        text = ""
        while not text:
            assert ability.wary
            now_s += 1.0
            text = look(ability, now_s)
        assert (text, ability.wary) == (AGAIN, False)
        waits.append(now_s - began_s)
    assert waits == [CALM_S, 20, 40, 80, 160, CALM_MAX_S, CALM_MAX_S]
    now_s += 2 * CALM_MAX_S
    assert look(ability, now_s, lost=frozenset({1}))
    assert look(ability, now_s + CALM_S - 1) == ""
    assert look(ability, now_s + CALM_S) == AGAIN


def test_what_could_not_be_taken_over_is_not_wanted_for_longer_each_time() -> None:
    ability, now_s = Ability(), 0.0
    for wait_s in (REFUSED_S, 2 * REFUSED_S):
        assert look(ability, now_s, late=frozenset({2})) == "it cannot serve 1 of its partitions"
        without = MINE - {2}
        assert look(ability, now_s + wait_s - 1, wanted=without) == ""
        assert ability.unable == {2}
        now_s += wait_s
        assert look(ability, now_s, wanted=without) == AGAIN
        assert ability.unable == NONE
    assert look(ability, now_s, late=frozenset({2}))
    look(ability, now_s + 1)  # it has it after all
    assert ability.unable == NONE


def test_what_is_lost_is_said_as_soon_as_at_first_once_all_was_well() -> None:
    ability = Ability()
    for now_s in range(30):
        look(ability, float(now_s), lost=frozenset({1}))
    look(ability, 30.0)
    reported_s = [now_s for now_s in range(31, 60) if look(ability, float(now_s), lost=frozenset({1}))]
    assert reported_s == [31, 31 + AGAIN_S, 31 + AGAIN_S + 10]


def test_a_partition_that_was_taken_over_after_all_is_refused_as_at_first() -> None:
    ability, now_s = Ability(), 0.0
    for wait_s in (REFUSED_S, 2 * REFUSED_S):
        look(ability, now_s, late=frozenset({2}))
        now_s += wait_s
    look(ability, now_s)  # it has it
    look(ability, now_s, late=frozenset({2}))
    without = MINE - {2}
    look(ability, now_s + REFUSED_S - 1, wanted=without)
    assert ability.unable == {2}
    look(ability, now_s + REFUSED_S, wanted=without)
    assert ability.unable == NONE


def test_trouble_counts_from_its_end_when_more_comes_soon() -> None:
    ability, long_s = Ability(), 3 * CALM_MAX_S
    for now_s in (0.0, long_s):
        look(ability, now_s, lost=frozenset({1}))
    again_s = long_s + CALM_S
    assert look(ability, again_s) == AGAIN
    look(ability, again_s + 1, lost=frozenset({1}))
    assert look(ability, again_s + 1 + 2 * CALM_S - 1) == ""
    assert look(ability, again_s + 1 + 2 * CALM_S) == AGAIN


def test_that_all_is_well_is_said_once() -> None:
    ability = Ability()
    look(ability, 0.0, silent=frozenset({1}))
    ability.report()
    assert [ability.look(now_s, MINE, MINE, NONE, NONE, NONE) for now_s in (1.0, 2.0)] == [AGAIN, ""]


def test_the_calm_begins_with_the_end_of_trouble_and_is_as_long_however_long_that_was() -> None:
    ability = Ability()
    for now_s in range(9):
        look(ability, float(now_s), lost=frozenset({1}))
    assert look(ability, 8 + CALM_S - 1) == ""
    assert ability.wary
    assert look(ability, 8 + CALM_S) == AGAIN

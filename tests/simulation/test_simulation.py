"""Random schedules: fresh seeds in every run.

A failing seed prints the command that runs it again: `python -m tests.simulation --seed N`.
"""

from __future__ import annotations

import secrets

import pytest

from tests.simulation.world import check_clocks, simulate
from tests.support.shares import share

pytestmark = [pytest.mark.draws, pytest.mark.share]

_SEEDS = share(10, whole=200)
_SEEDS_PER_TEST = 10


@pytest.mark.parametrize("part", range(_SEEDS // _SEEDS_PER_TEST))
def test_fresh_seeds_hold_all_invariants(part: int) -> None:
    steps = [simulate(secrets.randbits(48)).steps for _ in range(_SEEDS_PER_TEST)]
    assert min(steps) > 50


def test_everything_goes_wrong_now_and_then() -> None:
    worlds = [simulate(secrets.randbits(48)) for _ in range(30)]
    assert sum(one.sabotage.thrown for one in worlds) == sum(one.reported for one in worlds) > 0
    assert sum(len(one.full_spans) for one in worlds) > 0
    assert sum(one.lives for one in worlds) > 30
    assert {one.store.pipeline for one in worlds} == {1, 2, 5}


def test_a_run_is_repeated_byte_for_byte() -> None:
    first, second = simulate(7), simulate(7)
    assert first.trace.hexdigest() == second.trace.hexdigest()
    assert first.store.logs == second.store.logs
    assert first.trace.hexdigest() != simulate(8).trace.hexdigest()


def test_no_answer_depends_on_the_wall_clock() -> None:
    for _ in range(3):
        check_clocks(secrets.randbits(48))

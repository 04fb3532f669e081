"""Groups of the consumer protocol under random schedules: fresh seeds in every run.

A failing seed prints the command that runs it again: `python -m tests.simulation.consumer --seed N`.
"""

from __future__ import annotations

import secrets

import pytest

from tests.simulation.consumer.world import simulate
from tests.support.shares import share

pytestmark = [pytest.mark.draws, pytest.mark.share]

SEEDS = 6


@pytest.mark.parametrize("part", range(share(1, whole=4)))
def test_fresh_seeds_hold_all_invariants(part: int) -> None:
    for _ in range(SEEDS):
        simulate(secrets.randbits(48))


def test_a_seed_is_one_run() -> None:
    first, second = simulate(12), simulate(12)
    assert first.trace.hexdigest() == second.trace.hexdigest()
    assert first.counts == second.counts
    kinds = ["answers lost", "requests lost", "crashes", "deaths", "switched to the other protocol"]
    kinds += ["steps in the classic protocol", "steps in the consumer protocol"]
    assert min(first.counts[one] for one in kinds) > 0


def test_members_with_expressions_are_drawn() -> None:
    """A share of the worlds has them; the others are the runs that they were before."""
    found = simulate(13).counts
    assert min(found[one] for one in ("expressions asked for", "expressions answered", "rights changed")) > 0
    assert not any("expressions" in one for one in simulate(12).counts)

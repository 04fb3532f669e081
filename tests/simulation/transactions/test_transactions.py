"""Nodes with transactions over simulated brokers, random schedules: fresh seeds in every run.

A failing seed prints the command that runs it again: `python -m tests.simulation.transactions --seed N`.
"""

from __future__ import annotations

import secrets
from collections import Counter

import pytest

from tests.simulation.transactions.world import simulate
from tests.support.shares import share

pytestmark = [pytest.mark.draws, pytest.mark.share]

_SEEDS_PER_TEST = 6
_HAPPENS = (
    "acquired",
    "markers",
    "committed",
    "aborted",
    "commits of transactions",
    "in transactions",
    "unstable",
    "read",
    "changes",
    "rebuilt",
    "passed",
)


@pytest.mark.parametrize("part", range(share(1, whole=4)))
def test_fresh_seeds_hold_all_invariants(part: int) -> None:
    counts: Counter[str] = Counter()
    for _ in range(_SEEDS_PER_TEST):
        counts += simulate(secrets.randbits(48)).checks.counts
    for what in _HAPPENS:
        assert counts[what], f"{what} never happened"


def test_nothing_is_refused_where_nothing_goes_wrong() -> None:
    counts = simulate(secrets.randbits(48), quiet=True).checks.counts
    assert counts["commits of transactions"]
    assert not counts["timed out"]


def test_a_run_is_repeated_byte_for_byte() -> None:
    first, second = simulate(11), simulate(11)
    assert first.trace.hexdigest() == second.trace.hexdigest()
    assert first.steps == second.steps
    assert first.checks.counts["markers"]
    assert first.trace.hexdigest() != simulate(12).trace.hexdigest()

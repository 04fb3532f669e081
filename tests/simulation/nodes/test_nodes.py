"""Nodes over a simulated cluster, random schedules: fresh seeds in every run.

A failing seed prints the command that runs it again: `python -m tests.simulation.nodes --seed N`.
"""

from __future__ import annotations

import secrets
from collections import Counter

import pytest

from tests.simulation.nodes.world import simulate
from tests.support.shares import share

pytestmark = [pytest.mark.draws, pytest.mark.share]

_SEEDS_PER_TEST = 15
_HAPPENS = (
    "acquired",
    "released",
    "kills",
    "fenced",
    "lost FENCED",
    "committed",
    "read",
    "rebuilt",
    "beats",
    "grown",
)


def seeds(*, calm: bool) -> None:
    counts: Counter[str] = Counter()
    for _ in range(_SEEDS_PER_TEST):
        counts += simulate(secrets.randbits(48), calm=calm).checks.counts
    for what in _HAPPENS:
        assert counts[what], f"{what} never happened"


@pytest.mark.parametrize("part", range(share(1, whole=8)))
def test_fresh_seeds_hold_all_invariants(part: int) -> None:
    seeds(calm=False)


@pytest.mark.parametrize("part", range(share(1, whole=4)))
def test_no_group_notices_what_happens_to_nodes_only(part: int) -> None:
    seeds(calm=True)


def test_a_run_is_repeated_byte_for_byte() -> None:
    first, second = simulate(7), simulate(7)
    assert first.trace.hexdigest() == second.trace.hexdigest()
    assert [one.batches for one in first.kafka.partitions] != []
    assert first.trace.hexdigest() != simulate(8).trace.hexdigest()

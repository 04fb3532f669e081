"""The whole daemon and real clients in one world, random schedules: fresh seeds in every run.

A failing seed prints the command that runs it again. Each test is a process of its own: a run changes what
all modules take for the time, and the order of sets is a part of it.
"""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import subprocess
import sys

import pytest

from tests.simulation.daemon.plan import Event, draw, from_json, shrunk, to_json
from tests.support.shares import share

_SEEDS_PER_TEST = 7
_TIMEOUT_S = 900


def simulation(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.simulation.daemon", *arguments]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S)


@pytest.mark.draws
@pytest.mark.share
@pytest.mark.parametrize("part", range(share(1, whole=2)))
def test_fresh_seeds_hold_all_invariants(part: int) -> None:
    done = simulation("--count", str(_SEEDS_PER_TEST))
    assert done.returncode == 0, done.stdout + done.stderr
    for what in ("assigned", "commits", "fetched", "records", "produced"):
        assert f"'{what}'" in done.stdout, f"{what} never happened"


@pytest.mark.draws
def test_a_run_is_repeated_byte_for_byte() -> None:
    seed = str(secrets.randbits(48))
    traces = []
    for _ in range(2):
        done = simulation("--seed", seed)
        assert done.returncode == 0, done.stdout + done.stderr
        found = re.search(r"trace (\w{64})", done.stdout)
        assert found is not None, done.stdout
        traces.append(found[1])
    assert traces[0] == traces[1], f"seed {seed} is two runs"


def test_a_plan_is_written_down_and_read_again() -> None:
    plan = draw(7)
    assert from_json(to_json(plan)) == plan
    assert json.loads(to_json([Event(5, "restart")])) == [{"at_ms": 5, "do": "restart"}]
    assert draw(8) != plan


def test_a_failing_plan_becomes_as_short_as_it_can_be() -> None:
    rng = random.Random(1)
    for seed in range(50):
        plan = draw(seed)
        needed = set(rng.sample(range(len(plan)), 3))
        kept = [plan[at] for at in sorted(needed)]
        runs = 0

        def fails(shorter: list[Event], kept: list[Event] = kept) -> bool:
            nonlocal runs
            runs += 1
            return all(one in shorter for one in kept)

        assert shrunk(plan, fails) == kept
        assert runs < 120

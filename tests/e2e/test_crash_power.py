"""Acknowledgements wait for the sync: what was not synced is dropped, as when the machine loses power.

SIGKILL alone cannot show it, because the page cache survives a killed process. These tests need a C compiler
(for tests/support/undo_unsynced.c) and fail with a text that says so where there is none.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.committers import Committer, commit_until_cut_off, committed
from tests.support.cut_lab import cut_often
from tests.support.daemon import Daemon
from tests.support.powercut import cut_power, watching
from tests.support.shares import share

TOPIC = "orders"
COMMITTERS = 32
# A page for each commit: the WAL is folded into the main file, and written from its start again, under way.
METADATA = "m" * 3_500
COMMITS_BEFORE_CUT = 1_200
CUTS = 3


async def lost_commits(directory: Path, sync: str) -> int:
    """Cuts the power `CUTS` times while all commit; returns how many acknowledged commits that lost."""
    state, journal = directory / "data", directory / "journal"
    journal.mkdir()
    daemon = Daemon(
        directory,
        topics=[f"{TOPIC}:{COMMITTERS}"],
        options=["--storage-sync", sync],
        environ=watching(state, journal),
    )
    committers = [
        Committer(f"group-{number}", number, TOPIC, metadata=METADATA) for number in range(COMMITTERS)
    ]
    lost = 0
    try:
        for _ in range(CUTS):
            daemon.start()
            cut = asyncio.Event()
            running = asyncio.create_task(
                commit_until_cut_off(daemon.bootstrap, committers, COMMITS_BEFORE_CUT, cut)
            )
            await cut.wait()
            daemon.kill()
            await running
            cut_power(state, journal)
            daemon.start()
            for one, found in zip(committers, committed(daemon.bootstrap, committers), strict=True):
                assert found <= one.attempted
                lost += found < one.acknowledged
            daemon.kill()
    finally:
        daemon.kill()
    return lost


async def test_no_acknowledged_commit_is_lost_in_a_power_cut(tmp_path: Path) -> None:
    assert await lost_commits(tmp_path, "full") == 0


async def test_without_syncing_the_same_power_cut_loses_commits(tmp_path: Path) -> None:
    assert await lost_commits(tmp_path, "off") > 0


@pytest.mark.share
def test_the_store_keeps_every_transaction_whichever_moment_is_its_last(tmp_path: Path, seed: int) -> None:
    rounds = share(40, whole=100)
    found = cut_often("tests.e2e.power_store:Store", tmp_path / "lab", seed, rounds=rounds, fresh=True)
    assert found["undone"] > rounds


def test_a_new_store_keeps_its_first_transaction_whichever_moment_is_its_last(
    tmp_path: Path, seed: int
) -> None:
    found = cut_often("tests.e2e.power_store:Beginning", tmp_path / "lab", seed, every=True, fresh=True)
    assert found["undone"]


def test_without_syncing_the_same_cuts_lose_transactions(tmp_path: Path, seed: int) -> None:
    with pytest.raises(AssertionError, match=r"transactions were acknowledged|is gone|is damaged"):
        cut_often("tests.e2e.power_store:WithoutSync", tmp_path / "lab", seed, every=True, fresh=True)


@pytest.mark.share
def test_a_first_start_may_be_cut_at_any_moment(tmp_path: Path, seed: int) -> None:
    rounds = share(24, whole=60)
    found = cut_often("tests.e2e.power_node:FirstStart", tmp_path / "lab", seed, rounds=rounds, fresh=True)
    assert found["undone"] > rounds


@pytest.mark.share
def test_acknowledged_records_outlive_cuts_at_any_moment(tmp_path: Path, seed: int) -> None:
    rounds = share(10, whole=25)
    found = cut_often("tests.e2e.power_node:Everything", tmp_path / "lab", seed, rounds=rounds)
    assert found["undone"] > 4 * rounds


@pytest.mark.share
def test_a_young_node_keeps_what_it_acknowledged(tmp_path: Path, seed: int) -> None:
    rounds = share(6, whole=15)
    found = cut_often("tests.e2e.power_node:Everything", tmp_path / "lab", seed, rounds=rounds, fresh=True)
    assert found["undone"] > 6 * rounds

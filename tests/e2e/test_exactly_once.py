"""Workers that read, write and commit in one transaction are killed and frozen: every copy is there once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.transfers import Workers, copied, fill, written_through

COUNT, DEEDS = 1_500, 4


@pytest.mark.timeout(300)
def test_every_copy_is_there_once_whatever_happens_to_the_workers(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    options = ["--group-initial-rebalance-delay-ms", "0", "--group-min-session-timeout-ms", "100"]
    with Daemon(tmp_path, options=options) as daemon:
        asyncio.run(fill(daemon.bootstrap, COUNT))
        with Workers(daemon.bootstrap, "classic", chance) as workers:
            deeds = [workers.one_deed() for _ in range(DEEDS)]
            missing, twice = asyncio.run(copied(daemon.bootstrap, COUNT))
    assert (missing, twice) == ([], []), deeds


@pytest.mark.timeout(120)
def test_a_producer_writes_each_record_once_through_a_crash_of_the_daemon(tmp_path: Path) -> None:
    with Daemon(tmp_path, topics=["in:4"]) as daemon:

        def crash() -> None:
            daemon.kill()
            daemon.start()

        asyncio.run(written_through(daemon.bootstrap, 2_000, crash))

"""Workers that read, write and commit in one transaction are killed and frozen: every copy is there once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.transfers import Workers, copied, fill

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

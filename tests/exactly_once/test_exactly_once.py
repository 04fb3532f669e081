"""Workers that read, write and commit in one transaction are killed and frozen, as is the daemon: every copy
is there once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ringleader import Producer
from ringleader.testing.coordinator import Coordinator
from tests.exactly_once.run import daemon, one_run
from tests.exactly_once.workers import copied, fill
from tests.support.daemon import Daemon
from tests.support.written_through import written_through


@pytest.mark.timeout(300)
def test_every_copy_is_there_once_whatever_happens_to_the_workers(tmp_path: Path, seed: int) -> None:
    with daemon(tmp_path) as servers:
        outcome = one_run(servers, seed)
    assert outcome.good, outcome


async def test_the_judge_sees_what_is_lost_and_doubled() -> None:
    with Coordinator() as coordinator:
        await fill(coordinator.bootstrap, "r", 10)
        async with Producer(coordinator.bootstrap) as producer:
            for number in (0, 1, 2, 2, 3, 4, 6, 7, 8, 9):
                await producer.send("r-out", b"%d" % number)
        assert await copied(coordinator.bootstrap, "r", 10, patience_s=1) == ([5], [2])


@pytest.mark.timeout(120)
def test_a_producer_writes_each_record_once_through_a_crash_of_the_daemon(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:

        def crash() -> None:
            daemon.kill()
            daemon.start()

        asyncio.run(written_through(daemon.bootstrap, 2_000, crash))

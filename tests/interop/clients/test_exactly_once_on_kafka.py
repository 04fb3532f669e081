"""Workers that read, write and commit in one transaction on an Apache Kafka broker, killed and frozen: every
copy is there once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.interop.kafka import KafkaBroker
from tests.support.transfers import Workers, copied, fill, written_through

COUNT, DEEDS = 3_000, 6


@pytest.mark.timeout(400)
def test_every_copy_is_there_once_whatever_happens_to_the_workers(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with KafkaBroker(tmp_path) as broker:
        asyncio.run(fill(broker.bootstrap, COUNT))
        with Workers(broker.bootstrap, "classic", chance) as workers:
            deeds = [workers.one_deed() for _ in range(DEEDS)]
            missing, twice = asyncio.run(copied(broker.bootstrap, COUNT))
    assert (missing, twice) == ([], []), deeds


@pytest.mark.timeout(200)
def test_a_producer_writes_each_record_once_through_a_crash_of_the_broker(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path) as broker:

        def crash() -> None:
            broker.kill()
            broker.start()

        asyncio.run(fill(broker.bootstrap, 0))
        asyncio.run(written_through(broker.bootstrap, 4_000, crash))

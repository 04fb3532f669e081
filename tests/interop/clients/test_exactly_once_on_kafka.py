"""Workers that read, write and commit in one transaction on an Apache Kafka broker are killed and frozen, as
is the broker: every copy is there once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.exactly_once.run import kafka, one_run
from tests.interop.kafka import KafkaBroker
from tests.support.written_through import written_through


@pytest.mark.timeout(400)
def test_every_copy_is_there_once_whatever_happens_to_the_workers(tmp_path: Path, seed: int) -> None:
    with kafka(tmp_path) as servers:
        outcome = one_run(servers, seed, records=2_000, deeds=6)
    assert outcome.good, outcome


@pytest.mark.timeout(200)
def test_a_producer_writes_each_record_once_through_a_crash_of_the_broker(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path) as broker:

        def crash() -> None:
            broker.kill()
            broker.start()

        asyncio.run(written_through(broker.bootstrap, 4_000, crash))

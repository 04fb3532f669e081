"""How much memory a consumer takes, measured at its process."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import pytest

from ringleader import PartitionConsumer
from ringleader.clients.fetch.model import Batch
from ringleader.protocol.records import Compression, Record, build_batch, parse_header
from ringleader.testing.coordinator import Coordinator

MIB = 2**20
PATIENCE_S = 30.0
PARTITIONS = 100
RECORDS = 5_000
"""In each batch: 2 MB, of which LZ4 makes 0.6."""


def test_memory_is_bounded_by_the_buffer_whatever_the_partitions_and_the_compression() -> None:
    """The buffer, one fetch, one inflated batch, and what the application has in hand; 240 MiB when each
    partition kept a decoded batch."""
    records = [Record(i, 1_000, b"k", os.urandom(100) * 4) for i in range(RECORDS)]
    batch = build_batch(records, compression=Compression.LZ4)
    with Coordinator(topics={"t": PARTITIONS}) as coordinator:
        for partition in range(PARTITIONS):
            coordinator.run(coordinator.node.topics.append("t", partition, batch))
        command = [sys.executable, "-m", "tests.support.memory_reader", coordinator.bootstrap, "t"]
        command += [str(4 * MIB), str(PARTITIONS * RECORDS // 4)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    assert int(done.stdout) < 48 * MIB


@pytest.mark.parametrize("look", [True, False])
@pytest.mark.parametrize("kind", ["plain", "compressed", "with holes"])
async def test_a_record_that_is_kept_does_not_keep_the_answer_that_it_came_in(
    kind: str, look: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Compaction leaves holes; no producer does.
    monkeypatch.setattr("ringleader.coordinator.topics.partition.check_batch", parse_header)
    answers, count = 20, 1_000
    codec = Compression.LZ4 if kind == "compressed" else Compression.NONE
    with Coordinator(topics={"t": 1}) as coordinator:
        for answer in range(answers):
            records = [
                Record(answer * count + i, 1_000, b"k", b"%d" % i * 100)
                for i in range(count)
                if kind != "with holes" or i % 3 == 0
            ]
            coordinator.run(coordinator.node.topics.append("t", 0, build_batch(records, compression=codec)))
        options = {"auto_offset_reset": "earliest", "max_partition_fetch_bytes": 1, "buffer_max_bytes": 1}
        async with PartitionConsumer(coordinator.bootstrap, [("t", 0)], **options) as one:  # type: ignore[arg-type]
            kept: list[Batch] = []
            tracemalloc.start()
            try:
                for answer in range(answers):
                    one.seek(("t", 0), answer * count)
                    kept.append(await one_record(one))
                    if look:
                        assert kept[-1].values == [b"0" * 100]
                one.seek(("t", 0), answers * count)
                for _ in range(2):
                    assert await one.getmany(timeout_s=0.01) == []
                held = tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
            assert [batch.record.offset for batch in kept] == [i * count for i in range(answers)]
            assert held < 2 * MIB


async def one_record(one: PartitionConsumer) -> Batch:
    batch = await one.getone(PATIENCE_S)
    assert batch is not None
    return batch

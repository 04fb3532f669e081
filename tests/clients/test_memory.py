"""How much memory a consumer takes, measured at its process."""

from __future__ import annotations

import os
import subprocess
import sys

from ringleader.protocol.records import Compression, Record, build_batch
from ringleader.testing.coordinator import Coordinator

MIB = 2**20
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

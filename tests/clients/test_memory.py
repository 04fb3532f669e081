"""How much memory a consumer takes, measured at its process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tracemalloc
from types import ModuleType
from typing import Any

import pytest

from ringleader import PartitionConsumer
from ringleader.clients.fetch.fetcher import _keep_records
from ringleader.clients.fetch.model import Batch
from ringleader.protocol import native
from ringleader.protocol.messages import (
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
)
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


def test_records_hold_no_answer_of_which_they_are_a_small_part(
    compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = memoryview(bytearray(1_000_000))
    few, many, none = room[:100_000], room[100_000:900_000], None

    def kept(*records: Any) -> tuple[bool, list[Any]]:
        parts = [FetchResponsePartitionData(partition_index=0, records=one) for one in records]
        response = FetchResponse(responses=[FetchResponseFetchableTopicResponse("t", partitions=parts)])
        return _keep_records(response), [part.records for part in parts]

    monkeypatch.setattr(native, "compiled", compiled)
    assert kept(few, many, none) == (True, [few, many, None])
    assert [type(one) for one in kept(few, many, none)[1]] == [bytes, memoryview, type(None)]
    assert kept(few) == (False, [few])
    monkeypatch.setattr(native, "compiled", None)
    assert [type(one) for one in kept(many)[1]] == [bytes], "Python takes them apart as bytes"


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
async def test_batches_that_are_kept_are_not_written_over_by_the_next_answers(
    codec: Compression, seed: int
) -> None:
    draw, count = random.Random(seed), 200
    values = [[draw.randbytes(1_000) for _ in range(count)] for _ in range(40)]
    with Coordinator(topics={"t": 2}) as coordinator:
        for number, some in enumerate(values):
            records = [Record(i, 1_000, b"k", value) for i, value in enumerate(some)]
            batch = build_batch(records, compression=codec)
            coordinator.run(coordinator.node.topics.append("t", number % 2, batch))
        async with PartitionConsumer(
            coordinator.bootstrap,
            [("t", 0), ("t", 1)],
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=500_000,
            max_poll_records=count // 2,
        ) as one:
            kept: list[Batch] = []
            open_looks = []
            while len(kept) < 2 * len(values):
                kept += await one.getmany(timeout_s=PATIENCE_S)
                open_looks.append((kept[-1], iter(kept[-1])))
                assert next(open_looks[-1][1])
        found: dict[int, list[bytes]] = {0: [], 1: []}
        for each in kept:
            found[each.partition] += [record.value for record in each]
        wanted = {number: [value for some in values[number::2] for value in some] for number in (0, 1)}
        assert found == wanted
        for each, look in open_looks:
            assert [record.value for record in look] == each.values[1:]


async def one_record(one: PartitionConsumer) -> Batch:
    batch = await one.getone(PATIENCE_S)
    assert batch is not None
    return batch

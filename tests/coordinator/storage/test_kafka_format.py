"""The rows that the Kafka store reads back from the bytes of a partition; no broker is needed."""

from __future__ import annotations

import pytest

from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.kafka import Claim
from ringleader.coordinator.storage.kafka.format import CLAIM_KEY, REPLAY_CHUNK_ROWS, LogRows
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import Compression, Record, build_batch, build_pairs, stamp

OWNER = Claim(7, "node-7", 9092, "1.2", 1_700_000_000_000)
Pairs = list[tuple[bytes, bytes | None]]


def log(*batches: tuple[int, int, Pairs]) -> bytes:
    """The bytes of batches: producer id, epoch, records."""
    out, offset = b"", 0
    for producer_id, epoch, pairs in batches:
        batch = build_pairs(pairs, 5, producer_id=producer_id, producer_epoch=epoch, base_sequence=0)
        out += stamp(batch, offset, 3)
        offset += len(pairs)
    return out


def read(data: bytes, until: int) -> tuple[LogRows, list[tuple[int, int, bytes, bytes | None]]]:
    rows = LogRows("partition 0", until)
    return rows, [row for chunk in rows.read(data) for row in chunk]


def test_rows_before_the_claim_are_read_and_claims_are_none() -> None:
    claim: Pairs = [(CLAIM_KEY, OWNER.encode())]
    data = log((1, 0, claim), (1, 0, [(b"a", b"1"), (b"b", None)]), (1, 1, claim), (1, 1, [(b"c", b"2")]))
    rows, found = read(data, 3)
    assert found == [(1, 0, b"a", b"1"), (2, 0, b"b", None)]
    assert rows.ended
    assert rows.claim == OWNER


def test_what_comes_in_pieces_is_read_once() -> None:
    each: list[tuple[int, int, Pairs]] = [(1, 0, [(b"%d" % number, b"v")]) for number in range(10)]
    data = log(*each)
    size = len(data) // 10
    rows = LogRows("partition 0", 8)
    found = []
    for begin, end in ((0, 3), (2, 7), (7, 7), (7, 10)):
        assert not rows.ended
        found += [row for chunk in rows.read(data[begin * size : end * size + 5]) for row in chunk]
    assert [position for position, *_ in found] == list(range(8))
    assert rows.ended


def test_an_older_epoch_after_a_newer_one_is_left_out() -> None:
    data = log(
        (1, 4, [(b"a", b"old")]),
        (1, 5, [(CLAIM_KEY, OWNER.encode())]),
        (1, 4, [(b"a", b"zombie"), (b"b", b"zombie")]),
        (2, 0, [(b"a", b"of another producer id")]),
        (1, 5, [(b"c", b"new")]),
        (-1, -1, [(b"d", b"of no producer")]),
    )
    rows, found = read(data, 100)
    assert [(key, value) for _, _, key, value in found] == [
        (b"a", b"old"),
        (b"a", b"of another producer id"),
        (b"c", b"new"),
    ]
    assert rows.stale == 3
    assert not rows.ended


def test_markers_are_no_rows() -> None:
    record = Record(0, 5, b"\0\0\0\1", b"\0\0\0\0\0\0")
    marker = build_batch([record], producer_id=9, producer_epoch=3, control=True)
    _, found = read(marker + stamp(log((1, 0, [(b"a", b"1")])), 1, 0), 2)
    assert found == [(1, 0, b"a", b"1")]


def test_chunks_are_bounded_by_whole_batches() -> None:
    pairs: Pairs = [(b"%d" % number, b"v") for number in range(REPLAY_CHUNK_ROWS - 1)]
    chunks = list(LogRows("partition 0", 10**6).read(log((1, 0, pairs), (1, 0, pairs), (1, 0, pairs))))
    assert [len(chunk) for chunk in chunks] == [2 * len(pairs), len(pairs)]


def test_a_newer_format_is_refused_and_says_what_to_run() -> None:
    newer = CLAIM_KEY[:2] + (2).to_bytes(2, "big")
    with pytest.raises(StorageError, match=r"version 1\.2 wrote partition 0 in format 2") as refused:
        read(log((1, 0, [(newer, OWNER.encode())])), 5)
    assert refused.value.failure is Failure.FORMAT


def test_damage_is_found() -> None:
    data = bytearray(log((1, 0, [(b"key", b"value")])))
    data[-3] ^= 1
    with pytest.raises(MalformedError, match="checksum"):
        read(bytes(data), 5)
    with pytest.raises(MalformedError, match="Claim"):
        read(log((1, 0, [(CLAIM_KEY, b"{}")])), 5)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_pairs_are_the_same_batch_as_records(codec: Compression) -> None:
    numbers = range(900)
    pairs: Pairs = [(b"k" * (n % 700), None if n % 5 == 0 else b"v" * n) for n in numbers]
    records = [Record(n, 123, key, value) for n, (key, value) in enumerate(pairs)]
    ours = build_pairs(pairs, 123, compression=codec, producer_id=5, producer_epoch=2, base_sequence=77)
    assert ours == build_batch(records, compression=codec, producer_id=5, producer_epoch=2, base_sequence=77)

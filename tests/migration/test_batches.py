"""The parts of a batch that go over: the payload as it is, of another producer, outside of any
transaction."""

from __future__ import annotations

import pytest

from ringleader.coordinator.topics.transactional import TransactionIndex, marker
from ringleader.migration.batches import Aborted, kept, of_producer
from ringleader.protocol.records import (
    BatchView,
    ChecksumError,
    Compression,
    Record,
    build_batch,
    check_batch,
    parse_header,
    stamp,
    stamp_append_time,
)

NOBODY = Aborted(TransactionIndex())
RECORDS = [Record(n, 1_000 + n, b"k%d" % n, b"v" * n, [("h", None), ("h", b"x")]) for n in range(5)]


def view(data: bytes, offset: int) -> BatchView:
    data = stamp(data, offset, 0)
    return BatchView(data, 0, parse_header(data))


@pytest.mark.parametrize("compression", list(Compression))
def test_the_payload_stays_and_the_producer_is_another(compression: Compression) -> None:
    data = build_batch(
        RECORDS, compression=compression, producer_id=7, producer_epoch=3, base_sequence=9, transactional=True
    )
    found = kept(view(data, 100), 0, NOBODY)
    assert found is not None
    assert (found.offset, found.records) == (100, 5)
    sent = of_producer(found.data, 8, 1, 2**31 + 4)
    header = check_batch(sent)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 1, 4)
    assert (header.base_offset, header.is_transactional, header.compression) == (0, False, compression)
    assert sent[61:] == data[61:]


def test_the_brokers_time_becomes_that_of_the_records() -> None:
    data = stamp_append_time(build_batch(RECORDS, compression=Compression.ZSTD), 5_555)
    found = kept(view(data, 10), 0, NOBODY)
    assert found is not None
    header = check_batch(of_producer(found.data, 1, 0, 0))
    assert (header.is_log_append_time, header.compression) == (False, Compression.ZSTD)
    records = list(BatchView(found.data, 0, parse_header(found.data)).records())
    assert {record.timestamp_ms for record in records} == {5_555}
    contents = [(record.key, record.value, list(record.headers)) for record in records]
    assert contents == [(record.key, record.value, list(record.headers)) for record in RECORDS]


def test_records_before_the_start_of_the_log_stay_away() -> None:
    found = kept(view(build_batch(RECORDS), 10), 13, NOBODY)
    assert found is not None
    assert (found.offset, found.records) == (13, 2)
    records = BatchView(found.data, 0, parse_header(found.data)).records()
    assert [record.key for record in records] == [b"k3", b"k4"]


def test_aborted_records_and_markers_stay_away() -> None:
    index = TransactionIndex()
    for producer, first, end, committed in [(7, 0, 20, False), (8, 30, 35, False), (7, 40, 50, True)]:
        index.add(producer, first)
        index.end(producer, end, committed=committed)
    aborted = Aborted(index)

    def goes(producer: int, offset: int, transactional: bool = True) -> bool:
        data = build_batch(
            RECORDS, producer_id=producer, producer_epoch=0, base_sequence=0, transactional=transactional
        )
        return kept(view(data, offset), 0, aborted) is not None

    assert [goes(7, at) for at in (0, 10, 21, 40, 45)] == [False, False, True, True, True]
    assert [goes(8, at) for at in (0, 30, 36)] == [True, False, True]
    assert goes(7, 10, transactional=False)
    assert kept(view(marker(7, 0, 1, committed=True), 50), 0, aborted) is None


def test_bytes_that_changed_are_noticed_before_they_get_a_new_checksum() -> None:
    data = bytearray(stamp(build_batch(RECORDS), 0, 0))
    data[-1] ^= 1
    with pytest.raises(ChecksumError):
        kept(BatchView(bytes(data), 0, parse_header(bytes(data))), 0, NOBODY)

"""One partition's buffer: what is skipped, what is cut, what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.clients.fetch.buffer import Chunk, end_of
from ringleader.clients.fetch.errors import CorruptRecordError
from ringleader.clients.fetch.feed import COMMITTED, Feed
from ringleader.clients.model import OffsetAndMetadata
from ringleader.clients.offsets.list_offsets import EARLIEST
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import Compression, Record, build_batch


def batch(first: int, count: int, **options: Any) -> bytes:
    records = [Record(first + i, 1_000, None, b"%d" % (first + i)) for i in range(count)]
    return build_batch(records, **options)


def placed(offset: int = 0) -> Feed:
    feed = Feed(("t", 0))
    feed.place_at(offset)
    feed.held = False
    return feed


def offer(feed: Feed, data: bytes, aborted: list[tuple[int, int]] | None = None) -> None:
    feed.add(Chunk(data, aborted), end_of(data))


def drain(feed: Feed) -> list[int]:
    """All offsets that can be had, batch by batch."""
    found: list[int] = []
    while (rows := feed.advance(True)) is not None:
        if (part := feed.take(rows, 3)) is not None:
            found += rows.offsets(part.first, part.length)
    return found


def test_batches_before_the_position_are_cut() -> None:
    feed = placed(15)
    offer(feed, batch(0, 10) + batch(10, 10) + batch(20, 5))
    assert feed.fetch_offset == 25
    assert drain(feed) == list(range(15, 25))
    assert (feed.position, feed.buffered_bytes, feed.ready) == (25, 0, False)


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    whole = batch(0, 5)
    for missing in (1, 30, len(whole) - 1):
        feed = placed()
        offer(feed, whole + batch(5, 5)[:-missing])
        assert feed.fetch_offset == 5
        assert drain(feed) == [0, 1, 2, 3, 4]
    assert end_of(whole[:-1]) is None


def test_aborted_transactions_and_markers_are_skipped() -> None:
    control = {"transactional": True, "control": True, "producer_epoch": 0, "base_sequence": -1}
    data = (
        batch(0, 3, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        + batch(3, 3, producer_id=8, producer_epoch=0, base_sequence=0, transactional=True)
        + batch(6, 1, producer_id=7, **control)
        + batch(7, 3)
        + batch(10, 1, producer_id=8, **control)
        + batch(11, 2, producer_id=7, producer_epoch=0, base_sequence=3, transactional=True)
        + batch(13, 1, producer_id=7, **control)
    )
    feed = placed()
    offer(feed, data, [(7, 0)])
    assert drain(feed) == [3, 4, 5, 7, 8, 9, 11, 12]
    assert feed.position == 14
    uncommitted = placed()
    offer(uncommitted, data, None)
    assert drain(uncommitted) == [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12]


def test_progress_goes_past_what_is_not_for_the_application() -> None:
    feed = placed()
    offer(feed, batch(0, 2))
    assert drain(feed) == [0, 1]
    control = {"transactional": True, "control": True, "producer_id": 7, "producer_epoch": 0}
    offer(feed, batch(2, 1, **control))
    # While the batch is in hand the marker behind it must not be committed.
    assert drain(feed) == []
    assert feed.position == 3
    assert feed.uncommitted == OffsetAndMetadata(0, "", -1)
    feed.processed()
    assert feed.uncommitted == OffsetAndMetadata(3, "", -1)
    offer(feed, batch(3, 1, **control))
    assert drain(feed) == []
    assert feed.uncommitted == OffsetAndMetadata(4, "", -1)
    feed.committed = 4
    assert feed.uncommitted is None


def test_a_checksum_that_is_wrong() -> None:
    bad = bytearray(batch(5, 5))
    bad[-1] ^= 1
    feed = placed()
    offer(feed, batch(0, 5) + bytes(bad) + batch(10, 5))
    assert drain(feed) == [0, 1, 2, 3, 4]
    assert isinstance(feed.error, CorruptRecordError)
    assert (feed.error.topic, feed.error.partition) == ("t", 0)
    assert (feed.error.offset, feed.error.next_offset) == (5, 10)
    assert "t-0 at offset 5: checksum" in str(feed.error)
    assert "seek to 10" in str(feed.error)
    assert feed.ready
    assert not feed.wants_more
    feed.place_at(feed.error.next_offset)
    assert feed.wants_more


def test_checksums_may_be_left_alone() -> None:
    bad = bytearray(batch(0, 1))
    bad[17] ^= 1
    feed = placed()
    offer(feed, bytes(bad))
    rows = feed.advance(False)
    assert rows is not None
    assert feed.take(rows, 5) == (rows, 0, 1)


def test_lengths_that_are_impossible() -> None:
    bad = bytearray(batch(0, 5))
    bad[8:12] = b"\0\0\0\1"
    feed = placed()
    offer(feed, bytes(bad))
    assert feed.stuck
    assert drain(feed) == []
    assert isinstance(feed.error, CorruptRecordError)
    assert feed.error.next_offset == 5


def test_compression_that_is_broken() -> None:
    bad = bytearray(batch(0, 50, compression=Compression.GZIP))
    bad[-6] ^= 0xFF
    feed = placed(3)
    offer(feed, bytes(bad))
    rows = feed.advance(False)
    assert rows is not None
    with pytest.raises(MalformedError, match=r"gzip|inflate|check") as found:
        feed.take(rows, 1)
    feed.unreadable(rows, found.value)
    assert isinstance(feed.error, CorruptRecordError)
    assert (feed.error.offset, feed.error.next_offset) == (3, 50)


def test_a_new_position_drops_everything() -> None:
    feed = placed()
    offer(feed, batch(0, 5) + batch(5, 5))
    rows = feed.advance(True)
    assert rows is not None
    feed.take(rows, 2)
    seat = feed.seat
    feed.refetch()
    assert (feed.position, feed.fetch_offset) == (2, 2)
    assert feed.uncommitted == OffsetAndMetadata(0, "", -1)
    assert feed.seat > seat
    assert not feed.ready
    feed.unplace(EARLIEST)
    assert (feed.position, feed.consumed) == (None, None)
    assert feed.wish == EARLIEST
    assert Feed(("t", 0)).wish == COMMITTED


def test_holes_of_compaction() -> None:
    thinned = build_batch([Record(2, 1, None, b"a"), Record(9, 1, None, b"b")])
    feed = placed(1)
    offer(feed, thinned)
    assert drain(feed) == [2, 9]
    assert feed.position == 10

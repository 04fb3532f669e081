"""One partition's buffer: what is skipped, what is cut, what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.clients.fetch.buffer import Chunk, end_of
from ringleader.clients.fetch.errors import CorruptRecordError
from ringleader.clients.fetch.partition_state import COMMITTED, PartitionState
from ringleader.clients.model import EARLIEST, OffsetAndMetadata
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import Compression, Record, build_batch


def batch(first: int, count: int, **options: Any) -> bytes:
    records = [Record(first + i, 1_000, None, b"%d" % (first + i)) for i in range(count)]
    return build_batch(records, **options)


def positioned(offset: int = 0) -> PartitionState:
    state = PartitionState(("t", 0))
    state.set_position(offset)
    state.suspended, state.begun = False, True
    return state


def offer(state: PartitionState, data: bytes, aborted: list[tuple[int, int]] | None = None) -> None:
    state.add(Chunk(data, aborted), end_of(data))


def drain(state: PartitionState) -> list[int]:
    """All offsets that can be had, batch by batch."""
    found: list[int] = []
    while (rows := state.advance(True)) is not None:
        if (part := state.take(rows, 3)) is not None:
            found += rows.offsets(part.first, part.length)
    return found


def test_batches_before_the_position_are_cut() -> None:
    state = positioned(15)
    offer(state, batch(0, 10) + batch(10, 10) + batch(20, 5))
    assert state.fetch_offset == 25
    assert drain(state) == list(range(15, 25))
    assert (state.position, state.buffered_bytes, state.ready) == (25, 0, False)


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    whole = batch(0, 5)
    for missing in (1, 30, len(whole) - 1):
        state = positioned()
        offer(state, whole + batch(5, 5)[:-missing])
        assert state.fetch_offset == 5
        assert drain(state) == [0, 1, 2, 3, 4]
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
    state = positioned()
    offer(state, data, [(7, 0)])
    assert drain(state) == [3, 4, 5, 7, 8, 9, 11, 12]
    assert state.position == 14
    uncommitted = positioned()
    offer(uncommitted, data, None)
    assert drain(uncommitted) == [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12]


def test_progress_goes_past_what_is_not_for_the_application() -> None:
    state = positioned()
    offer(state, batch(0, 2))
    assert drain(state) == [0, 1]
    control = {"transactional": True, "control": True, "producer_id": 7, "producer_epoch": 0}
    offer(state, batch(2, 1, **control))
    # While the batch is in hand the marker behind it must not be committed.
    assert drain(state) == []
    assert state.position == 3
    assert state.uncommitted == OffsetAndMetadata(0, "", -1)
    state.processed()
    assert state.uncommitted == OffsetAndMetadata(3, "", -1)
    offer(state, batch(3, 1, **control))
    assert drain(state) == []
    assert state.uncommitted == OffsetAndMetadata(4, "", -1)
    state.committed = OffsetAndMetadata(4)
    assert state.uncommitted is None


def test_a_checksum_that_is_wrong() -> None:
    bad = bytearray(batch(5, 5))
    bad[-1] ^= 1
    state = positioned()
    offer(state, batch(0, 5) + bytes(bad) + batch(10, 5))
    assert drain(state) == [0, 1, 2, 3, 4]
    assert isinstance(state.error, CorruptRecordError)
    assert (state.error.topic, state.error.partition) == ("t", 0)
    assert (state.error.offset, state.error.next_offset) == (5, 10)
    assert "t-0 at offset 5: checksum" in str(state.error)
    assert "seek to 10" in str(state.error)
    assert state.ready
    assert not state.wants_more
    state.set_position(state.error.next_offset)
    assert state.wants_more


def test_a_header_that_is_wrong_says_not_how_far_to_skip() -> None:
    bad = bytearray(batch(5, 5))
    bad[23:27] = (2**30).to_bytes(4, "big")  # the offset of its last record
    state = positioned()
    state.end_offset = 20
    offer(state, batch(0, 5) + bytes(bad))
    assert drain(state) == [0, 1, 2, 3, 4]
    assert isinstance(state.error, CorruptRecordError)
    assert (state.error.offset, state.error.next_offset) == (5, 20), "what comes later is not passed over"


def test_a_commit_has_the_leader_epoch_of_the_last_record_before_it() -> None:
    state = positioned()
    offer(state, batch(0, 2, leader_epoch=3) + batch(2, 2, leader_epoch=5))
    for epoch, offset in ((3, 2), (5, 4)):
        rows = state.advance(True)
        assert rows is not None
        state.take(rows, 10)
        state.processed()
        assert state.uncommitted == OffsetAndMetadata(offset, "", epoch)


def test_a_position_that_the_application_chooses_is_not_held_for_the_one_before() -> None:
    state = positioned()
    offer(state, batch(0, 5))
    state.held = True
    assert (state.ready, state.wants_more) == (False, False)
    state.set_position(3)
    assert state.wants_more
    offer(state, batch(0, 5))
    assert state.ready


def test_checksums_may_be_left_alone() -> None:
    bad = bytearray(batch(0, 1))
    bad[17] ^= 1
    state = positioned()
    offer(state, bytes(bad))
    rows = state.advance(False)
    assert rows is not None
    assert state.take(rows, 5) == (rows, 0, 1)


def test_lengths_that_are_impossible() -> None:
    bad = bytearray(batch(0, 5))
    bad[8:12] = b"\0\0\0\1"
    state = positioned()
    offer(state, bytes(bad))
    assert state.undecodable
    assert drain(state) == []
    assert isinstance(state.error, CorruptRecordError)
    assert state.error.next_offset == 5


def test_compression_that_is_broken() -> None:
    bad = bytearray(batch(0, 50, compression=Compression.GZIP))
    bad[-6] ^= 0xFF
    state = positioned(3)
    offer(state, bytes(bad))
    rows = state.advance(False)
    assert rows is not None
    with pytest.raises(MalformedError, match=r"gzip|inflate|check") as found:
        state.take(rows, 1)
    state.unreadable(rows, found.value)
    assert isinstance(state.error, CorruptRecordError)
    assert (state.error.offset, state.error.next_offset) == (3, 50)


@pytest.mark.parametrize(
    ("begun", "deleted", "committed", "due"),
    [
        (True, False, None, True),
        (False, False, None, False),
        (True, True, None, False),
        (True, False, 5, False),
    ],
)
def test_nothing_is_committed_before_its_reading_began_or_when_its_topic_is_gone(
    begun: bool, deleted: bool, committed: int | None, due: bool
) -> None:
    state = positioned(5)
    state.begun, state.topic_unknown = begun, deleted
    state.committed = None if committed is None else OffsetAndMetadata(committed)
    assert state.uncommitted == (OffsetAndMetadata(5) if due else None)


def test_a_new_position_drops_everything() -> None:
    state = positioned()
    offer(state, batch(0, 5) + batch(5, 5))
    rows = state.advance(True)
    assert rows is not None
    state.take(rows, 2)
    position_id = state.position_id
    state.refetch()
    assert (state.position, state.fetch_offset) == (2, 2)
    assert state.uncommitted == OffsetAndMetadata(0, "", -1)
    assert state.position_id > position_id
    assert not state.ready
    state.reset_position(EARLIEST)
    assert (state.position, state.consumed) == (None, None)
    assert state.reset_to == EARLIEST
    assert PartitionState(("t", 0)).reset_to == COMMITTED


def test_holes_of_compaction() -> None:
    thinned = build_batch([Record(2, 1, None, b"a"), Record(9, 1, None, b"b")])
    state = positioned(1)
    offer(state, thinned)
    assert drain(state) == [2, 9]
    assert state.position == 10


def test_a_commit_of_less_than_is_processed_turns_nothing_back() -> None:
    state = positioned()
    offer(state, batch(0, 3) + batch(3, 3))
    assert state.advance(True) is not None
    drain(state)
    state.processed()
    offer(state, batch(6, 3))
    drain(state)
    state.processed_to(OffsetAndMetadata(2))
    assert state.uncommitted == OffsetAndMetadata(6, "", -1)
    state.processed_to(OffsetAndMetadata(8))
    assert state.uncommitted == OffsetAndMetadata(8)


def test_a_record_that_was_not_fetched_is_not_passed_over_within_what_was() -> None:
    state = positioned()
    offer(state, batch(0, 3))
    assert not state.pass_over(5)
    assert state.position == 0
    assert state.pass_over(2)
    assert drain(state) == [2]

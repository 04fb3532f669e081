"""Idempotent producers: duplicates, gaps, epochs, the wrap of sequence numbers, taking back, snapshots."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.topics import producers as room
from ringleader.coordinator.topics.producers import ProducerCount, Producers
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import BatchHeader, parse_header
from tests.support.topiclog import produced

LAST = 2**31 - 1


def header(sequence: int, count: int = 1, epoch: int = 0, producer: int = 7) -> BatchHeader:
    return parse_header(produced(producer, sequence, count, epoch))


def refused(producers: Producers, found: BatchHeader) -> int:
    with pytest.raises(KafkaError) as error:
        producers.check(found)
    return error.value.code


def fed(*headers: BatchHeader) -> Producers:
    producers = Producers()
    for offset, found in enumerate(headers):
        assert producers.check(found) is None
        producers.add(found, offset * 100, 0)
    return producers


def test_batches_in_order_are_new() -> None:
    producers = fed(header(0, 3), header(3, 2), header(5))
    assert producers.check(header(6)) is None


def test_each_of_the_last_five_is_a_duplicate_and_the_sixth_is_out_of_order() -> None:
    producers = fed(*(header(i) for i in range(6)))
    for sequence in range(1, 6):
        found = producers.check(header(sequence))
        assert found is not None
        assert found.base_offset == sequence * 100
    assert refused(producers, header(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_same_start_with_another_length_is_no_duplicate() -> None:
    assert refused(fed(header(0, 3)), header(0, 2)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_is_out_of_order() -> None:
    assert refused(fed(header(0, 3)), header(4)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_begins_with_zero_and_ends_the_old_one() -> None:
    producers = fed(header(0, 3))
    assert refused(producers, header(3, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(header(0, 3, epoch=1)) is None
    producers.add(header(0, 3, epoch=1), 3, 0)
    assert refused(producers, header(3, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refused(producers, header(0, 3, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Producers().check(header(4711)) is None


@pytest.mark.parametrize(
    ("first", "count", "following"), [(LAST, 1, 0), (LAST - 1, 1, LAST), (LAST - 1, 4, 2), (LAST - 2, 3, 0)]
)
def test_sequences_wrap_to_zero(first: int, count: int, following: int) -> None:
    producers = fed(header(first, count))
    assert producers.check(header(following)) is None
    assert producers.check(header(first, count)) is not None
    wrong = following + 1 if following < LAST else 0
    assert refused(producers, header(wrong)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producers_do_not_mix() -> None:
    producers = fed(header(0, producer=1), header(0, producer=2), header(1, producer=1))
    assert producers.check(header(1, producer=2)) is None
    assert producers.check(header(2, producer=1)) is None


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=12), st.data())
def test_taking_back_restores_what_was(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    producers, due, history, undos = Producers(), [0, 0, 0], [], []
    for offset, (producer, count) in enumerate(steps):
        history.append(sorted(producers.dump()))
        before = producers.add(header(due[producer], count, producer=producer), offset, offset)
        undos.append((producer, before))
        due[producer] += count
    keep = data.draw(st.integers(0, len(steps)))
    while len(undos) > keep:
        producers.take_back(*undos.pop())
        assert sorted(producers.dump()) == history.pop()


def test_those_that_are_silent_are_forgotten() -> None:
    producers = Producers()
    for producer in range(4):
        producers.add(header(0, producer=producer), 0, producer * 10)
    producers.add(header(1, producer=0), 1, 99)
    producers.expire(25)
    assert list(producers) == [3, 0]


def test_their_number_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_PRODUCERS", 3)
    producers = Producers()
    for producer in (1, 2, 3, 1, 4):
        producers.add(header(0, producer=producer), 0, 0)
    assert list(producers) == [3, 1, 4]


@given(st.data())
def test_all_partitions_together_have_a_limit(data: st.DataObject) -> None:
    count, limit = ProducerCount(), 12
    partitions = [Producers() for _ in range(4)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(room, "MAX_ALL_PRODUCERS", limit)
        for producers in partitions:
            producers.join(count)
        for now in range(data.draw(st.integers(0, 60))):
            producers = data.draw(st.sampled_from(partitions))
            producer = data.draw(st.integers(0, 20))
            before = producers.add(header(0, producer=producer), now, now)
            match data.draw(st.integers(0, 9)):
                case 0:
                    producers.take_back(producer, before)
                case 1:
                    producers.expire(now - 20)
                case 2:
                    producers.expire(now + 1)
                case _:
                    assert producer in list(producers)
            assert count.value == sum(map(len, partitions)) < limit + len(partitions)


def test_a_snapshot_comes_back() -> None:
    producers = fed(*(header(i) for i in range(7)), header(0, producer=9))
    rows = json.loads(json.dumps(producers.dump()))
    again = Producers.load(rows)
    assert again.dump() == producers.dump()
    assert again.check(header(6)) == producers.check(header(6))


@pytest.mark.parametrize("rows", [[[1]], [[1, 0, "x"]], [[1, 0, 0, [1, 2]]], [["x", 0, 0, [1, 2, 3, 4]]]])
def test_a_damaged_snapshot_is_refused(rows: list[list[object]]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Producers.load(rows)


def test_a_producer_is_forgotten_when_it_last_produced_before_that_time() -> None:
    producers = Producers()
    producers.add(header(0), 0, 100)
    producers.expire(100)
    assert list(producers) == [7]
    producers.expire(101)
    assert list(producers) == []

"""Where partitions start and end: timestamps beat offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from ringleader.clients.model import EARLIEST, LATEST, TopicPartition
from ringleader.spark_bridge.batch.starting import first_positions, last_positions, subscribed
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.options import (
    BatchOptions,
    StreamOptions,
    Subscription,
    batch_options,
    stream_options,
)

T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)


class Topics:
    """Logs from 10 to 90, one record for each millisecond from 1000 on; 5 of an open transaction."""

    def __init__(self, *partitions: TopicPartition) -> None:
        self.there = partitions

    def topics(self, pattern: str) -> tuple[str, ...]:
        return tuple(sorted({topic for topic, _ in self.there if topic.startswith(pattern)}))

    def partitions(self, topics: tuple[str, ...]) -> list[TopicPartition]:
        return [tp for tp in self.there if tp[0] in topics]

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {tp: {EARLIEST: 10, LATEST: 90}[when] for tp, when in wanted.items() if tp in self.there}

    def ends(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: 85 for tp in wanted if tp in self.there}

    def offsets_for_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {
            tp: max(10, when - 990) if when < 1_080 else None
            for tp, when in wanted.items()
            if tp in self.there
        }


LOG = Topics(T0, T1, T2)


def stream(**given: str) -> StreamOptions:
    return stream_options({"kafka.bootstrap.servers": "x:1", "subscribe": "t", "kafka.group.id": "g"} | given)


def batch(**given: str) -> BatchOptions:
    return batch_options({"kafka.bootstrap.servers": "x:1", "subscribe": "t"} | given)


def test_words_and_offsets() -> None:
    assert first_positions(stream(), [T0, T1], LOG) == {T0: 90, T1: 90}
    assert first_positions(stream(startingOffsets="earliest"), [T0], LOG) == {T0: 10}
    mixed = stream(startingOffsets='{"t":{"0":-2,"1":44,"2":-1}}')
    assert first_positions(mixed, [T0, T1, T2], LOG) == {T0: 10, T1: 44, T2: 90}
    assert first_positions(mixed, [], LOG) == {}


def test_one_time_for_all_beats_times_beats_offsets() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"t":{"0":1010,"1":1020}}'}
    assert first_positions(stream(**given), [T0, T1], LOG) == {T0: 20, T1: 30}
    assert first_positions(stream(startingTimestamp="1030", **given), [T0, T1], LOG) == {T0: 40, T1: 40}


def test_no_record_that_late_is_an_error_or_the_end() -> None:
    with pytest.raises(SourceError, match="no record of t-0 has the timestamp 2000 or a later one"):
        first_positions(stream(startingTimestamp="2000"), [T0], LOG)
    options = stream(startingTimestamp="2000", startingOffsetsByTimestampStrategy="latest")
    assert first_positions(options, [T0], LOG) == {T0: 90}


def test_json_must_name_what_is_fresh() -> None:
    with pytest.raises(SourceError, match=r"startingOffsets must name every .* t-1, t-2 is missing"):
        first_positions(stream(startingOffsets='{"t":{"0":20}}'), [T0, T2, T1], LOG)
    with pytest.raises(SourceError, match="startingOffsetsByTimestamp must name"):
        first_positions(stream(startingOffsetsByTimestamp='{"t":{"0":20}}'), [T1], LOG)


def test_partitions_that_do_not_exist_are_left_out() -> None:
    missing = ("u", 0)
    assert first_positions(stream(), [T0, missing], LOG) == {T0: 90}
    assert first_positions(stream(startingTimestamp="1010"), [T0, missing], LOG) == {T0: 20}


def test_ends_of_a_batch_read() -> None:
    assert last_positions(batch(), [T0], LOG) == {T0: 85}
    assert last_positions(batch(endingOffsets='{"t":{"0":20,"1":-1}}'), [T0, T1], LOG) == {T0: 20, T1: 85}
    by_time = batch(endingOffsets='{"t":{"0":20}}', endingOffsetsByTimestamp='{"t":{"0":1010}}')
    assert last_positions(by_time, [T0], LOG) == {T0: 20}
    assert last_positions(batch(endingTimestamp="3000"), [T0], LOG) == {T0: 85}


def test_a_subscription_by_name_or_pattern() -> None:
    log = Topics(T1, T0, ("tx", 0), ("u", 0))
    assert subscribed(Subscription(("t", "u"), None), log) == [T0, T1, ("u", 0)]
    assert subscribed(Subscription((), "t"), log) == [T0, T1, ("tx", 0)]
    assert subscribed(Subscription((), "nothing"), log) == []

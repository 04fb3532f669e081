"""The partition of a key is the one that Kafka's Java producer takes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.produce.partitioner import (
    StickyPartitions,
    murmur2,
    partition_of_key,
    partitions_of_keys,
)

pytestmark = pytest.mark.usefixtures("both_ways")


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        # org.apache.kafka.common.utils.UtilsTest.testMurmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_vectors_of_kafkas_own_test(key: bytes, wanted: int) -> None:
    assert murmur2(key) == wanted


def test_a_key_of_any_length_has_a_partition() -> None:
    for length in range(40):
        assert 0 <= partition_of_key(bytes(range(length)), 7) < 7
    assert len({partition_of_key(b"%d" % n, 12) for n in range(200)}) == 12


@given(st.lists(st.none() | st.binary(max_size=13), max_size=300), st.integers(1, 40))
def test_keys_in_columns_have_the_partitions_of_keys_one_by_one(keys: list[bytes | None], count: int) -> None:
    many = keys * 3 + [b"abcde" + b"%03d" % n for n in range(50)]
    wanted = [None if key is None else partition_of_key(key, count) for key in many]
    assert partitions_of_keys(pa.array(many, pa.binary()), count).to_pylist() == wanted
    part = pa.array([b"before", *many], pa.binary()).slice(1)
    assert partitions_of_keys(part, count).to_pylist() == wanted
    one_length = [b"%04d" % number for number in range(60)]
    found = partitions_of_keys(pa.array(one_length), count).to_pylist()
    assert found == [partition_of_key(key, count) for key in one_length]
    assert partitions_of_keys(pa.array([], pa.binary()), count).to_pylist() == []


def test_records_without_a_key_visit_all_partitions_in_turn(seed: int) -> None:
    sticky = StickyPartitions([2, 5, 9], random.Random(seed))
    visited = []
    for _ in range(6):
        visited.append(sticky.current)
        assert sticky.current == visited[-1]
        sticky.move_on()
    assert sorted(visited[:3]) == [2, 5, 9]
    assert visited[3:] == visited[:3]

"""The batches of a consumer: records and columns, decoded when they are looked at, deserialized if asked."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleader.clients.fetch.buffer import Chunk, end_of
from ringleader.clients.fetch.errors import CorruptRecordError, RecordDeserializationError
from ringleader.clients.fetch.model import Batch, ConsumerSettings
from ringleader.clients.fetch.model import Record as ConsumerRecord
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.protocol.records import Compression, Record, build_batch, stamp_append_time
from tests.support.shares import share

pytestmark = pytest.mark.usefixtures("both_ways")

LOOKS: dict[str, Callable[[Batch], Any]] = {
    "records": lambda batch: list(batch.records),
    "iteration": list,
    "values": lambda batch: batch.values,
    "keys": lambda batch: batch.keys,
    "timestamps": lambda batch: batch.timestamps_ms,
    "headers": lambda batch: batch.headers,
}


def taken(data: bytes, limit: int = 1_000, at: int = 0) -> list[Batch]:
    """Batches of up to `limit` records from `at` on."""
    state = PartitionState(("t", 3))
    state.set_position(at)
    state.add(Chunk(data, None), end_of(data))
    batches, parts, left = [], [], limit
    while (rows := state.advance(True)) is not None:
        if (part := state.take(rows, left)) is not None:
            parts.append(part)
            left -= part.length
        if not left:
            batches.append(Batch("t", 3, parts, state.position or 0, 0, 0))
            parts, left = [], limit
    return [*batches, Batch("t", 3, parts, state.position or 0, 0, 0)] if parts else batches


def some(first: int, count: int) -> list[Record]:
    return [
        Record(
            first + i,
            1_000 + i,
            None if i % 3 == 0 else b"k%d" % i,
            None if i % 5 == 4 else b"v" * (i % 100),
            [("h", b"%d" % i)] if i % 7 == 0 else (),
        )
        for i in range(count)
    ]


@settings(deadline=None, max_examples=share(20, whole=50), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(1, 300), st.sampled_from(list(Compression)), st.booleans()), min_size=1),
    st.integers(1, 400),
    st.integers(0, 200),
    st.randoms(use_true_random=False),
)
def test_a_batch_is_the_same_in_any_order_of_looks(
    batches: list[tuple[int, Compression, bool]], limit: int, at: int, random: Any
) -> None:
    """Whole batches and parts of them, with holes or without, from any offset on."""
    data, offset, all_records = b"", 0, []
    for count, codec, holes in batches:
        records = some(offset, count)
        if holes:
            records = [record for record in records if record.offset % 4 != 1] or records
        data += build_batch(records, compression=codec)
        offset = records[-1].offset + 1
        all_records += [record for record in records if record.offset >= at]
    seen: list[ConsumerRecord] = []
    found = taken(data, limit, at)
    assert [len(batch) for batch in found[:-1]] == [limit] * (len(found) - 1)
    random.shuffle(found)  # a part may be looked at before the one in front of it
    for batch in found:
        names = [name for name in LOOKS if random.random() < 0.3]
        for name in names:
            assert len(LOOKS[name](batch)) == len(batch)
        if random.random() < 0.5:
            with patch("ringleader.clients.fetch.buffer.HELD_MAX", 0):
                batch.let_go()
        assert batch.values == [record.value for record in batch.records]
        assert batch.offsets == [record.offset for record in batch]
        assert (batch.keys, batch.headers) == (
            [record.key for record in batch],
            [record.headers for record in batch],
        )
        seen += batch
    seen.sort(key=lambda record: record.offset)
    assert seen == [
        ConsumerRecord("t", 3, one.offset, one.timestamp_ms, "create", one.key, one.value, one.headers)
        for one in all_records
    ]


def test_timestamps_are_the_producers_or_the_logs() -> None:
    data = (
        build_batch([Record(0, 5, None, b"a")])
        + stamp_append_time(build_batch([Record(1, 5, None, b"b"), Record(2, 6, None, b"c")]), 77)
        + build_batch([Record(3, -1, None, b"d")])
    )
    [batch] = taken(data)
    assert [(record.timestamp_ms, record.timestamp_type) for record in batch] == [
        (5, "create"),
        (77, "log_append"),
        (77, "log_append"),
        (-1, None),
    ]
    assert batch.timestamps_ms == [5, 77, 77, -1]


def malformed(base: int = 0) -> bytes:
    """The second record's length is wrong, the checksum right: a producer's fault."""
    from crc32c import crc32c

    data = bytearray(build_batch([Record(base + i, 1, None, b"v" * 10) for i in range(3)]))
    size = (len(data) - 61) // 3
    data[61 + size] += 2
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("look", LOOKS)
def test_records_that_a_producer_wrote_wrongly_are_told_at_the_look(look: str) -> None:
    [batch] = taken(malformed())
    assert len(batch) == 3
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="t-3 at offset 0: a record") as found:
            LOOKS[look](batch)
        assert found.value.next_offset == 3


def test_deserializers_get_each_key_and_value() -> None:
    data = build_batch([Record(i, 1, b"%d" % i, json.dumps({"n": i}).encode()) for i in range(3)])
    [batch] = taken(data)
    assert batch.deserialize(int, json.loads) is None
    assert batch.keys == [0, 1, 2]
    assert batch.values == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert [(record.key, record.value["n"]) for record in batch] == [(0, 0), (1, 1), (2, 2)]
    assert batch.record.value == {"n": 0}
    assert batch.records == list(batch)
    assert pickle.loads(pickle.dumps(batch)).records == batch.records
    [values] = taken(data)
    assert values.deserialize(None, json.loads) is None
    assert (values.keys, values.values[2]) == ([b"0", b"1", b"2"], {"n": 2})


def test_a_deserializer_is_not_asked_where_there_are_no_bytes() -> None:
    called: list[bytes] = []
    data = build_batch([Record(i, 1, b"k", None if i else b"v") for i in range(2)])
    [batch] = taken(data)
    assert batch.deserialize(None, called.append) is None
    assert (batch.values, batch.values, called) == ([None, None], [None, None], [b"v"])


@pytest.mark.parametrize("origin", ["key", "value"])
def test_a_batch_ends_before_what_a_deserializer_refuses(origin: str) -> None:
    bad = [b"1", b"x", b"3"]
    pairs = [(b"7", one) if origin == "value" else (one, b"7") for one in bad]
    data = build_batch([Record(i, 1, *pair) for i, pair in enumerate(pairs)])
    [batch] = taken(data)
    error = batch.deserialize(int, int)
    assert isinstance(error, RecordDeserializationError)
    assert (error.origin, error.offset, error.next_offset) == (origin, 1, 2)
    assert (error.key, error.value) == ((b"7", b"x") if origin == "value" else (b"x", b"7"))
    assert str(error).startswith(f"t-3 at offset 1: the {origin} cannot be deserialized")
    assert isinstance(error.__cause__, ValueError)
    assert (len(batch), batch.next_offset, batch.offsets, len(batch.timestamps_ms)) == (1, 1, [0], 1)
    assert [(one.key, one.value) for one in batch] == [(7, 1) if origin == "value" else (1, 7)]


def test_a_batch_ends_before_what_cannot_be_decoded() -> None:
    """The checksum is right, and the producer wrote nonsense: the records before it are handed out."""
    good, bad = build_batch(some(0, 3)), malformed(3)
    for look in LOOKS.values():
        [batch] = taken(good + bad)
        assert len(look(batch)) == 3
        assert (len(batch), batch.next_offset, len(batch.headers)) == (3, 3, 3)
    [batch] = taken(bad, at=3)
    with pytest.raises(CorruptRecordError, match="t-3 at offset 3"):
        len(batch.values)


def test_a_deserializer_is_a_callable() -> None:
    with pytest.raises(ValueError, match="value_deserializer has to be something that can be called, a With"):
        ConsumerSettings(value_deserializer="json")  # type: ignore[arg-type]


def test_a_batch_is_sent_to_another_process_without_what_it_came_with() -> None:
    data = build_batch(some(0, 1_000))
    batch, *_ = taken(data, 10)
    sent = pickle.dumps(batch)
    assert len(sent) < len(data) / 10
    again: Batch = pickle.loads(sent)
    assert (again.records, len(again), again.next_offset) == (batch.records, 10, 10)

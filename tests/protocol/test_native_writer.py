"""Records on their way into a batch by compiled code: as Python writes and places them, or not at all."""

from __future__ import annotations

import gc
import random
import sys
import threading
import tracemalloc
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.clients.produce.partitioner import _TurnsInPython, partition_of_key
from ringleader.protocol.record_writer import _InPython
from ringleader.protocol.records import HEADER_BYTES
from tests.protocol.test_native import RECORDS, made

AROUND_BYTES, MOST_ROWS = 29, 1_000


def writer(kind: Any, limit: int = 2_000) -> Any:
    found = kind()
    found.limit = limit
    return found


@settings(deadline=None)
@given(RECORDS, st.sampled_from([0, 100, 10**6]))
def test_records_are_written_as_by_python(compiled: ModuleType, found: Any, limit: int) -> None:
    one, other = writer(compiled.RecordWriter, limit), writer(_InPython, limit)
    for _ in range(2):  # it begins anew when its records were taken
        for record in made(found, holes=False):
            given = record.key, record.value, tuple(record.headers), record.timestamp_ms
            one.write(*given)
            other.write(*given)
            assert (one.count, one.base_ms, one.max_ms) == (other.count, other.base_ms, other.max_ms)
        assert one.times_ms == other.times_ms
        taken = one.taken()
        assert taken == other.taken()
        assert type(taken) is bytearray
        taken.clear()  # nobody else looks at it
    assert (one.count, one.size_bytes, one.times_ms, one.taken()) == (0, 0, [], bytearray(HEADER_BYTES))


@pytest.mark.parametrize("kind", ["compiled", "python"])
def test_of_a_full_batch_nothing_is_left_in_the_next(compiled: ModuleType, kind: str) -> None:
    one = writer(compiled.RecordWriter if kind == "compiled" else _InPython)
    one.write(None, b"v", (), 0)
    one.full, one.size_bytes = True, 2_000
    one.taken()
    assert (bool(one.full), one.size_bytes) == (False, 0)


WRONG: list[Any] = [
    (("text", None, (), 0), TypeError),
    ((None, bytearray(b"v"), (), 0), TypeError),
    ((None, None, [("h", b"v")], 0), TypeError),
    ((None, None, (("h",),), 0), TypeError),
    ((None, None, ((b"h", b"v"),), 0), TypeError),
    ((None, None, (("h", "v"),), 0), TypeError),
    ((None, None, (("\ud800", None),), 0), UnicodeEncodeError),
    ((None, None, (), "now"), TypeError),
    ((None, None, (), 2**63), OverflowError),
    ((None, None, (), -(2**63)), OverflowError),
]


@pytest.mark.parametrize(("record", "error"), WRONG)
def test_what_is_no_record_is_not_written(compiled: ModuleType, record: Any, error: type[Exception]) -> None:
    found = writer(compiled.RecordWriter)
    found.write(b"k", b"v", (), 5)
    before = found.count, list(found.times_ms), found.base_ms, found.max_ms
    with pytest.raises(error):
        found.write(*record)
    assert (found.count, found.times_ms, found.base_ms, found.max_ms) == before
    found.write(None, b"w", (), 6)
    other = writer(_InPython)
    other.write(b"k", b"v", (), 5)
    other.write(None, b"w", (), 6)
    assert found.taken() == other.taken()


def test_partitions_take_turns_as_in_python(compiled: ModuleType, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        order = rng.sample(range(9), rng.randint(1, 9))
        most = rng.choice([0, 1, 50, 100, 16_384])
        one, other = compiled.Turns(order, most), _TurnsInPython(order, most)
        for size in [rng.choice([0, 1, 49, 50, 51, 100, 20_000]) for _ in range(60)]:
            assert one.over(size) == other.over(size)
            assert (one.take(size), one.current) == (other.take(size), other.current)
    with pytest.raises(IndexError):
        compiled.Turns([], 5).take(1)
    shrinks = [0, 1]
    turns = compiled.Turns(shrinks, 0)
    assert [turns.take(1), turns.take(1)] == [0, 1]
    shrinks.clear()
    with pytest.raises(IndexError):
        turns.take(1)
    for wrong in (-1, 2**41, 2**70, "1"):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            compiled.Turns([0], 5).take(wrong)
    for made_of in ((), ((0,), 5), ([0], "5"), ([0], 2**63)):
        with pytest.raises((TypeError, OverflowError)):
            compiled.Turns(*made_of)


def entrance(compiled: ModuleType, kind: Any, partitions: int, limit: int) -> tuple[Any, list[Any]]:
    """One that is open for an hour, at the time 7, and the writers of topic "t"."""
    found = compiled.Entrance(kind, True, AROUND_BYTES, MOST_ROWS)
    writers = [writer(compiled.RecordWriter, limit) for _ in range(partitions)]
    for one in writers:
        one.batch = [None, one.batch if hasattr(one, "batch") else None]
    found.ways["t"] = [None, *writers]
    found.limit_bytes = 10**6
    found.begin(7, 3_600.0)
    return found, writers


def test_records_come_where_python_puts_them(compiled: ModuleType, seed: int) -> None:
    """None, and nothing done, for the first of a batch, for what does not fit, and above the limit."""
    rng = random.Random(seed)
    for _ in range(30):
        partitions, limit = rng.randint(1, 5), rng.choice([100, 1_000, 5_000])
        found, writers = entrance(compiled, compiled.Place, partitions, limit)
        order = rng.sample(range(partitions), rng.randint(1, partitions))
        found.ways["t"][0] = compiled.Turns(order, 300)
        turns = _TurnsInPython(order, 300)
        others, used = [writer(_InPython, limit) for _ in writers], 0
        for one, other in zip(writers, others, strict=True):
            if rng.random() < 0.8:
                for each in (one, other):
                    each.write(None, b"first", (), 3)
        found.limit_bytes = rng.choice([500, 10**6])
        for number in range(200):
            key = None if rng.random() < 0.5 else rng.randbytes(rng.randint(0, 9))
            value = rng.randbytes(rng.randint(0, 80))
            size = AROUND_BYTES + len(value) + len(key or b"")
            at = _at(turns, order, size) if key is None else partition_of_key(key, partitions)
            other = others[at]
            fits = other.count and other.size_bytes + size < limit and used + size <= found.limit_bytes
            outcome = found.accept("t", value, key, None, (), None)
            assert (outcome is not None) == bool(fits), f"record {number}"
            if outcome is not None:
                assert (outcome._index, type(outcome)) == (other.count, compiled.Place)
                other.write(key, value, (), 7)
                other.size_bytes += size
                used += size
                if key is None:
                    turns.take(size)
            assert found.used_bytes == used
            assert (writers[at].count, writers[at].size_bytes) == (other.count, other.size_bytes)
        assert [one.taken() for one in writers] == [other.taken() for other in others]


def _at(turns: _TurnsInPython, order: list[int], size: int) -> int:
    now = order.index(turns.current)
    return order[(now + turns.over(size)) % len(order)]


class _Bytes(bytes):
    pass


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "given",
    [
        ("t", b"v", None, None, (), None),  # no Turns
        ("t", bytearray(b"v"), b"k", None, (), None),
        ("t", _Bytes(b"v"), b"k", None, (), None),
        ("t", None, b"k", None, (), None),
        ("t", b"v", "k", None, (), None),
        ("t", b"v", _Bytes(b"k"), None, (), None),
        ("t", b"v", b"k", 0, (), None),
        ("t", b"v", b"k", None, (("h", b""),), None),
        ("t", b"v", b"k", None, [], None),
        ("t", b"v", b"k", None, (), 5),
        ("other", b"v", b"k", None, (), None),
        (_Text("t"), b"v", b"k", None, (), None),
        (["t"], b"v", b"k", None, (), None),
        ("t", b"v" * 3_000, b"k", None, (), None),
    ],
)
def test_what_is_not_plain_goes_another_way(compiled: ModuleType, given: Any) -> None:
    found, [one] = entrance(compiled, compiled.Place, 1, 2_000)
    one.write(None, b"first", (), 3)
    assert found.accept(*given) is None
    assert (found.used_bytes, one.count) == (0, 1)
    assert found.accept("t", b"v", b"k", None, (), None) is not None


def test_a_record_may_take_all_the_memory_that_is_left(compiled: ModuleType) -> None:
    found, [one] = entrance(compiled, compiled.Place, 1, 2_000)
    one.write(None, b"first", (), 3)
    found.limit_bytes = AROUND_BYTES + len(b"k" + b"v")
    assert found.accept("t", b"vv", b"k", None, (), None) is None
    assert found.accept("t", b"v", b"k", None, (), None) is not None
    assert found.used_bytes == found.limit_bytes


def test_an_entrance_is_closed(compiled: ModuleType) -> None:
    """Before it begins, when its time is over, when it is told so, and in another thread."""
    plain = ("t", b"v", b"k", None, (), None)
    found, [one] = entrance(compiled, compiled.Place, 1, 2_000)
    one.write(None, b"first", (), 3)

    def taken(**changed: Any) -> bool:
        for name, value in changed.items():
            setattr(found, name, value)
        return found.accept(*plain) is not None

    assert taken()
    assert not taken(closed=1)
    assert taken(closed=0)
    found.begin(8, -1.0)
    assert not taken()
    found.begin(8, 3_600.0)
    elsewhere: list[bool] = []
    thread = threading.Thread(target=lambda: elsewhere.append(taken()))
    thread.start()
    thread.join()
    assert elsewhere == [False]
    assert taken()
    assert one.times_ms == [3, 7, 7, 8]
    for name, value in (("full", 1), ("count", MOST_ROWS - 1), ("batch", ()), ("size_bytes", 1_990)):
        before = getattr(one, name)
        setattr(one, name, value)
        assert not taken(), name
        setattr(one, name, before)
    assert taken()
    for way in ((), [], [None], [None, None], [None, object()], [None, compiled.Turns([0], 1)]):
        found.ways["t"] = way
        assert not taken(), way
    found.ways["t"] = [compiled.Turns([7], 5), one]
    assert found.accept("t", b"v", None, None, (), None) is None, "a partition that is none"
    found.ways["t"] = [compiled.Turns([], 5), one]
    with pytest.raises(IndexError):
        found.accept("t", b"v", None, None, (), None)
    with pytest.raises(TypeError, match="takes 6 arguments"):
        found.accept("t", b"v")
    with pytest.raises(TypeError):
        compiled.Entrance(list, True, 1, 1)
    with pytest.raises((OverflowError, TypeError)):
        found.begin(2**63, 1.0)
    closed = compiled.Entrance(compiled.Place, True, AROUND_BYTES, MOST_ROWS)
    closed.ways["t"] = [None, one]
    closed.limit_bytes = 10**6
    assert closed.accept(*plain) is None


def test_nothing_is_left_behind(compiled: ModuleType) -> None:
    """References and memory are given back, those of cycles by the garbage collector."""
    batch: list[Any] = [None, None]
    value, key = b"v" * 50, b"k" * 5

    def fill() -> None:
        found, writers = entrance(compiled, compiled.Place, 3, 10**5)
        for one in writers:
            one.batch = batch
            one.write(None, b"first", (("h", b"x"),), 3)
        for _ in range(500):
            found.accept("t", value, key, None, (), None)
        found.ways["self"] = [found, found.ways]
        for one in writers[1:]:
            one.taken()

    class Kind(compiled.RecordWriter):  # type: ignore[misc, name-defined]
        pass

    before_kind = compiled.RecordWriter
    compiled.RecordWriter = Kind  # type: ignore[attr-defined]
    try:
        fill()
        gc.collect()
        counts = [sys.getrefcount(one) for one in (batch, value, key, compiled.Place, Kind)]
        tracemalloc.start()
        for _ in range(5):
            fill()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        for _ in range(40):
            fill()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - held < 20_000
        assert [sys.getrefcount(one) for one in (batch, value, key, compiled.Place, Kind)] == counts
    finally:
        tracemalloc.stop()
        compiled.RecordWriter = before_kind  # type: ignore[attr-defined]

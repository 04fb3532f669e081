"""The parts of a MetricsData of OpenTelemetry that are read, and other bytes, which are refused."""

from __future__ import annotations

import contextlib
import math
import random
import struct
import tracemalloc

import pytest

from ringleader.protocol.errors import MalformedError
from ringleader.protocol.otlp import FIELDS_MAX, TEXT_MAX_BYTES, read_metrics, write_metrics
from tests.support.metrics_data import (
    attribute,
    fixed,
    gauge,
    metrics_data,
    nested,
    of_metrics,
    point,
    varint,
)

WANTED = ("polls", "beats")
MEMBER = {"group_id": "billing", "group_member_id": "m-1"}
WHOLE = metrics_data(MEMBER, {"polls": 1.5, "beats": 7, "other": 9.0})


def test_attributes_and_wanted_metrics_are_read() -> None:
    found = read_metrics(WHOLE, WANTED)
    assert found.attributes == MEMBER
    assert found.values == {"polls": 1.5, "beats": 7.0}


def test_what_is_written_is_what_others_write() -> None:
    values = {"polls": 1.5, "beats": 7.0}
    words = {**MEMBER, "left": "x" * 200}
    made = write_metrics(words, values, 1_700_000_000_000_000_001)
    found = read_metrics(made, WANTED)
    assert (found.attributes, found.values) == (words, values)
    at = fixed(3, (1_700_000_000_000_000_001).to_bytes(8, "little"))
    points = [at + fixed(4, struct.pack("<d", value)) for value in values.values()]
    resource = b"".join(nested(1, attribute(*one)) for one in words.items())
    scope = b"".join(nested(2, gauge(name, one)) for name, one in zip(values, points, strict=True))
    assert made == nested(1, nested(1, resource) + nested(2, scope))


def test_of_several_numbers_the_last_counts() -> None:
    data = of_metrics({}, gauge("polls", point(1.0), point(-2.0))) + of_metrics({}, gauge("polls", point(3)))
    assert read_metrics(data, WANTED).values == {"polls": 3.0}


def test_sums_are_numbers_as_gauges_are() -> None:
    of_sum = nested(1, b"polls") + nested(7, nested(1, point(4.0)))
    assert read_metrics(of_metrics({}, of_sum), WANTED).values == {"polls": 4.0}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_passed_over(value: float) -> None:
    data = of_metrics({}, gauge("polls", point(2.0), point(value)))
    assert read_metrics(data, WANTED).values == {"polls": 2.0}


def test_unknown_fields_of_every_wire_type_are_passed_over() -> None:
    strange = varint(900 << 3) + varint(2**64 - 1) + fixed(901, bytes(8)) + nested(902, b"x" * 300)
    strange += varint(903 << 3 | 5) + bytes(4)
    data = strange + of_metrics(MEMBER, strange + gauge("polls", point(1.5, strange))) + strange
    found = read_metrics(data, WANTED)
    assert (found.attributes, found.values) == (MEMBER, {"polls": 1.5})


def test_long_texts_are_passed_over() -> None:
    attributes = {"long": "x" * (TEXT_MAX_BYTES + 1), "short": "x" * TEXT_MAX_BYTES}
    assert read_metrics(metrics_data(attributes, {}), WANTED).attributes == {"short": "x" * TEXT_MAX_BYTES}


def test_nothing_is_nothing() -> None:
    assert read_metrics(b"", WANTED).values == {}


def test_cut_off_at_every_byte_it_is_refused() -> None:
    for end in range(1, len(WHOLE)):
        with pytest.raises(MalformedError):
            read_metrics(WHOLE[:end], WANTED)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a" + varint(2**62), "cut off"),
        (b"\x0a" + b"\xff" * 20, "a varint without an end"),
        (b"\x0b", "wire type 3"),
        (bytes(20), "field 0"),
        (fixed(1, bytes(7)), "cut off"),
        (metrics_data({}, {}) + b"\xff", "a varint without an end"),
        (nested(1, nested(1, nested(1, nested(1, b"\xff")))), "no UTF-8"),
        (nested(1, nested(2, nested(2, nested(1, b"polls") + b"\x2a\x7f"))), "cut off"),
    ],
)
def test_what_is_no_metrics_data_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(MalformedError, match=reason):
        read_metrics(data, WANTED)


def test_fields_are_counted_at_any_depth() -> None:
    points = [point(1.0)] * FIELDS_MAX
    for data in (
        b"\x08\x00" * (FIELDS_MAX + 1),
        nested(1, nested(1, nested(1, attribute("", "")) * FIELDS_MAX)),
        of_metrics({}, gauge("polls", *points)),
    ):
        with pytest.raises(MalformedError, match="more than 10,000 fields"):
            read_metrics(data, WANTED)


def test_a_length_takes_no_memory_before_it_is_checked() -> None:
    data = of_metrics(MEMBER, nested(1, b"polls") + b"\x2a" + varint(2**62))
    tracemalloc.start()
    with pytest.raises(MalformedError):
        read_metrics(data, WANTED)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_damaged_bytes_are_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(3_000):
        data = bytearray(WHOLE)
        for _ in range(rng.randrange(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            data[rng.randrange(len(data)) :] = rng.randbytes(rng.randrange(20))
        with contextlib.suppress(MalformedError):
            found = read_metrics(bytes(data), WANTED)
            assert found.values.keys() <= set(WANTED)
            assert all(map(math.isfinite, found.values.values()))


def test_numbers_are_little_endian() -> None:
    whole = struct.pack("<q", -(2**40))
    data = of_metrics({}, gauge("polls", fixed(6, whole)))
    assert read_metrics(data, WANTED).values == {"polls": -float(2**40)}

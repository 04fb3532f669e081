"""Writes a MetricsData of OpenTelemetry, as clients push it: the counterpart of `protocol.otlp`."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def varint(value: int) -> bytes:
    """An unsigned number of any size."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def nested(number: int, content: bytes) -> bytes:
    """A field with a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed(number: int, content: bytes) -> bytes:
    """A field of 8 bytes."""
    return varint(number << 3 | 1) + content


def attribute(key: str, value: str) -> bytes:
    """A KeyValue with a text."""
    return nested(1, key.encode()) + nested(2, nested(1, value.encode()))


def gauge(name: str, *points: bytes) -> bytes:
    """A Metric."""
    return nested(1, name.encode()) + nested(5, b"".join(nested(1, point) for point in points))


def point(value: float, more: bytes = b"") -> bytes:
    """A NumberDataPoint: a time, the number, and `more`."""
    number = struct.pack("<q", value) if isinstance(value, int) else struct.pack("<d", value)
    return fixed(3, bytes(8)) + more + fixed(6 if isinstance(value, int) else 4, number)


def of_metrics(attributes: Mapping[str, str], *metrics: bytes) -> bytes:
    """All of one resource and scope."""
    resource = b"".join(nested(1, attribute(*one)) for one in attributes.items())
    scope = nested(1, nested(1, b"scope")) + b"".join(nested(2, one) for one in metrics)
    return nested(1, nested(1, resource) + nested(2, scope))


def metrics_data(attributes: Mapping[str, str], values: Mapping[str, float]) -> bytes:
    """Gauges with one number each."""
    return of_metrics(attributes, *(gauge(name, point(value)) for name, value in values.items()))

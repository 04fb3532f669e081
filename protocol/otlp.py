"""Reads the little that is wanted of a MetricsData of OpenTelemetry: the resource's attributes, and the
newest number of each wanted metric; and writes such a one.

Source: opentelemetry-proto 1.x, `metrics/v1/metrics.proto`, `resource/v1/resource.proto` and
`common/v1/common.proto`, in the wire format of protocol buffers; KIP-714 has clients push it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct

from ringleader.protocol.errors import MalformedError

FIELDS_MAX = 10_000
"""Fields that are looked at in one message, at any depth: about 10 ms. The metrics of a consumer that are
asked for have some hundred."""
TEXT_MAX_BYTES = 255
"""A longer name or attribute is passed over."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types."""
_VARINT_MAX_BYTES = 10
_FLOAT64, _INT64 = Struct("<d"), Struct("<q")

# Field numbers.
_RESOURCE_METRICS = 1  # of MetricsData
_RESOURCE, _SCOPE_METRICS = 1, 2  # of ResourceMetrics
_ATTRIBUTES = 1  # of Resource
_KEY, _VALUE = 1, 2  # of KeyValue
_STRING_VALUE = 1  # of AnyValue
_METRICS = 2  # of ScopeMetrics
_NAME, _GAUGE, _SUM = 1, 5, 7  # of Metric
_DATA_POINTS = 1  # of Gauge and Sum
_AT_NS, _AS_DOUBLE, _AS_INT = 3, 4, 6  # of NumberDataPoint


@dataclass(slots=True)
class Metrics:
    """The values that were read. Of several numbers of one metric the last counts."""

    attributes: dict[str, str] = field(default_factory=dict)
    """Of the resource: those with texts."""
    values: dict[str, float] = field(default_factory=dict)
    """Metric -> finite number."""


Span = tuple[int, int]
"""Beginning and end of a field's bytes."""


def read_metrics(data: bytes, wanted: Collection[str]) -> Metrics:
    """The attributes and wanted metrics of a MetricsData. Raises MalformedError for what is none, and for
    more than `FIELDS_MAX` fields. Nothing is copied but what is returned."""
    return _Reader(data, wanted).read()


def write_metrics(attributes: Mapping[str, str], values: Mapping[str, float], at_ns: int) -> bytes:
    """A MetricsData of one resource, with a gauge of one number for each metric. `at_ns`: Unix time."""
    resource = b"".join(
        _nested(
            _ATTRIBUTES, _nested(_KEY, key.encode()) + _nested(_VALUE, _nested(_STRING_VALUE, value.encode()))
        )
        for key, value in attributes.items()
    )
    scope = b"".join(
        _nested(
            _METRICS,
            _nested(_NAME, name.encode()) + _nested(_GAUGE, _nested(_DATA_POINTS, _point(value, at_ns))),
        )
        for name, value in values.items()
    )
    return _nested(_RESOURCE_METRICS, _nested(_RESOURCE, resource) + _nested(_SCOPE_METRICS, scope))


def _point(value: float, at_ns: int) -> bytes:
    at = bytes((_AT_NS << 3 | _FIXED64,)) + at_ns.to_bytes(8, "little")
    return at + bytes((_AS_DOUBLE << 3 | _FIXED64,)) + _FLOAT64.pack(value)


def _nested(number: int, content: bytes) -> bytes:
    size, left = bytearray(), len(content)
    while left > 127:
        size.append(left & 127 | 128)
        left >>= 7
    return bytes((number << 3 | _BYTES, *size, left)) + content


class _Reader:
    def __init__(self, data: bytes, wanted: Collection[str]) -> None:
        self._data = data
        self._wanted = wanted
        self._left = FIELDS_MAX
        self._found = Metrics()

    def read(self) -> Metrics:
        """See `read_metrics`."""
        for of_resource in self._all((0, len(self._data)), _RESOURCE_METRICS):
            for resource in self._all(of_resource, _RESOURCE):
                for attribute in self._all(resource, _ATTRIBUTES):
                    self._attribute(attribute)
            for scope in self._all(of_resource, _SCOPE_METRICS):
                for metric in self._all(scope, _METRICS):
                    self._metric(metric)
        return self._found

    def _attribute(self, span: Span) -> None:
        key = value = None
        for number, kind, at in self._fields(span):
            if (number, kind) == (_KEY, _BYTES):
                key = self._text(at)
            elif (number, kind) == (_VALUE, _BYTES):
                value = next(map(self._text, self._all(at, _STRING_VALUE)), None)
        if key is not None and value is not None:
            self._found.attributes[key] = value

    def _metric(self, span: Span) -> None:
        name, data = None, []
        for number, kind, at in self._fields(span):
            if (number, kind) == (_NAME, _BYTES):
                name = self._text(at)
            elif number in (_GAUGE, _SUM) and kind == _BYTES:
                data.append(at)
        if name is None or name not in self._wanted:
            return
        for one in data:
            for point in self._all(one, _DATA_POINTS):
                for number, kind, (start, _) in self._fields(point):
                    if kind == _FIXED64 and number in (_AS_DOUBLE, _AS_INT):
                        form = _FLOAT64 if number == _AS_DOUBLE else _INT64
                        value = float(form.unpack_from(self._data, start)[0])
                        if math.isfinite(value):
                            self._found.values[name] = value

    # ---- the wire format ----

    def _all(self, span: Span, wanted: int) -> Iterator[Span]:
        """The fields of this number that have a length."""
        return (at for number, kind, at in self._fields(span) if number == wanted and kind == _BYTES)

    def _fields(self, span: Span) -> Iterator[tuple[int, int, Span]]:
        """Number and wire type of each field, and where its bytes are."""
        at, end = span
        while at < end:
            self._left -= 1
            if self._left < 0:
                raise self._broken(at, f"more than {FIELDS_MAX:,} fields")
            tag, at = self._varint(at, end)
            number, kind, start = tag >> 3, tag & 7, at
            if not number:
                raise self._broken(at, "field 0")
            if kind == _VARINT:
                _, at = self._varint(at, end)
            elif kind == _FIXED64:
                at += 8
            elif kind == _FIXED32:
                at += 4
            elif kind == _BYTES:
                size, start = self._varint(at, end)
                at = start + size
            else:
                raise self._broken(at, f"wire type {kind}")
            if at > end:
                raise self._broken(start, "cut off")
            yield number, kind, (start, at)

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = 0
        for shift, byte in enumerate(self._data[at : min(end, at + _VARINT_MAX_BYTES)]):
            value |= (byte & 127) << 7 * shift
            if byte < 128:
                return value, at + shift + 1
        raise self._broken(at, "a varint without an end")

    def _text(self, span: Span) -> str | None:
        start, end = span
        if end - start > TEXT_MAX_BYTES:
            return None
        try:
            return self._data[start:end].decode()
        except UnicodeDecodeError:
            raise self._broken(start, "no UTF-8") from None

    def _broken(self, at: int, reason: str) -> MalformedError:
        return MalformedError("MetricsData", -1, "metrics", at, reason)

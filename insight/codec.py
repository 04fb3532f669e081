"""Values of insight as JSON and back, for the file of a history and for the snapshots of inference.

The type of a value decides its form: an enumeration is its word, a tuple a list, bytes are
hexadecimal. A named tuple is the list of its fields. A dataclass is an object without the fields that have
their default, and a field that is not known is ignored: so fields may be added without another format.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import groupby
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from ringleader.insight.model import DepartureFinding, GroupState, Member, Rebalance, TopicPartition

_DEFLATE_BYTES = 512
"""Shorter texts stay as they are."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def packed(value: Any) -> bytes:
    """JSON, deflated where that saves room."""
    text = _encode(value).encode("utf-8", "surrogatepass")
    return zlib.compress(text, 1) if len(text) >= _DEFLATE_BYTES else text


def unpacked(data: bytes) -> Any:
    """The value that `packed` was given."""
    # JSON begins with a bracket, zlib never.
    text = data if data[:1] in b"[{" else zlib.decompress(data)
    return json.loads(text.decode("utf-8", "surrogatepass"))


class Codec(NamedTuple):
    """How values of one type become JSON, and JSON values of that type."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]

    def pack(self, value: Any) -> bytes:
        """The value as it is stored."""
        return packed(self.write(value))

    def unpack(self, data: bytes) -> Any:
        """The value that `pack` was given."""
        return self.read(unpacked(data))


def _same(value: Any) -> Any:
    return value


_PLAIN = Codec(_same, _same)


@cache
def codec_of(kind: Any) -> Codec:
    """The codec of a type. Raises `TypeError` for one that has no form here."""
    if kind is Member:
        return Codec(_member_row, _member_of)
    if isinstance(kind, type):
        if kind in (str, int, float, bool, NoneType):
            return _PLAIN
        if kind is bytes:
            return Codec(bytes.hex, bytes.fromhex)
        if issubclass(kind, Enum):
            return Codec(_same, kind)
        if is_dataclass(kind):
            return _of_dataclass(kind)
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return _of_row(lambda row: kind(*row), get_type_hints(kind).values())
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType) and len(inner) == 2 and NoneType in inner:
        return _of_optional(codec_of(next(one for one in inner if one is not NoneType)))
    if origin is tuple and inner[-1:] != (Ellipsis,):
        return _of_row(tuple, inner)
    if origin in (tuple, list):
        return _of_many(origin, codec_of(inner[0]))
    if origin in (dict, Mapping):
        return _of_mapping(inner[0], codec_of(inner[1]))
    raise TypeError(f"{kind} has no form as JSON")


def _of_optional(item: Codec) -> Codec:
    if item == _PLAIN:
        return item
    return Codec(
        lambda value: None if value is None else item.write(value),
        lambda row: None if row is None else item.read(row),
    )


def _of_row(make: Callable[[Iterable[Any]], Any], kinds: Iterable[Any]) -> Codec:
    items = [codec_of(one) for one in kinds]
    writers, readers = [one.write for one in items], [one.read for one in items]

    def write(value: Any) -> list[Any]:
        return [to(one) for to, one in zip(writers, value, strict=True)]

    def read(row: list[Any]) -> Any:
        # A row of an older version may lack the last fields.
        return make([of(one) for of, one in zip(readers, row, strict=False)])

    # JSON has a tuple as a list by itself.
    return Codec(
        _same if all(one is _same for one in writers) else write,
        make if all(one is _same for one in readers) else read,
    )


def _of_many(make: Callable[[Iterable[Any]], Any], item: Codec) -> Codec:
    write: Callable[[Any], Any] = list if item.write is _same else lambda value: [*map(item.write, value)]
    return Codec(write, make if item.read is _same else lambda rows: make(map(item.read, rows)))


def _of_mapping(key_kind: Any, item: Codec) -> Codec:
    key = codec_of(key_kind)
    if key_kind in (str, bytes):
        return Codec(
            lambda value: {key.write(name): item.write(one) for name, one in value.items()},
            lambda rows: {key.read(name): item.read(one) for name, one in rows.items()},
        )
    # Keys of JSON are text: pairs instead.
    return Codec(
        lambda value: [(key.write(name), item.write(one)) for name, one in value.items()],
        lambda rows: {key.read(name): item.read(one) for name, one in rows},
    )


def _of_dataclass(kind: Any) -> Codec:
    hints = get_type_hints(kind)
    codecs = {one.name: codec_of(hints[one.name]) for one in fields(kind)}
    defaults = {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(kind)
    }

    def write(value: Any) -> dict[str, Any]:
        return {
            name: codecs[name].write(found)
            for name, default in defaults.items()
            if (found := getattr(value, name)) != default
        }

    def read(row: dict[str, Any]) -> Any:
        return kind(**{name: codecs[name].read(found) for name, found in row.items() if name in codecs})

    return Codec(write, read)


def _member_row(one: Member) -> list[Any]:
    row: list[Any] = list(one)
    # Members may have thousands of partitions: each topic once.
    row[5] = [[topic, [number for _, number in found]] for topic, found in groupby(one.assigned, key=_topic)]
    return row


def _topic(partition: TopicPartition) -> str:
    return partition[0]


def _member_of(row: list[Any]) -> Member:
    row[4] = tuple(row[4])
    row[5] = tuple((topic, number) for topic, numbers in row[5] for number in numbers)
    return Member(*row)


REBALANCE = codec_of(Rebalance)
STATE = codec_of(GroupState)
MEMBER_AND_END = codec_of(tuple[Member, DepartureFinding | None])
"""A member, and how it went; None: it is there."""

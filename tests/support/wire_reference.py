"""A slow second encoder, read off the declarations, which also says where each length and count stands.

It shares nothing with the generated code but the declarations. Tests use it to write messages with a length,
a count or a section of tagged fields replaced by something else, and as a second opinion on what no other
codec knows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

from ringleader.protocol.fields import FieldSpec
from ringleader.protocol.layout import covers
from ringleader.protocol.schema import Message
from tests.support.wire_values import present_fields

_FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "float64": "d", "uuid": "16s",
}  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """Where something stands: a "length", a "count" of elements, a section of "tags", or a "text"."""

    kind: str
    path: str
    start: int
    stop: int
    compact: bool
    short: bool
    """A length of two bytes."""
    nullable: bool
    tagged: bool = False
    """Inside a tagged field, whose own size no longer fits when this is replaced."""


@dataclass(frozen=True)
class Written:
    """A body and its marks."""

    body: bytes
    marks: list[Mark]

    def replaced(self, mark: Mark, data: bytes) -> bytes:
        """The body with other bytes where the mark is."""
        return self.body[: mark.start] + data + self.body[mark.stop :]


def uvarint(value: int) -> bytes:
    """An unsigned varint (KIP-482)."""
    out = b""
    while value > 127:
        out += bytes((value % 128 + 128,))
        value //= 128
    return out + bytes((value,))


class _Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.out = bytearray()
        self.marks: list[Mark] = []

    def mark(self, kind: str, path: str, data: bytes, *, short: bool = False, nullable: bool = False) -> None:
        start = len(self.out)
        self.out += data
        self.marks.append(Mark(kind, path, start, len(self.out), self.flexible, short, nullable))

    def struct(self, value: Any, path: str) -> None:
        tagged: list[tuple[int, str, FieldSpec]] = []
        for name, spec in present_fields(type(value), self.version):
            if covers(spec.tagged, self.version):
                tagged.append((spec.tag or 0, name, spec))
            else:
                self.field(getattr(value, name), spec, f"{path}{name}")
        if self.flexible:
            self.tags(value, sorted(tagged, key=lambda one: one[0]), path)

    def tags(self, value: Any, tagged: list[tuple[int, str, FieldSpec]], path: str) -> None:
        empty = type(value)()
        present = [one for one in tagged if getattr(value, one[1]) != getattr(empty, one[1])]
        start = len(self.out)
        self.out += uvarint(len(present))
        for tag, name, spec in present:
            inner = _Writer(self.version, self.flexible)
            inner.field(getattr(value, name), spec, f"{path}{name}")
            self.out += uvarint(tag) + uvarint(len(inner.out))
            at = len(self.out)
            self.marks += [
                replace(mark, start=mark.start + at, stop=mark.stop + at, tagged=True) for mark in inner.marks
            ]
            self.out += inner.out
        self.marks.append(
            Mark("tags", f"{path}tagged fields", start, len(self.out), True, short=False, nullable=False)
        )

    def size(self, size: int, spec: FieldSpec, path: str) -> None:
        short = spec.type == "string" and not spec.array
        data = uvarint(size + 1) if self.flexible else struct.pack(">h" if short else ">i", size)
        kind = "count" if spec.array else "length"
        self.mark(kind, path, data, short=short, nullable=covers(spec.nullable, self.version))

    def field(self, value: Any, spec: FieldSpec, path: str) -> None:
        if spec.array:
            self.size(-1 if value is None else len(value), spec, path)
            one = FieldSpec(spec.type, False, spec.versions, None, None, None, False, True, None)
            for index, item in enumerate(value or []):
                self.field(item, one, f"{path}[{index}]")
        elif not isinstance(spec.type, str) and value is None:
            self.out += b"\xff"
        elif not isinstance(spec.type, str):
            if covers(spec.nullable, self.version):
                self.out += b"\x01"
            self.struct(value, f"{path}.")
        elif spec.type in _FORMATS:
            self.out += struct.pack(f">{_FORMATS[spec.type]}", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            self.size(-1 if data is None else len(data), spec, path)
            if spec.type == "string" and data:
                self.mark("text", path, data)
            else:
                self.out += data or b""


def written(message: Message, version: int) -> Written:
    """The body of a message in a version, with its marks."""
    writer = _Writer(version, version >= message.FLEXIBLE_VERSION)
    writer.struct(message, "")
    return Written(bytes(writer.out), writer.marks)


_PLAIN: dict[str, Any] = {
    "bool": True, "int8": 1, "int16": 2, "uint16": 3, "int32": 4, "uint32": 5, "int64": 6, "float64": 0.5,
    "string": "name", "bytes": b"bytes", "records": b"batch", "uuid": bytes(range(16)),
}  # fmt: skip


def full(cls: type[Any], version: int) -> Any:
    """A message or struct with something in every field, tagged ones too; two elements in each list."""

    def one(spec: FieldSpec) -> Any:
        return _PLAIN[spec.type] if isinstance(spec.type, str) else full(spec.type, version)

    made: dict[str, Any] = {}
    for name, spec in present_fields(cls, version):
        made[name] = [one(spec), one(spec)] if spec.array else one(spec)
    return cls(**made)

"""Says exactly what is wrong with bytes that a generated decoder refused.

The generated decoders only notice that something does not fit. This slow reading by the declaration, done
once per refused message, finds the field, the position and the reason.
"""

from __future__ import annotations

import struct
from typing import Any

from ringleader.protocol import wire
from ringleader.protocol.errors import EncodeError, MalformedError
from ringleader.protocol.fields import Declared, FieldSpec, fields_of
from ringleader.protocol.layout import covers, fixed_format, smallest_element

READ_MAX = 5_000
"""Elements of arrays that are read again to say exactly what is wrong: beyond that it would take longer than
the message is worth."""


class _WrongError(Exception):
    def __init__(self, field: str, position: int, reason: str) -> None:
        self.field, self.position, self.reason = field, position, reason


class _Walk:
    def __init__(self, data: bytes, position: int, version: int, flexible: bool) -> None:
        self.data = data
        self.position = position
        self.version = version
        self.flexible = flexible
        self.read = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, size: int, path: str, what: str) -> bytes:
        if size > self.left:
            raise _WrongError(path, self.position, f"{what} needs {size} bytes, {max(self.left, 0)} are left")
        self.position += size
        return self.data[self.position - size : self.position]

    def uvarint(self, path: str, what: str) -> int:
        at = self.position
        try:
            value, self.position = wire.read_uvarint(self.data, at)
        except IndexError:
            raise _WrongError(path, at, f"{what} is cut off") from None
        except ValueError as error:
            raise _WrongError(path, at, str(error)) from None
        return value

    def struct(self, cls: type[Any], path: str) -> None:
        tagged: dict[int, tuple[str, FieldSpec]] = {}
        for name, spec in fields_of(cls):
            if not covers(spec.versions, self.version):
                continue
            if covers(spec.tagged, self.version):
                tagged[spec.tag or 0] = (name, spec)
            else:
                self.field(spec, f"{path}{name}")
        if self.flexible:
            self.tags(tagged, path)

    def tags(self, tagged: dict[int, tuple[str, FieldSpec]], path: str) -> None:
        here = f"{path}tagged fields"
        count = self.uvarint(here, "number of tagged fields")
        if count > self.left // 2 or (count > wire.TAGS_MAX and not tagged):
            raise _WrongError(here, self.position, f"{count} tagged fields in {self.left} bytes")
        for _ in range(count):
            tag = self.uvarint(here, "tag")
            size = self.uvarint(here, "size")
            if size > self.left:
                raise _WrongError(here, self.position, f"tag {tag} needs {size} bytes, {self.left} are left")
            stop = self.position + size
            if tag in tagged:
                name, spec = tagged[tag]
                self.field(spec, f"{path}{name}")
                if self.position != stop:
                    raise _WrongError(
                        f"{path}{name}", self.position, f"tagged field of {size} bytes has another size"
                    )
            self.position = stop

    def field(self, spec: FieldSpec, path: str) -> None:
        fixed = fixed_format(spec)
        if fixed:
            self.take(fixed[1], path, "the value")
        elif spec.array:
            self.array(spec, path)
        elif isinstance(spec.type, str):
            self.sized(spec, path)
        elif not covers(spec.nullable, self.version) or self.present(spec, path):
            self.struct(spec.type, f"{path}.")

    def present(self, spec: FieldSpec, path: str) -> bool:
        if covers(spec.tagged, self.version):
            return self.uvarint(path, "the value") != 0
        return bool(self.take(1, path, "the value")[0] < 128)

    def length(self, spec: FieldSpec, path: str, what: str) -> int:
        at = self.position
        if self.flexible and spec.compact:
            size = self.uvarint(path, what) - 1
        elif spec.type == "string" and not spec.array:
            size = struct.unpack(">h", self.take(2, path, what))[0]
        else:
            size = struct.unpack(">i", self.take(4, path, what))[0]
        if size < -1:
            raise _WrongError(path, at, f"{what} is {size}")
        if size > wire.STRING_MAX and spec.type == "string" and not spec.array:
            raise _WrongError(path, at, f"{what} is {size}, {wire.STRING_MAX} is the most")
        if size == -1 and not covers(spec.nullable, self.version):
            raise _WrongError(path, at, "null is not allowed here")
        return size

    def sized(self, spec: FieldSpec, path: str) -> None:
        size = self.length(spec, path, "length")
        at = self.position
        raw = self.take(max(size, 0), path, "the value")
        if spec.type == "string":
            try:
                raw.decode()
            except UnicodeDecodeError as error:
                raise _WrongError(path, at + error.start, "not UTF-8") from None

    def array(self, spec: FieldSpec, path: str) -> None:
        count = self.length(spec, path, "count")
        least = smallest_element(spec, self.version, self.flexible)
        if count > self.left // least:
            raise _WrongError(path, self.position, f"{count} elements in {self.left} bytes")
        element = FieldSpec(spec.type, False, spec.versions, None, None, None, False, True, None)
        fixed = fixed_format(element)
        if fixed:
            self.take(fixed[1] * max(0, count), path, "the array")
            return
        for index in range(count):
            self.read += 1
            if self.read > READ_MAX:
                raise _WrongError(path, self.position, "something from here on does not fit")
            self.field(element, f"{path}[{index}]")


def explain(cls: type[Declared], version: int, data: bytes, start: int, budget: int = 0) -> MalformedError:
    """The error to raise for bytes that the decoder of `cls` in `version` refused. `budget`: what was left of
    it; below 0 the message may be right, but is too much."""
    if budget < 0:
        return MalformedError(cls.__name__, version, "?", start, "more elements than one request may have")
    walk = _Walk(bytes(data), start, version, version >= cls.FLEXIBLE_VERSION)
    try:
        walk.struct(cls, "")
    except _WrongError as wrong:
        return MalformedError(cls.__name__, version, wrong.field, wrong.position, wrong.reason)
    return MalformedError(cls.__name__, version, "?", walk.position, "does not fit the declaration")


def refused(cls: type[Declared], version: int, error: Exception) -> EncodeError:
    """The error to raise for a message that `version` cannot carry."""
    return EncodeError(f"{cls.__name__} v{version}: {error}")

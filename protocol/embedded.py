"""The structures that members of type "consumer" exchange inside the opaque bytes of JoinGroup and SyncGroup.

Source: Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment, versions 0 to 3. Both start with
an int16 version; the rest is the non-flexible encoding. A later version is read as 3, what it appends is
ignored. Nothing here keeps a view of the bytes it was given.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from struct import Struct, pack, unpack_from
from typing import Self

from ringleader.protocol.errors import EncodeError, MalformedError

MAX_VERSION = 3
"""The highest version of both structures, and the one that is written by default."""

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_FLOAT64 = Struct(">d")
_TWO_INT32 = Struct(">ii")
_WEIGHT_BYTES = 2 + 8
_KAFKA_PYTHONS_VERSION = b"\0\1"
_NO_GENERATION = -1


@dataclass(slots=True)
class Subscription:
    """The offer of a member that joins: topics, and (versions 1, 2, 3) what it owns, since when, where.

    `generation` is the last one the member was in, -1 for none. `owned_partitions` maps topics to partitions.
    """

    topics: list[str]
    user_data: bytes | None = None
    owned_partitions: dict[str, list[int]] = field(default_factory=dict)
    generation: int = _NO_GENERATION
    rack_id: str | None = None

    def encode(self, version: int = MAX_VERSION) -> bytes:
        """The bytes of this version; what the version lacks is left out. Raises EncodeError."""
        out = [_version(version), _count(len(self.topics))]
        out += [_string(topic) for topic in sorted(self.topics, key=_java_order)]
        out.append(_nullable_bytes(self.user_data))
        if version >= 1:
            _put_partitions(out, self.owned_partitions)
        if version >= 2:
            out.append(_int32(self.generation))
        if version >= 3:
            out.append(b"\xff\xff" if self.rack_id is None else _string(self.rack_id))
        return b"".join(out)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a Subscription of any version. Raises MalformedError."""
        reader = _Reader(data, "Subscription")
        topics = reader.strings("topics")
        user_data = reader.nullable_bytes("user_data")
        owned = reader.partitions("owned_partitions") if reader.version >= 1 else {}
        generation = reader.int32("generation") if reader.version >= 2 else _NO_GENERATION
        rack = reader.nullable_string("rack_id") if reader.version >= 3 else None
        # Java reads an empty rack as none, so that both never differ in an assignor.
        return cls(topics, user_data, owned, generation, rack or None)

    @classmethod
    def decode_version(cls, data: bytes) -> int:
        """The version alone, `MAX_VERSION` for a later one. Raises MalformedError."""
        return _Reader(data, "Subscription").version

    @classmethod
    def decode_topics(cls, data: bytes) -> list[str]:
        """The topics alone, whatever follows them. Raises MalformedError."""
        return _Reader(data, "Subscription").strings("topics")


@dataclass(slots=True)
class Assignment:
    """The leader's answer to a member: partitions by topic. Versions 0 to 3 are the same bytes."""

    partitions: dict[str, list[int]]
    user_data: bytes | None = None

    def encode(self, version: int = MAX_VERSION) -> bytes:
        """The bytes of this version. Raises EncodeError."""
        out = [_version(version)]
        _put_partitions(out, self.partitions)
        out.append(_nullable_bytes(self.user_data))
        return b"".join(out)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read an Assignment of any version. Raises MalformedError."""
        reader = _Reader(data, "Assignment")
        partitions = reader.partitions("partitions")
        return cls(partitions, reader.nullable_bytes("user_data"))


@dataclass(slots=True)
class StickyUserData:
    """User data of a `sticky` member's Subscription: its last assignment, and the generation it came in (-1
    in the older form, which lacks it). Kafka's StickyAssignor; no version in front."""

    partitions: dict[str, list[int]]
    generation: int = _NO_GENERATION

    def encode(self) -> bytes:
        """The bytes. Raises EncodeError."""
        out: list[bytes] = []
        _put_partitions(out, self.partitions)
        out.append(_int32(self.generation))
        return b"".join(out)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read either form, and kafka-python's (3.0), which has a version in front. Raises MalformedError."""
        try:
            return cls._read(data)
        except MalformedError:
            if not data.startswith(_KAFKA_PYTHONS_VERSION):
                raise
        return cls._read(data[len(_KAFKA_PYTHONS_VERSION) :])

    @classmethod
    def _read(cls, data: bytes) -> Self:
        reader = _Reader(data, "StickyUserData", versioned=False)
        partitions = reader.partitions("partitions")
        return cls(partitions, reader.int32("generation") if reader.left >= 4 else _NO_GENERATION)


@dataclass(slots=True)
class WeightUserData:
    """User data of a `weighted` member's Subscription: int16 version 0, float64 weight, then what a `sticky`
    member says. Ours."""

    weight: float = 1.0
    last: StickyUserData = field(default_factory=lambda: StickyUserData({}))

    def __post_init__(self) -> None:
        if not 0 < self.weight < math.inf:
            raise ValueError(f"a weight is above 0 and finite, not {self.weight}")

    def encode(self) -> bytes:
        """The bytes. Raises EncodeError."""
        return _INT16.pack(0) + _FLOAT64.pack(self.weight) + self.last.encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read it; a later version is read as 0. Raises MalformedError."""
        if len(data) < _WEIGHT_BYTES or data[0] & 0x80:
            raise MalformedError("WeightUserData", 0, "weight", 0)
        (weight,) = _FLOAT64.unpack_from(data, 2)
        if not 0 < weight < math.inf:
            raise MalformedError("WeightUserData", 0, "weight", 2, "a weight is above 0 and finite")
        return cls(weight, StickyUserData.decode(data[_WEIGHT_BYTES:]))


def encode_generation(generation: int) -> bytes:
    """User data of a `cooperative-sticky` member's Subscription: its last generation. Raises EncodeError."""
    return _int32(generation)


def decode_generation(data: bytes) -> int:
    """The generation in a `cooperative-sticky` member's user data. Raises MalformedError."""
    return _Reader(data, "CooperativeStickyUserData", versioned=False).int32("generation")


class _Reader:
    """A position in the bytes of one structure; every length is checked before anything is taken."""

    __slots__ = ("_data", "_name", "_pos", "version")

    def __init__(self, data: bytes, name: str, *, versioned: bool = True) -> None:
        self._data = data
        self._name = name
        self._pos = 0
        self.version = 0
        if not versioned:
            return
        version = self._int16("version")
        if version < 0:
            raise self._malformed("version", f"version {version} is negative")
        self.version = min(version, MAX_VERSION)

    @property
    def left(self) -> int:
        """Bytes that have not been read."""
        return len(self._data) - self._pos

    def int32(self, name: str) -> int:
        self._need(4, name)
        value: int = _INT32.unpack_from(self._data, self._pos)[0]
        self._pos += 4
        return value

    def count(self, name: str, least_bytes: int) -> int:
        """How many elements follow, each of which takes at least `least_bytes`."""
        count = self.int32(name)
        if not 0 <= count * least_bytes <= len(self._data) - self._pos:
            raise self._malformed(name, f"{count} elements cannot follow")
        return count

    def string(self, name: str) -> str:
        text = self.nullable_string(name)
        if text is None:
            raise self._malformed(name, "null where a string is due")
        return text

    def nullable_string(self, name: str) -> str | None:
        length = self._int16(name)
        if length < 0:
            return None
        try:
            return self._take(length, name).decode()
        except UnicodeDecodeError:
            raise self._malformed(name, "a string is not UTF-8") from None

    def nullable_bytes(self, name: str) -> bytes | None:
        length = self.int32(name)
        return None if length < 0 else self._take(length, name)

    def strings(self, name: str) -> list[str]:
        """An array of strings that are not null."""
        start = self._pos
        try:
            return self._plain_strings()
        except (struct.error, UnicodeDecodeError):
            self._pos = start  # something is wrong with it: read it with care, to say what
        return [self.string(name) for _ in range(self.count(name, 2))]

    def partitions(self, name: str) -> dict[str, list[int]]:
        """An array of topics with their partitions."""
        start = self._pos
        try:
            return self._plain_partitions()
        except (struct.error, UnicodeDecodeError):
            self._pos = start
        found: dict[str, list[int]] = {}
        for _ in range(self.count(name, 6)):
            topic = self.string(name)
            numbers = [self.int32(name) for _ in range(self.count(name, 4))]
            found.setdefault(topic, []).extend(numbers)
        return found

    # A leader reads tens of thousands of these in one rebalance. Anything odd in them is a struct.error or
    # UnicodeDecodeError here; the careful functions above then say what it is.

    def _plain_strings(self) -> list[str]:
        data, pos = self._data, self._pos
        (count,) = _INT32.unpack_from(data, pos)
        if count < 0:
            raise struct.error
        pos += 4
        found = []
        for _ in range(count):
            start = pos + 2
            pos = start + _INT16.unpack_from(data, pos)[0]
            if not start <= pos <= len(data):
                raise struct.error
            found.append(str(data[start:pos], "utf-8"))
        self._pos = pos
        return found

    def _plain_partitions(self) -> dict[str, list[int]]:
        data, pos = self._data, self._pos
        (count,) = _INT32.unpack_from(data, pos)
        if count < 0:
            raise struct.error
        pos += 4
        found: dict[str, list[int]] = {}
        for _ in range(count):
            start = pos + 2
            pos = start + _INT16.unpack_from(data, pos)[0]
            if pos < start:
                raise struct.error
            topic = str(data[start:pos], "utf-8")
            length, lowest = _TWO_INT32.unpack_from(data, pos)
            numbers = [lowest] if length == 1 else [*unpack_from(f">{length}i", data, pos + 4)]
            pos += 4 + 4 * length
            if topic in found:
                found[topic] += numbers
            else:
                found[topic] = numbers
        self._pos = pos
        return found

    def _int16(self, name: str) -> int:
        self._need(2, name)
        value: int = _INT16.unpack_from(self._data, self._pos)[0]
        self._pos += 2
        return value

    def _take(self, length: int, name: str) -> bytes:
        self._need(length, name)
        start = self._pos
        self._pos = start + length
        return bytes(self._data[start : self._pos])

    def _need(self, length: int, name: str) -> None:
        if length > len(self._data) - self._pos:
            raise self._malformed(name, f"{length} bytes are due, {len(self._data) - self._pos} are left")

    def _malformed(self, name: str, reason: str) -> MalformedError:
        return MalformedError(self._name, self.version, name, self._pos, reason)


def _java_order(text: str) -> bytes:
    # Java compares strings by UTF-16 unit, which differs from Python's order above the basic plane.
    return text.encode("utf-16-be", "surrogatepass")


def _version(version: int) -> bytes:
    if not 0 <= version <= MAX_VERSION:
        raise EncodeError(f"the embedded consumer protocol has versions 0 to {MAX_VERSION}, not {version}")
    return _INT16.pack(version)


def _int32(value: int) -> bytes:
    if not -(2**31) <= value < 2**31:
        raise EncodeError(f"{value} does not fit int32")
    return _INT32.pack(value)


_count = _int32


def _string(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise EncodeError("a string cannot be written as UTF-8") from None
    if len(data) > 0x7FFF:
        raise EncodeError(f"a string of {len(data)} bytes is too long, 32767 is the most")
    return _INT16.pack(len(data)) + data


def _nullable_bytes(data: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if data is None else _int32(len(data)) + data


def _put_partitions(out: list[bytes], partitions: dict[str, list[int]]) -> None:
    out.append(_count(len(partitions)))
    for topic in sorted(partitions, key=_java_order):
        numbers = sorted(partitions[topic])
        try:
            packed = pack(f">i{len(numbers)}i", len(numbers), *numbers)
        except struct.error:
            raise EncodeError(f"a partition of {topic} does not fit int32") from None
        out += (_string(topic), packed)

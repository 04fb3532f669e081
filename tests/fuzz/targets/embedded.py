"""The structures that members exchange inside JoinGroup and SyncGroup."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from ringleader.protocol import embedded
from ringleader.protocol.embedded import (
    Assignment,
    StickyUserData,
    Subscription,
    WeightUserData,
    decode_generation,
    encode_generation,
)
from ringleader.protocol.errors import MalformedError
from tests.fuzz.mutation import changed_bytes
from tests.fuzz.target import Target, promise

VERSIONS = range(embedded.MAX_VERSION + 1)
WORDS = (
    b"\0\1t",
    b"\0\0\0\1",
    b"\xff\xff",
    b"\xff\xff\xff\xff",
    b"\0\0\0\2\0\1a\0\0\0\0",
    b"\xc3\xa4",
    b"\xed\xa0\x80",
)


class _Careful(embedded._Reader):
    """Reads everything as what is odd is read."""

    def _plain_strings(self) -> list[str]:
        raise struct.error

    def _plain_partitions(self) -> dict[str, list[int]]:
        raise struct.error


DECODERS: tuple[Callable[[bytes], Any], ...] = (
    Subscription.decode,
    Subscription.decode_topics,
    Assignment.decode,
    StickyUserData.decode,
    WeightUserData.decode,
    decode_generation,
)


def check(data: bytes) -> None:
    found = [_outcome(decode, data) for decode in DECODERS]
    quick = embedded._Reader
    try:
        embedded._Reader = _Careful  # type: ignore[misc]
        careful = [_outcome(decode, data) for decode in DECODERS]
    finally:
        embedded._Reader = quick  # type: ignore[misc]
    for one, other in zip(found, careful, strict=True):
        promise(one == other, f"quickly {one!r:.200}, with care {other!r:.200}")
    for one in found:
        match one:
            case Subscription():
                for version in VERSIONS:
                    once = one.encode(version)
                    promise(Subscription.decode(once).encode(version) == once, "it is written in another way")
                last = Subscription.decode(one.encode())
                promise(sorted(last.topics) == sorted(one.topics), "topics are lost")
                promise(
                    _sorted(last.owned_partitions) == _sorted(one.owned_partitions), "partitions are lost"
                )
            case Assignment() | StickyUserData() | WeightUserData():
                once = one.encode()
                promise(type(one).decode(once).encode() == once, "it is written in another way")
            case int():
                promise(decode_generation(encode_generation(one)) == one, "another generation")


def _outcome(decode: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return decode(data)
    except MalformedError as error:
        return str(error)


def _sorted(partitions: dict[str, list[int]]) -> dict[str, list[int]]:
    return {topic: sorted(numbers) for topic, numbers in partitions.items()}


def seeds() -> Iterator[bytes]:
    full = Subscription(["b", "a"], b"user", {"a": [2, 0], "b": [1]}, 7, "rack")
    for version in VERSIONS:
        yield full.encode(version)
        yield Assignment({"a": [0], "t\u00e4": [5, 1]}, b"u").encode(version)
    yield Subscription([]).encode()
    yield StickyUserData({"a": [0, 1]}, 3).encode()
    yield b"\0\1" + StickyUserData({"a": [0, 1]}, 3).encode()
    yield WeightUserData(2.5, StickyUserData({"a": [0]}, 1)).encode()
    yield encode_generation(4)


def mutate(data: bytes, rng: Random) -> bytes:
    return changed_bytes(data, rng, WORDS)


def plant(patch: Any) -> None:
    """A length is not compared with what is left."""
    patch.setattr(embedded._Reader, "_need", lambda self, length, name: None)


TARGET = Target(
    "embedded",
    "Every subscription, assignment and user data is read or refused by a MalformedError; read, written and "
    "read again it is the same, in every version; the quick reading finds what the careful one finds.",
    check,
    seeds,
    mutate,
    plant,
)

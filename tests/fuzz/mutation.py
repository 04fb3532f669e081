"""How inputs are changed: bytes, numbers in every form of the wire, words, and lists of parts.

An input that has several parts (keys and values, messages of a conversation, settings) is a list: two bytes
of length before each. Any bytes are such a list, so that a fuzzer may change them without knowing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

LENGTH_BYTES = 2
_NUMBERS = (0, 1, -1, 2, 7, 63, 64, 127, 128, 255, 256, 4096, 32_767, 32_768, 65_535, 2**31 - 1, -(2**31),
            2**32 - 1, 2**62, 2**63 - 1, -(2**63))  # fmt: skip


def joined(parts: Sequence[bytes]) -> bytes:
    """A list of parts as one input."""
    return b"".join(len(part).to_bytes(LENGTH_BYTES, "big") + part for part in parts)


def parts_of(data: bytes) -> list[bytes]:
    """The parts of an input; the last one may be cut off."""
    found = []
    at = 0
    while at + LENGTH_BYTES <= len(data):
        end = at + LENGTH_BYTES + int.from_bytes(data[at : at + LENGTH_BYTES], "big")
        found.append(data[at + LENGTH_BYTES : end])
        at = end
    return found


def uvarint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(rng: Random) -> bytes:
    """A number that is an edge somewhere, in some form of the wire."""
    value = rng.choice(_NUMBERS) + rng.choice((0, 0, 1, -1))
    match rng.randrange(7):
        case 0:
            return uvarint(value & 0xFFFF_FFFF_FFFF_FFFF)
        case 1:
            return uvarint(((value << 1) ^ (value >> 63)) & 0xFFFF_FFFF_FFFF_FFFF)
        case 2:
            return b"\xff" * rng.randint(1, 10) + bytes((rng.randrange(128),))
        case 3:
            return str(value).encode()
    size = rng.choice((1, 2, 4, 8))
    return (value & (1 << 8 * size) - 1).to_bytes(size, "big")


def changed_bytes(data: bytes, rng: Random, words: Sequence[bytes] = ()) -> bytes:
    """The same bytes with one to three changes; `words` are what the format has."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(9):
            case 0 if out:
                out[at % len(out)] = rng.randrange(256)
            case 1 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 2:
                del out[at:]
            case 3:
                del out[at : at + rng.randint(1, 8)]
            case 4:
                out[at:at] = rng.randbytes(rng.randint(1, 8))
            case 5:
                new = number(rng)
                out[at : at + len(new)] = new
            case 6:
                out[at:at] = number(rng)
            case 7:
                end = at + rng.randint(1, 40)
                out[at:at] = out[at:end] * rng.choice((1, 2, 3, 20))
            case _ if words:
                word = rng.choice(words)
                out[at : at + rng.choice((0, len(word)))] = word
    return bytes(out)


def changed_parts(
    data: bytes, rng: Random, change: Callable[[bytes, Random], bytes], most: int = 40
) -> bytes:
    """A list with a part changed, doubled, moved or left out."""
    parts = parts_of(data)
    if not parts:
        return joined([change(b"", rng)])
    at = rng.randrange(len(parts))
    match rng.randrange(6):
        case 0 if len(parts) < most:
            parts.insert(rng.randrange(len(parts) + 1), parts[at])
        case 1 if len(parts) > 1:
            del parts[at]
        case 2:
            other = rng.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        case _:
            parts[at] = change(parts[at], rng)[: 2**16 - 1]
    return joined(parts)


def changed_json(value: Any, rng: Random, depth: int = 0) -> Any:
    """A JSON value with one of its values replaced by another kind, or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(list(value))
        out = dict(value)
        match rng.randrange(6):
            case 0:
                del out[name]
            case 1:
                out[_other_name(name, rng)] = out.pop(name)
            case _:
                out[name] = changed_json(value[name], rng, depth + 1)
        return out
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        changed = changed_json(value[at], rng, depth + 1)
        match rng.randrange(4):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, changed]
        return [*value[:at], changed, *value[at + 1 :]]
    return _any_json(rng)


def _other_name(name: str, rng: Random) -> str:
    return rng.choice(
        (name.upper(), name + "x", "", "0", "-1", "999999999999", "\u0661", "\ud800", "v", "g", "p")
    )


def _any_json(rng: Random) -> Any:
    return rng.choice(
        (None, True, False, 0, 1, -1, 0.5, 1e308, float("inf"), float("-inf"), float("nan"), 2**31, 2**63,
         -(2**63), 10**400, "", "x", "0", "\ud800", "\0", "\u0661", "9" * 30, [], {}, [[]], [None],
         {"": None},
         {"0": 1}, {"0": [1, 2]}, _DEEP, _DEEP_OBJECT, _LONG_NUMBER, "a" * 3_000)
    )  # fmt: skip


def json_bytes(value: Any) -> bytes:
    """As text, with what the encoder cannot make put in."""
    text = json.dumps(value)
    for name, put in _PUT_IN.items():
        text = text.replace(f'"{name}"', put)
    return text.encode("utf-8", "surrogatepass")


_DEEP, _DEEP_OBJECT, _LONG_NUMBER = "@deep", "@deep object", "@long number"
_PUT_IN = {
    _DEEP: "[" * 3_000 + "]" * 3_000,
    _DEEP_OBJECT: '{"a":' * 2_000 + "1" + "}" * 2_000,
    _LONG_NUMBER: "9" * 5_000,
}

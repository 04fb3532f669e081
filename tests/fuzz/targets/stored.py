"""Records of a log as inputs: for each a byte that says whether it has a value, then key and value as
parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random

from ringleader.coordinator.machine import Records
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.schema import Message
from tests.fuzz.mutation import changed_bytes, joined, number, parts_of
from tests.support.wire_reference import written

TOMBSTONE, VALUE = b"\0", b"\1"
MOST_RECORDS = 60


def as_input(records: Iterable[tuple[bytes, bytes | None]]) -> bytes:
    """Records as an input."""
    parts: list[bytes] = []
    for key, value in records:
        parts += (TOMBSTONE if value is None else VALUE, key, value or b"")
    return joined(parts)


def records_of(data: bytes) -> Records:
    """The records of an input."""
    parts = parts_of(data)
    found: Records = []
    for at in range(0, len(parts) - 2, 3):
        has_value, key, value = parts[at : at + 3]
        found.append((key, None if has_value == TOMBSTONE else value))
    return found


def compacted(records: Records) -> dict[bytes, bytes | None]:
    """The last record of each key, in the order of the log."""
    found: dict[bytes, bytes | None] = {}
    for key, value in records:
        found.pop(key, None)
        found[key] = value
    return found


def changed_records(
    data: bytes, rng: Random, seeds: Sequence[bytes], kinds: Callable[[bytes], type[Message] | None]
) -> bytes:
    """One record changed, doubled, moved, left out or put in. `kinds`: what the value of a key is, behind the
    version that it begins with."""
    records = records_of(data)
    if not records or rng.random() < 0.1:
        records += rng.choice([records_of(seed) for seed in seeds])
    at = rng.randrange(len(records))
    key, value = records[at]
    match rng.randrange(8):
        case 0:
            records.insert(rng.randrange(len(records) + 1), records[at])
        case 1:
            del records[at]
        case 2:
            records.append(records.pop(at))
        case 3:
            records[at] = key, rng.choice(records)[1]
        case 4:
            records[at] = changed_bytes(key, rng), value
        case 5 if value is not None:
            records[at] = key, changed_bytes(value, rng)
        case _ if value is not None:
            records[at] = key, _changed_value(value, kinds(key), rng)
    return as_input(records[:MOST_RECORDS])


def _changed_value(value: bytes, kind: type[Message] | None, rng: Random) -> bytes:
    if kind is None or len(value) < 2:
        return changed_bytes(value, rng)
    version = int.from_bytes(value[:2], "big")
    try:
        good = written(kind.decode(value, version, 2), version)
    except (MalformedError, ValueError):
        return changed_bytes(value, rng)
    if not good.marks:
        return changed_bytes(value, rng)
    mark = rng.choice(good.marks)
    old = good.body[mark.start : mark.stop]
    return value[:2] + good.replaced(mark, changed_bytes(old, rng) if mark.kind == "text" else number(rng))

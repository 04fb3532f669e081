"""Requests as a decent client sends them, and what becomes of them when one field or several go to their
extremes: numbers, lists, texts, bytes."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ringleader.protocol.fields import FieldSpec, fields_of
from ringleader.protocol.layout import covers
from ringleader.protocol.schema import Message

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LONG = 32_000
"""Bytes of a very long text; the longest one has 32,767."""

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field is in a message, and what it is."""

    path: Path
    spec: FieldSpec

    def get(self, message: Any) -> Any:
        """The value at that place."""
        for step in self.path:
            message = message[step] if isinstance(step, int) else getattr(message, step)
        return message

    def put(self, message: Any, value: Any) -> None:
        """Change it."""
        owner = Place(self.path[:-1], self.spec).get(message)
        step = self.path[-1]
        if isinstance(step, int):
            owner[step] = value
        else:
            setattr(owner, step, value)


def places(message: Any, version: int, path: Path = ()) -> Iterator[Place]:
    """All fields that `version` has, those of all structs in it too, and the elements of lists."""
    for name, spec in fields_of(type(message)):
        if not covers(spec.versions, version):
            continue
        value, here = getattr(message, name), (*path, name)
        yield Place(here, spec)
        nested = value if spec.array else [value]
        for number, one in enumerate(nested or ()):
            inside: Path = (*here, number) if spec.array else here
            if not isinstance(spec.type, str):
                if one is not None:
                    yield from places(one, version, inside)
            elif spec.array:
                yield Place(
                    inside, FieldSpec(spec.type, False, spec.versions, None, None, None, False, True, None)
                )


def extremes(place: Place, value: Any, version: int) -> list[Any]:
    """The values to put there instead."""
    spec = place.spec
    found: list[Any] = []
    if covers(spec.nullable, version):
        found.append(None)
    if spec.array:
        found.append([])
        if value:
            found += [value * 2, value * 50]
    elif isinstance(spec.type, str):
        found += extremes_of(spec.type, value)
    return [one for one in found if one != value or type(one) is not type(value)]


def _integers(bits: int) -> Callable[[Any], list[Any]]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return lambda value: sorted({0, 1, -1, -2, low, low + 1, high, high - 1, min(value + 1, high)})


_SCALARS: Mapping[str, Callable[[Any], list[Any]]] = {
    **{name: _integers(bits) for name, bits in BITS.items()},
    "uint16": lambda value: [0, 1, 2**16 - 1],
    "uint32": lambda value: [0, 1, 2**32 - 1],
    "bool": lambda value: [not value],
    "float64": lambda value: [0.0, -1.0, 1e308, -1e308, 5e-324, float("inf"), float("nan")],
    "string": lambda value: ["", "x" * LONG, "\U0001f600" * (LONG // 4), "\0", f"{value}-other"],
    "bytes": lambda value: [b"", bytes(LONG), b"\xff"],
    "records": lambda value: [b"", bytes(61), (value or b"")[:-1], (value or b"") * 2],
    "uuid": lambda value: [bytes(16), b"\xff" * 16],
}


def extremes_of(kind: str, value: Any) -> list[Any]:
    """The values that a field of this type may have instead of `value`."""
    return _SCALARS[kind](value)


def spoiled(message: Message, version: int) -> Iterator[tuple[str, Message]]:
    """The message with each of its fields at each of its extremes, one at a time."""
    for place in places(message, version):
        value = place.get(message)
        for number, extreme in enumerate(extremes(place, value, version)):
            changed = copy.deepcopy(message)
            place.put(changed, extreme)
            yield f"{'.'.join(map(str, place.path))} extreme {number} ({_short(extreme)})", changed


def spoil_some(rng: random.Random, message: Any, version: int, most: int, kinds: Any = None) -> str:
    """Put some fields of a message to an extreme each; what was done. `kinds`: of these types only."""
    done = []
    for _ in range(rng.randint(1, most)):
        choices = [one for one in places(message, version) if kinds is None or one.spec.type in kinds]
        if not choices:
            break
        place = rng.choice(choices)
        found = extremes(place, place.get(message), version)
        if found:
            extreme = rng.choice(found)
            place.put(message, extreme)
            done.append(f"{'.'.join(map(str, place.path))}={_short(extreme)}")
    return ", ".join(done)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


NAMES: Mapping[str, Any] = {
    "acks": -1,
    "timeout_ms": 1_000,
    "max_wait_ms": 1,
    "replica_id": -1,
    "max_bytes": 1_000,
    "partition_max_bytes": 1_000,
    "session_epoch": -1,
    "current_leader_epoch": -1,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "transaction_timeout_ms": 1_000,
    "num_partitions": 1,
    "replication_factor": 1,
    "count": 2,
    "generation_id": 1,
    "generation_id_or_member_epoch": -1,
    "retention_time_ms": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "timestamp": -1,
    "timeout": 1_000,
    "resource_type": 2,
    "mechanism": 1,
    "mechanism_name": "PLAIN",
    "iterations": 4_096,
    "entity_type": "user",
    "protocol_type": "consumer",
    "client_software_name": "name",
    "client_software_version": "1",
}
"""Values that a decent client may send in the fields of these names."""


def decent(cls: type[Any], version: int, named: Mapping[str, Any]) -> Any:
    """A message with every field of `version`: one element in each list, values by the fields' names."""
    found = {}
    for name, spec in fields_of(cls):
        if not covers(spec.versions, version):
            continue
        one: Any
        if not isinstance(spec.type, str):
            one = decent(spec.type, version, named)
        elif name in named:
            one = named[name]
        elif name in NAMES:
            one = NAMES[name]
        else:
            one = {"string": "x", "bytes": b"x", "records": b"", "uuid": bytes(16), "bool": False}.get(
                spec.type, 0
            )
        found[name] = [one] if spec.array else one
    return cls(**found)

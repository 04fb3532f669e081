"""The fields of a declared message or struct: type, versions, default, and how they are found again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

LAST = 32767
"""Upper end of a version range that is open."""

OUR_TAG = 10_000
"""The first tag of the tagged fields that Kafka does not have: its own count up from 0."""

FRESH: Any = dataclasses.MISSING
"""In `FieldSpec.default`: a new empty list or struct for each message."""

Range = tuple[int, int]

SCALARS = (
    "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "string", "bytes", "records",
    "uuid",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field as declared. `type` is a name of `SCALARS`, or a struct class; `array` says "list of"."""

    type: str | type[Any]
    array: bool
    versions: Range
    nullable: Range | None
    tag: int | None
    tagged: Range | None
    ignorable: bool
    compact: bool
    default: Any


def field(
    kind: str | type[Any],
    *,
    versions: Range = (0, LAST),
    nullable: Range | None = None,
    default: Any = dataclasses.MISSING,
    factory: Callable[[], Any] | None = None,
    tag: int | None = None,
    tagged: Range | None = None,
    ignorable: bool = False,
    compact: bool = True,
) -> Any:
    """Declare a field of a scalar type, or (with a class) an embedded struct.

    Give `default` or `factory` (called for each message) to every field, so that messages are
    built from the fields that matter. `nullable`: versions in which null is allowed. `tag` with `tagged`: the
    versions in which it is a tagged field (KIP-482). `ignorable`: a value that the version cannot carry is
    dropped; without it encoding such a value fails. `compact=False` keeps the two-byte length in flexible
    versions.
    """
    return _field(kind, False, versions, nullable, default, factory, tag, tagged, ignorable, compact)


def array(
    kind: str | type[Any],
    *,
    versions: Range = (0, LAST),
    nullable: Range | None = None,
    default: Any = dataclasses.MISSING,
    factory: Callable[[], Any] | None = None,
    tag: int | None = None,
    tagged: Range | None = None,
    ignorable: bool = False,
) -> Any:
    """Declare a list of a scalar type or of structs; the arguments are those of `field`."""
    return _field(kind, True, versions, nullable, default, factory, tag, tagged, ignorable, True)


def _field(
    kind: str | type[Any],
    is_array: bool,
    versions: Range,
    nullable: Range | None,
    default: Any,
    factory: Callable[[], Any] | None,
    tag: int | None,
    tagged: Range | None,
    ignorable: bool,
    compact: bool,
) -> Any:
    if isinstance(kind, str) and kind not in SCALARS:
        raise TypeError(f"unknown field type {kind!r}")
    spec = FieldSpec(kind, is_array, versions, nullable, tag, tagged, ignorable, compact, default)
    metadata = {"ringleader": spec}
    if factory is not None:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class Declared:
    """A declared message as its decoders and encoders see it: name, API and versions."""

    __slots__ = ()

    NAME: ClassVar[str]
    API_KEY: ClassVar[int]
    """Key of the API; -1 for headers and persisted records."""
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    FLEXIBLE_VERSION: ClassVar[int]
    """First flexible version (KIP-482); above `MAX_VERSION` if there is none."""
    KIND: ClassVar[str]
    """"request", "response", "header" or "data"."""


def fields_of(cls: type[Any]) -> list[tuple[str, FieldSpec]]:
    """Names and declarations of the fields of a message or struct, in wire order."""
    return [(item.name, item.metadata["ringleader"]) for item in dataclasses.fields(cls)]

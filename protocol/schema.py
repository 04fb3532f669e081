"""How a message is declared: one typed class for all its versions, with the version range of each field.

A declaration is the single source. `codegen` compiles it to one straight-line decoder and encoder per
version; the class itself is what everybody uses, whatever the version on the wire.

    @message(key=12, versions=(0, 4), flexible=4, kind="request")
    class HeartbeatRequest(Message):
        group_id: str = field("string")
        generation_id: int = field("int32")
        member_id: str = field("string")
        group_instance_id: str | None = field("string", versions=(3, LAST), nullable=(3, LAST), default=None)

Version ranges are inclusive pairs; `LAST` stands for "and all later ones".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

LAST = 32767
"""Upper end of a version range that is open."""

ZERO_UUID = bytes(16)
"""The topic id that stands for "none"."""

FRESH: Any = dataclasses.MISSING
"""In `FieldSpec.default`: a new empty list or struct for each message."""

Range = tuple[int, int]

_T = TypeVar("_T")

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

    Give `default` or `factory` (what is made anew for each message) to every field, so that messages are
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


class Message:
    """Base of every declared message: what it is called, and its two directions."""

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

    @classmethod
    def decode(cls, data: bytes, version: int, position: int = 0) -> Self:
        """Read the body of `version` from `data` at `position`; bytes after it are ignored, as Kafka does.

        Raises `MalformedError` for anything that does not fit the declaration, and ValueError for a version
        that is not declared.
        """
        from ringleader.protocol.codec import decoder

        message: Self = decoder(cls, version)(data, position)[0]
        return message

    def encode(self, version: int) -> bytes:
        """The body in `version`. Raises `EncodeError` for a value that the version cannot carry."""
        from ringleader.protocol.codec import encoder

        return encoder(type(self), version)(self)


@dataclass_transform(kw_only_default=False, field_specifiers=(field, array))
def message(
    *, key: int = -1, versions: Range, flexible: int = LAST, kind: str
) -> Callable[[type[_T]], type[_T]]:
    """Class decorator: a message with an API key, the versions served and the first flexible one."""

    def wrap(cls: type[_T]) -> type[_T]:
        made = _dataclass(cls)
        made.NAME = cls.__name__  # type: ignore[attr-defined]
        made.API_KEY = key  # type: ignore[attr-defined]
        made.MIN_VERSION, made.MAX_VERSION = versions  # type: ignore[attr-defined]
        made.FLEXIBLE_VERSION = flexible  # type: ignore[attr-defined]
        made.KIND = kind  # type: ignore[attr-defined]
        return made

    return wrap


@dataclass_transform(kw_only_default=False, field_specifiers=(field, array))
def struct(cls: type[_T]) -> type[_T]:
    """Class decorator: a structure inside a message."""
    return _dataclass(cls)


def _dataclass(cls: type[_T]) -> type[_T]:
    """As `dataclass` makes it, with `==` and `repr` shared and `__init__` made at its first call: compiled
    for each of some 200 classes, of which a process uses few, they are most of what it takes to import them.
    """
    made = dataclass(slots=True, repr=False, eq=False, init=False)(cls)
    for name, value in (("__init__", _first), ("__eq__", _equal), ("__hash__", None), ("__repr__", _shown)):
        setattr(made, name, value)
    return made


def _first(self: Any, *values: Any, **named: Any) -> None:
    """Make the first one of a class, and its `__init__` for all others."""
    cls = type(self)
    parameters, body = ["self"], []
    known: dict[str, Any] = {}
    for one in dataclasses.fields(cls):
        name = one.name
        if one.default_factory is not dataclasses.MISSING:
            known[f"_{name}"] = one.default_factory
            parameters.append(f"{name}=_{name}")
            body.append(f"self.{name} = _{name}() if {name} is _{name} else {name}")
            continue
        known[f"_{name}"] = one.default
        parameters.append(name if one.default is dataclasses.MISSING else f"{name}=_{name}")
        body.append(f"self.{name} = {name}")
    source = f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join(body or ["pass"])
    exec(source, known)
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = made
    made(self, *values, **named)


SECRETS = frozenset(("auth_bytes", "salted_password"))
"""Fields that are never shown."""


def _equal(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)


def _shown(self: Any) -> str:
    values = ", ".join(
        f"{name}={'...' if name in SECRETS else repr(getattr(self, name))}" for name in self.__slots__
    )
    return f"{type(self).__qualname__}({values})"


def fields_of(cls: type[Any]) -> list[tuple[str, FieldSpec]]:
    """Names and declarations of the fields of a message or struct, in wire order."""
    return [(item.name, item.metadata["ringleader"]) for item in dataclasses.fields(cls)]

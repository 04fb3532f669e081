"""How a message is declared: one typed class for all its versions, with the version range of each field.

A declaration is the single source. `codegen` compiles it to one straight-line decoder and encoder per
version; callers use the class itself, whatever the version on the wire.

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
from typing import Any, Self, TypeVar, dataclass_transform

from ringleader.protocol.codec import decoder, encoder
from ringleader.protocol.fields import LAST, Declared, Range, array, field

ZERO_UUID = bytes(16)
"""The topic id that stands for "none"."""

_T = TypeVar("_T")


class Message(Declared):
    """Base of every declared message, with its two directions."""

    __slots__ = ()

    @classmethod
    def decode(cls, data: bytes, version: int, position: int = 0) -> Self:
        """Read the body of `version` from `data` at `position`; bytes after it are ignored, as Kafka does.

        Raises `MalformedError` for anything that does not fit the declaration, and ValueError for a version
        that is not declared.
        """
        message: Self = decoder(cls, version)(data, position)[0]
        return message

    def encode(self, version: int) -> bytes:
        """The body in `version`. Raises `EncodeError` for a value that the version cannot carry."""
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

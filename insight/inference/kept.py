"""The attributes of inference that a restart restores: those that are annotated `Kept`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from ringleader.insight.codec import Codec, codec_of

_T = TypeVar("_T")
_MARK = object()

Kept = Annotated[_T, _MARK]
"""An attribute that stands in a snapshot, under its name without the underscore in front."""


class Restorable:
    """A part of inference that goes on after a restart where it was. An attribute that is `Kept` may be
    another such part."""

    def dump(self) -> dict[str, Any]:
        """The attributes that are kept, as JSON."""
        return {
            name.lstrip("_"): getattr(self, name).dump()
            if codec is None
            else codec.write(getattr(self, name))
            for name, codec in _kept(self)
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take over the attributes that `dump` of another one has written. Attributes that it lacks, as an
        older version has not written them, keep their values."""
        for name, codec in _kept(self):
            if name.lstrip("_") not in saved:
                continue
            if codec is None:
                getattr(self, name).load(saved[name.lstrip("_")])
            else:
                setattr(self, name, codec.read(saved[name.lstrip("_")]))


def _kept(part: Any) -> tuple[tuple[str, Codec | None], ...]:
    """Attribute -> its codec; None: it dumps itself."""
    kind: Any = type(part)
    return _kept_by(kind)


@cache
def _kept_by(kind: Any) -> tuple[tuple[str, Codec | None], ...]:
    return tuple(_attributes(kind))


def _attributes(kind: Any) -> Iterator[tuple[str, Codec | None]]:
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated and _MARK in get_args(hint)[1:]:
            inner = get_args(hint)[0]
            part = isinstance(inner, type) and issubclass(inner, Restorable)
            yield name, None if part else codec_of(inner)

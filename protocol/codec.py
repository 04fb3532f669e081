"""Decoders and encoders by message class and version; the generated code behind them loads on first use."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ringleader.protocol.schema import Message

Decoder = Callable[..., tuple[Any, int]]
"""(data, position) -> (message, position after it). Raises `MalformedError`.

That of a request takes a third argument, the budget: what the arrays in it may cost to decode, in numbers of
an array of numbers; see `layout.effort`. It is spent before anything is made of what is counted."""

Encoder = Callable[[Any], bytes]
"""message -> body. Raises `EncodeError`."""

PiecesEncoder = Callable[[Any], Iterator[bytes]]
"""message -> body in pieces, most often one. Raises `EncodeError` at any of them."""

_decoders: dict[tuple[type[Message], int], Decoder] = {}
_encoders: dict[tuple[type[Message], int], Encoder] = {}


def module_name(cls: type[Message]) -> str:
    """Name of the generated module of a message, without its package."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", cls.__name__).lower()


def _function(cls: type[Message], verb: str, version: int) -> Any:
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise ValueError(
            f"{cls.__name__} is declared for versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
        )
    return getattr(_module(cls), f"{verb}_v{version}")


def _module(cls: type[Message]) -> ModuleType:
    return importlib.import_module(f"ringleader.protocol._generated.{module_name(cls)}")


def decoder(cls: type[Message], version: int) -> Decoder:
    """The decoder of one version: for hot paths; `cls.decode` is the friendly form.

    Raises ValueError if the version is not declared.
    """
    found = _decoders.get((cls, version))
    if found is None:
        found = _decoders[cls, version] = _function(cls, "decode", version)
    return found


def encoder(cls: type[Message], version: int) -> Encoder:
    """The encoder of one version. Raises ValueError if the version is not declared."""
    found = _encoders.get((cls, version))
    if found is None:
        found = _encoders[cls, version] = _function(cls, "encode", version)
    return found


def pieces_encoder(cls: type[Message], version: int) -> PiecesEncoder:
    """What encodes a response that may be long. Raises ValueError if the version is not declared."""
    whole = encoder(cls, version)
    found: PiecesEncoder | None = getattr(_module(cls), f"encode_pieces_v{version}", None)
    return found or (lambda message: iter((whole(message),)))
